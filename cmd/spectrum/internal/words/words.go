// Package words writes what people and programs read of a command in one way: paths, sizes,
// counts, IDs, users.
package words

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/internal/served"
	"github.com/spectrumfs/spectrum/internal/visible"
)

// Shell quotes a word for a shell, if it needs it. What cannot be printed is
// written as bash, zsh and ksh read it ($'...'), so that the word is on one line and
// still the very same.
func Shell(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:,@%"
	switch {
	case word != "" && strings.Trim(word, plain) == "":
		return word
	case visible.Escape(word) != word || !utf8.ValidString(word):
		return "$'" + shellEscape(word) + "'"
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// shellEscape is a word as it stands in $'...'.
func shellEscape(word string) string {
	var b strings.Builder
	var scan visible.Scanner
	for len(word) > 0 {
		r, n := utf8.DecodeRuneInString(word)
		switch hidden := scan.Hidden(r); {
		case r == '\'' || r == '\\':
			b.WriteString(`\` + string(r))
		case !hidden && (r != utf8.RuneError || n > 1):
			b.WriteRune(r)
		default:
			for _, c := range []byte(word[:n]) {
				fmt.Fprintf(&b, `\x%02x`, c)
			}
		}
		word = word[n:]
	}
	return b.String()
}

// JSON returns a path as JSON can hold it.
func JSON(path string) string { return strings.ToValidUTF8(path, "\uFFFD") }

// OrNull returns a text for JSON: null for none.
func OrNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// Number returns a number as a person reads it, with a comma at every third digit.
func Number[N int | int64](n N) string {
	text := strconv.FormatInt(int64(n), 10)
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// Count returns a number of something in words.
func Count[N int | int64](n N, what string) string {
	if n != 1 {
		what += "s"
	}
	return Number(n) + " " + what
}

// Of returns a part of a number of something in words.
func Of(n, all int, what string) string {
	return Number(n) + " of " + Count(all, what)
}

// Bytes returns a size in words.
func Bytes(n int64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return Count(n, "byte")
	}
	value, unit := float64(n)/1024, 0
	for value >= 1024 && unit < len(units)-1 {
		value /= 1024
		unit++
	}
	return fmt.Sprintf("%.1f %ciB", value, units[unit])
}

// Shortest is how many digits of an ID are printed where it is to be short, and Least is how many
// are enough to name something, if nothing else begins with them.
const (
	Shortest = 8
	Least    = 4
)

// Served is the next step where another user serves what was named, or the way to it.
func Served(e *served.ForeignError) string {
	user := "that user"
	if e.UserID >= 0 {
		user = machine.UserText(e.UserID)
	}
	return fmt.Sprintf("the server of another user is asked nothing (\"findmnt -T PATH\" says what it serves): copy the files elsewhere as %s and name the copy, or run this as %s", user, user)
}

// Lists for people are bounded: by MaxNamed lines beside a result, by MaxListed where the list is
// the result.
const (
	MaxNamed  = 20
	MaxListed = 1000
)

// maxShown is how many bytes of a path people are shown, and maxTold of a text.
const (
	maxShown = 240
	maxTold  = 2000
)

// Path is a path for people, as Shell quotes it: of one that is very long its two ends.
func Path(path string) string {
	if len(path) <= maxShown {
		return Shell(path)
	}
	return fmt.Sprintf("%s (%s)", Shell(ends(path, maxShown)), Count(len(path), "byte"))
}

// Cut is a text for people: of one that is very long its two ends.
func Cut(text string) string {
	if len(text) <= maxTold {
		return text
	}
	return ends(text, maxTold)
}

func ends(text string, most int) string {
	return strings.ToValidUTF8(text[:most/2], "") + " ... " + strings.ToValidUTF8(text[len(text)-most/2:], "")
}

// Few are the first lines of a list, and one that says how many more there are.
func Few(lines []string, most int) []string {
	if len(lines) <= most {
		return lines
	}
	more := fmt.Sprintf("and %s more; --json names all of them", Number(len(lines)-most))
	return append(slices.Clip(lines[:most]), more)
}

// List names the first of some paths, for people, and how many more there are.
func List(paths []string) string {
	const most = 5
	var shown []string
	for _, path := range paths[:min(len(paths), most)] {
		shown = append(shown, Path(path))
	}
	if more := len(paths) - len(shown); more > 0 {
		shown = append(shown, Number(more)+" more")
	}
	return strings.Join(shown, ", ")
}
