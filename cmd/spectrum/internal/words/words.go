// Package words writes what people and programs read of a command in one way: paths, sizes,
// counts, IDs, users.
package words

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spectrumfs/spectrum/internal/hexdigits"
	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/internal/served"
	"github.com/spectrumfs/spectrum/internal/visible"
)

// Shell quotes a word for a shell, if it needs it, on one line, such that every POSIX shell reads the
// very same word: dash, bash, zsh, ksh and busybox, interactive too. A word with characters that
// cannot be seen is what printf writes in a command substitution. That removes line feeds at the end,
// so a word that ends in one has no such form, and is an expansion that ends the command with an
// error instead.
func Shell(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:,@%"
	switch {
	case word != "" && strings.Trim(word, plain) == "":
		return word
	case visible.Escape(word) == word && utf8.ValidString(word):
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	case strings.HasSuffix(word, "\n"):
		return unpasted("type_this_name_by_hand", word)
	}
	return `"$(printf '` + printfFormat(word) + `')"`
}

// unpasted is a word that no shell passes on: an expansion of a variable that is not set, which names
// the word in its message, with a question mark for all that a shell could read.
func unpasted(variable, word string) string {
	shown := strings.Map(func(r rune) rune {
		if strings.ContainsRune(" /._-+:,@%", r) || unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return '?'
	}, visible.Escape(word))
	return `"${` + variable + "?" + shown + `}"`
}

// printfFormat is the format with which printf of every POSIX shell writes a word: octal escapes for
// what cannot be seen, for quotes, the exclamation marks of a history, and an option's dash.
func printfFormat(word string) string {
	var b strings.Builder
	var scan visible.Scanner
	for at := 0; at < len(word); {
		r, n := utf8.DecodeRuneInString(word[at:])
		switch hidden := scan.Hidden(r); {
		case r == '%':
			b.WriteString("%%")
		case !hidden && !strings.ContainsRune(`'\!`, r) && (r != utf8.RuneError || n > 1) && (at > 0 || r != '-'):
			b.WriteRune(r)
		default:
			for _, c := range []byte(word[at : at+n]) {
				fmt.Fprintf(&b, `\%03o`, c)
			}
		}
		at += n
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
func Number[N int | int64](n N) string { return visible.Number(n) }

// Count returns a number of something in words.
func Count[N int | int64](n N, what string) string { return visible.Count(n, what) }

// Of returns a part of a number of something in words.
func Of(n, all int, what string) string {
	return Number(n) + " of " + Count(all, what)
}

// Bytes returns a size in words.
func Bytes(n int64) string { return visible.Size(n) }

// Shortest is how many digits of an ID are printed where it is to be short, and Least is how many
// are enough to name something, if nothing else begins with them.
const (
	Shortest = 8
	Least    = hexdigits.Least
)

// Served is the next step where another user serves what was named, or the way to it.
func Served(e *served.ForeignError) string {
	user := "that user"
	if e.UserID >= 0 {
		user = machine.UserText(e.UserID)
	}
	return fmt.Sprintf("the server of another user is not queried (\"findmnt -T PATH\" shows what it serves): copy the files as %s and use the copy, or run this command as %s", user, user)
}

// Lists for people are bounded: by MaxNamed lines beside a result, by MaxListed where the list is
// the result.
const (
	MaxNamed  = 20
	MaxListed = 1000
)

// maxShown is how many bytes of a path people are shown, and maxListed of a text.
const (
	maxShown  = 240
	maxListed = 2000
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
	if len(text) <= maxListed {
		return text
	}
	return ends(text, maxListed)
}

func ends(text string, most int) string {
	return strings.ToValidUTF8(text[:most/2], "") + " ... " + strings.ToValidUTF8(text[len(text)-most/2:], "")
}

// Few returns the first lines of a list, and one with the number of the others.
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
