package review

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/spectrumfs/spectrum/internal/visible"
)

// Terminals disagree about how wide characters are that join with those before them. What is
// counted as narrower than it is drawn runs over the end of its row and is lost, and whatever is
// drawn after it is in the wrong place. So each of them is shown as an escape.

// unsure are characters that are drawn in more than one width even where they are alone.
var unsure = []*unicode.RangeTable{
	unicode.Mc, // spacing marks: one column, or none
	unicode.Regional_Indicator,
	{R16: []unicode.Range16{ // the Hangul vowels and final consonants that join
		{Lo: 0x1160, Hi: 0x11ff, Stride: 1}, {Lo: 0xd7b0, Hi: 0xd7ff, Stride: 1},
	}},
}

// steady is a text in which each character takes the same columns on every terminal: whether it
// draws each character by itself or joins what belongs together.
func steady(s string) string {
	if isASCII(s) {
		return s
	}
	var b strings.Builder
	for rest := s; rest != ""; {
		cluster, _ := ansi.FirstGraphemeCluster(rest, ansi.GraphemeWidth)
		rest = rest[len(cluster):]
		writeSteady(&b, cluster)
	}
	return b.String()
}

// writeSteady writes the characters that are joined on some terminals. Only combining marks
// without a width of their own stay with the character that they are on.
func writeSteady(b *strings.Builder, cluster string) {
	for at, r := range cluster {
		stays := unicode.In(r, unicode.Mn, unicode.Me) && ansi.StringWidthWc(string(r)) == 0
		if at == 0 {
			stays = !isUnsure(r)
		}
		if stays && at > 0 && ansi.StringWidth(cluster) != ansi.StringWidthWc(cluster) {
			first, _ := utf8.DecodeRuneInString(cluster)
			stays = ansi.StringWidth(string(first)+string(r)) == ansi.StringWidthWc(string(first))
		}
		if stays {
			b.WriteRune(r)
		} else {
			b.WriteString(visible.Rune(r))
		}
	}
}

// isUnsure reports whether a leading character may be drawn in several widths, or joins with the
// next one.
func isUnsure(r rune) bool {
	if r < utf8.RuneSelf {
		return false
	}
	alone := string(r)
	joined, _ := ansi.FirstGraphemeCluster(alone+"a", ansi.GraphemeWidth)
	return unicode.In(r, unsure...) || ansi.StringWidth(alone) != ansi.StringWidthWc(alone) || len(joined) > len(alone)
}

func isASCII(s string) bool {
	for at := range len(s) {
		if s[at] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
