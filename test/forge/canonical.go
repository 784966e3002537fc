package forge

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// Canonical writes canonical JSON (SPECTRUM-04). It takes what encoding/json
// makes of a document with UseNumber, integers, and lists of strings.
func Canonical(v any) []byte { return write(nil, v, quote) }

// ascii is the form that a proof hash is taken over: every character outside
// U+0020 to U+007E is escaped.
func ascii(v any) []byte { return write(nil, v, quoteASCII) }

func write(b []byte, v any, quote func(string) string) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...)
	case bool:
		return strconv.AppendBool(b, v)
	case int:
		return strconv.AppendInt(b, int64(v), 10)
	case json.Number:
		return append(b, number(string(v))...)
	case string:
		return append(b, quote(v)...)
	case []any:
		return writeArray(b, v, quote)
	case []string:
		var elements []any
		for _, s := range v {
			elements = append(elements, s)
		}
		return writeArray(b, elements, quote)
	case map[string]any:
		return writeObject(b, v, quote)
	}
	panic(fmt.Sprintf("forge: no JSON: %T", v))
}

// number returns a number in canonical form.
func number(s string) string {
	if strings.ContainsAny(s, ".eE") {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			panic(fmt.Sprintf("forge: no number: %v", err))
		}
		s = strconv.FormatFloat(f, 'f', -1, 64)
	}
	if s == "-0" {
		return "0"
	}
	return s
}

func writeArray(b []byte, elements []any, quote func(string) string) []byte {
	b = append(b, '[')
	for i, element := range elements {
		if i > 0 {
			b = append(b, ',')
		}
		b = write(b, element, quote)
	}
	return append(b, ']')
}

func writeObject(b []byte, members map[string]any, quote func(string) string) []byte {
	b = append(b, '{')
	for i, name := range slices.Sorted(maps.Keys(members)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, quote(name)...), ':')
		b = write(b, members[name], quote)
	}
	return append(b, '}')
}

var short = map[rune]string{'"': `\"`, '\\': `\\`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`}

func quote(s string) string {
	return quoteIf(s, func(r rune) bool { return r < ' ' })
}

func quoteASCII(s string) string {
	return quoteIf(s, func(r rune) bool { return r < ' ' || r > '~' })
}

func quoteIf(s string, escape func(rune) bool) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch name, ok := short[r]; {
		case ok:
			b.WriteString(name)
		case !escape(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
