package report

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spectrumfs/spectrum/internal/visible"
)

// maxWords is how many bytes of one text the page shows; paths are no longer.
const maxWords = 4096

// words shows words on the page as the Markdown does, without its markup: what
// cannot be seen, or reorders what is seen, is an escape. It says how much of a
// long text is left out.
func words(s string) string {
	more := ""
	if len(s) > maxWords {
		more = fmt.Sprintf(" … (%s more bytes)", visible.Number(len(s)-maxWords))
		s = s[:maxWords]
	}
	return escaped(s) + more
}

// escaped has an escape for everything that cannot be seen, or reorders what is.
func escaped(s string) string {
	quoted := visible.Quote(s)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// Name shows a name: as it is when it is plain, else quoted, so that where it
// begins and ends can be seen. A plain name never begins with a quote, so no two
// names are shown as one.
func Name(s string) string { return name(s) }

func name(s string) string {
	for _, c := range []byte(s) {
		if !plain(c) {
			return visible.Quote(s)
		}
	}
	if s == "" {
		return `""`
	}
	return s
}

func plain(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("._-+=@/", c) >= 0
}

// A part is a piece of a line of a file: text as it is, or the escape of one
// character that cannot be seen.
type part struct {
	Text   string
	Escape bool
}

// partsOf takes a line of a file apart. A tab stays what it is. What is escaped
// is distinguished from the same characters in the file by being a part of its own.
func partsOf(line string) []part {
	var parts []part
	var scan visible.Scanner
	begin := 0
	for at, r := range line {
		if !scan.Hidden(r) || r == '\t' {
			continue
		}
		if begin < at {
			parts = append(parts, part{Text: line[begin:at]})
		}
		parts = append(parts, part{visible.Rune(r), true})
		begin = at + utf8.RuneLen(r)
	}
	if begin < len(line) {
		parts = append(parts, part{Text: line[begin:]})
	}
	return parts
}

// ofProposed is how many of all are proposed.
func ofProposed(n, all int64) string {
	return visible.Number(n) + " of " + visible.Number(all) + " proposed"
}
