package ignore

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// named are the classes of POSIX, in ASCII.
var named = map[string][]span{
	"alnum": {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}, "alpha": {{'A', 'Z'}, {'a', 'z'}}, "blank": {{' ', ' '}, {'\t', '\t'}},
	"cntrl": {{1, 0x1f}, {0x7f, 0x7f}}, "digit": {{'0', '9'}}, "graph": {{'!', '~'}}, "lower": {{'a', 'z'}},
	"print": {{' ', '~'}}, "punct": {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}, "space": {{'\t', '\r'}, {' ', ' '}},
	"upper": {{'A', 'Z'}}, "xdigit": {{'0', '9'}, {'A', 'F'}, {'a', 'f'}},
}

// span is all characters from one to another.
type span struct{ from, to rune }

var errOpen = errors.New("has a [ without a ]")

// class translates a class of characters after its opening bracket, and returns the rest of the
// text. A class that matches a slash in doublestar does not here.
func class(text string) (glob, rest string, err error) {
	negated := strings.HasPrefix(text, "!") || strings.HasPrefix(text, "^")
	if negated {
		text = text[1:]
	}
	var spans []span
	for first := true; first || !strings.HasPrefix(text, "]"); first = false {
		if name, after, ok := posix(text); ok {
			more, known := named[name]
			if !known {
				return "", "", fmt.Errorf("has the unknown class %q", name)
			}
			spans, text = append(spans, more...), after
			continue
		}
		var s span
		if s.from, text, err = character(text); err != nil {
			return "", "", err
		}
		s.to = s.from
		if strings.HasPrefix(text, "-") && !strings.HasPrefix(text, "-]") {
			if s.to, text, err = character(text[1:]); err != nil {
				return "", "", err
			}
		}
		spans = append(spans, s)
	}
	return spell(negated, spans), text[1:], nil
}

// posix reads a name such as "[:alpha:]".
func posix(text string) (name, rest string, ok bool) {
	if !strings.HasPrefix(text, "[:") {
		return "", "", false
	}
	return strings.Cut(text[2:], ":]")
}

// character reads one of a class.
func character(text string) (rune, string, error) {
	text, _ = strings.CutPrefix(text, `\`)
	if text == "" {
		return 0, "", errOpen
	}
	r, n := utf8.DecodeRuneInString(text)
	return r, text[n:], nil
}

// spell writes a class for doublestar.
func spell(negated bool, spans []span) string {
	var b strings.Builder
	b.WriteByte('[')
	if negated {
		b.WriteString("!/")
	}
	for _, s := range spans {
		switch {
		case s.from <= '/' && '/' <= s.to && !negated:
			writeSpan(&b, span{s.from, '/' - 1})
			writeSpan(&b, span{'/' + 1, s.to})
		default:
			writeSpan(&b, s)
		}
	}
	if b.Len() == 1 {
		return "[^\x00-\U0010ffff]" // it fits nothing
	}
	return b.String() + "]"
}

func writeSpan(b *strings.Builder, s span) {
	if s.from > s.to {
		return
	}
	fmt.Fprintf(b, `\%c-\%c`, s.from, s.to)
}
