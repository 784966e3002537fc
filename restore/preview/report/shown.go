package report

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spectrumfs/spectrum/internal/visible"
)

// maxWords is the number of bytes of one text that the page shows; paths are not longer.
const maxWords = 4096

// words returns a text for the page, with escapes for characters that are invisible or reorder the text. The
// end of a long text is replaced by the number of its bytes.
func words(s string) string {
	more := ""
	if len(s) > maxWords {
		more = fmt.Sprintf(" … (%s more bytes)", visible.Number(len(s)-maxWords))
		s = s[:maxWords]
	}
	return escaped(s) + more
}

// escaped returns a text with escapes for characters that are invisible or reorder the text.
func escaped(s string) string {
	quoted := visible.Quote(s)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// Name returns a plain name unchanged, and quotes any other name, so that its beginning and end are visible.
// A plain name never begins with a quote, so two names never look alike.
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

// partsOf splits a line of a file into parts. A tab is text. An escape is a part of its own, which
// distinguishes it from the same characters in the file.
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

// ofProposed returns the number of proposed things of all.
func ofProposed(n, all int64) string {
	return visible.Number(n) + " of " + visible.Number(all) + " proposed"
}
