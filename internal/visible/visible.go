// Package visible decides which characters a reader can see. Every text for people, and the JSON on
// stdout, is escaped by it.
//
// Hidden are, besides what Go does not print (controls, C1 controls, DEL, format and bidi
// characters, spaces other than U+0020, unassigned and private ones):
//
//   - what Unicode calls Default_Ignorable_Code_Point: Hangul fillers, variation
//     selectors, the combining grapheme joiner, Khmer inherent vowels;
//   - characters that are drawn as nothing, such as the blank Braille pattern;
//   - marks without ink of their own, which only change how their neighbours are drawn
//     (joiners of numbers and consonants, invisible stackers, selectors, fillings and
//     rotations of signs), unless they follow a letter or another mark of their script;
//   - each combining mark after the second in a row.
//
// A hidden character is shown as an escape. Only the shown form changes, not names and identities.
package visible

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// maxMarks is how many combining marks in a row are shown. Living scripts use two.
const maxMarks = 2

// ignorable is the part of Default_Ignorable_Code_Point that unicode.IsPrint considers printable.
var ignorable = []*unicode.RangeTable{unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector}

// blank are characters of other kinds that are drawn as nothing.
var blank = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x2800, Hi: 0x2800, Stride: 1}, // Braille pattern blank
		{Lo: 0x303f, Hi: 0x303f, Stride: 1}, // ideographic half fill space
		{Lo: 0xfffc, Hi: 0xfffc, Stride: 1}, // object replacement character
	},
	R32: []unicode.Range32{
		{Lo: 0x13441, Hi: 0x13442, Stride: 1}, // Egyptian hieroglyph full and half blank
		{Lo: 0x16fe4, Hi: 0x16fe4, Stride: 1}, // Khitan small script filler
		{Lo: 0x1d159, Hi: 0x1d159, Stride: 1}, // musical symbol null notehead
	},
}

// inkless are marks that are not drawn, by script: those whose Indic_Syllabic_Category is
// Invisible_Stacker or Number_Joiner, and the equivalents in other scripts. The joiner of Brahmi
// numbers has no script: no living text needs it.
var inkless = map[rune]*unicode.RangeTable{
	0x1039: unicode.Myanmar, 0x17d2: unicode.Khmer, 0x1a60: unicode.Tai_Tham, 0x1bab: unicode.Sundanese,
	0x2d7f: unicode.Tifinagh, 0xaaf6: unicode.Meetei_Mayek, 0x10a3f: unicode.Kharoshthi, 0x1107f: nil,
	0x11133: unicode.Chakma, 0x1193e: unicode.Dives_Akuru, 0x11a47: unicode.Zanabazar_Square,
	0x11a99: unicode.Soyombo, 0x11d45: unicode.Masaram_Gondi, 0x11d97: unicode.Gunjala_Gondi,
	0x11f42: unicode.Kawi, 0x1bc9d: unicode.Duployan,
}

// Scanner reads a text character by character. The zero Scanner is at its beginning.
type Scanner struct {
	marks  int
	before rune
}

// Hidden reports whether a reader cannot see r, the next character of the text.
func (s *Scanner) Hidden(r rune) bool {
	before := s.before
	s.before = r
	if r < utf8.RuneSelf {
		s.marks = 0
		return r < ' ' || r == 0x7f
	}
	if unicode.Is(unicode.M, r) {
		s.marks++
	} else {
		s.marks = 0
	}
	return s.marks > maxMarks || !unicode.IsPrint(r) || unicode.In(r, ignorable...) || unicode.Is(blank, r) || hasNoInk(r, before)
}

// hasNoInk reports whether r is a mark that is not drawn and, for the character before
// it, changes nothing that is.
func hasNoInk(r, before rune) bool {
	if isSignModifier(r) {
		return !unicode.Is(unicode.SignWriting, before)
	}
	script, found := inkless[r]
	if !found {
		return false
	}
	_, again := inkless[before]
	return again || script == nil || !unicode.Is(script, before) || !unicode.In(before, unicode.L, unicode.M)
}

// isSignModifier reports whether r fills or turns the sign of SignWriting before it.
func isSignModifier(r rune) bool { return 0x1da9b <= r && r <= 0x1daaf }

// Escape returns s with a Go escape for each hidden character and each byte that is not UTF-8.
func Escape(s string) string { return escape(s, "") }

// Lines is [Escape] for a text of several lines: line feeds and tabs stay.
func Lines(s string) string { return escape(s, "\n\t") }

func escape(s, keep string) string {
	var scan Scanner
	var b strings.Builder
	done := 0
	for at, r := range s {
		n, shown := utf8.RuneLen(r), ""
		switch broken := r == utf8.RuneError && !strings.HasPrefix(s[at:], "\ufffd"); {
		case broken:
			n, shown = 1, fmt.Sprintf(`\x%02x`, s[at])
		case scan.Hidden(r) && !strings.ContainsRune(keep, r):
			shown = Rune(r)
		default:
			continue
		}
		b.WriteString(s[done:at])
		b.WriteString(shown)
		done = at + n
	}
	if done == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}

// IsMostlyText reports whether the lines of a content can be shown with [Lines]: it is UTF-8 without NUL,
// or at most one character of ten is a control character or not UTF-8. Tabs and line ends are not counted
// as control characters.
func IsMostlyText(content []byte) bool {
	if utf8.Valid(content) && bytes.IndexByte(content, 0) < 0 {
		return true
	}
	all, odd := 0, 0
	for rest := content; len(rest) > 0; all++ {
		r, n := utf8.DecodeRune(rest)
		if r == utf8.RuneError && n == 1 || unicode.IsControl(r) && r != '\t' && r != '\n' && r != '\r' {
			odd++
		}
		rest = rest[n:]
	}
	return odd*10 <= all
}

// Rune returns the escape of one character: \n, \x7f, \u3164, \U000e0041.
func Rune(r rune) string {
	quoted := strconv.QuoteRuneToASCII(r)
	return quoted[1 : len(quoted)-1]
}

// Quote is strconv.Quote with an escape for each hidden character.
func Quote(s string) string { return Escape(strconv.Quote(s)) }

// AppendJSON appends JSON text without white space to dst, with a \u escape for each hidden
// character. It decodes to the same value.
func AppendJSON(dst, text []byte) []byte {
	var scan Scanner
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		switch {
		case !scan.Hidden(r):
			dst = append(dst, text[:n]...)
		case r < 0x10000:
			dst = fmt.Appendf(dst, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			dst = fmt.Appendf(dst, `\u%04x\u%04x`, high, low)
		}
		text = text[n:]
	}
	return dst
}
