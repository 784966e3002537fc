package canonjson

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
)

// Marshal returns a Go value as canonical JSON. It accepts what encoding/json accepts, with struct
// tags.
func Marshal(v any) ([]byte, error) {
	raw, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("writing JSON: %w", err)
	}
	value, err := Consume(raw)
	if err != nil {
		return nil, fmt.Errorf("writing JSON: %w", err)
	}
	return value.Append(nil), nil
}

// Append appends the canonical form of v to dst.
func (v Value) Append(dst []byte) []byte {
	for rest := v.text; len(rest) > 0; {
		n := tokenLen(rest)
		dst = appendToken(dst, rest[:n])
		rest = rest[n:]
	}
	return dst
}

// WriteTo writes the canonical form of v in pieces, so that a large value need not be in
// memory twice.
func (v Value) WriteTo(w io.Writer) (int64, error) {
	var total int64
	buf := make([]byte, 0, writeSize)
	flush := func() error {
		n, err := w.Write(buf)
		total += int64(n)
		buf = buf[:0]
		return err
	}
	for rest := v.text; len(rest) > 0; {
		n := tokenLen(rest)
		buf = appendToken(buf, rest[:n])
		rest = rest[n:]
		if len(buf) < writeSize {
			continue
		}
		if err := flush(); err != nil {
			return total, err
		}
	}
	return total, flush()
}

const writeSize = 32 << 10

// WriteASCII writes the canonical form of v with every character outside U+0020 to U+007E
// escaped as \uxxxx, in surrogate pairs beyond the basic plane. proof_hash is computed over
// this form (SPECTRUM-04, PROOF.json). Like [Value.WriteTo] it writes in pieces.
func (v Value) WriteASCII(w io.Writer) error {
	_, err := v.WriteTo(&asciiWriter{w: w})
	return err
}

// asciiWriter escapes the text written to it. Every Write must have whole characters, as the tokens
// of WriteTo do.
type asciiWriter struct {
	w   io.Writer
	buf []byte
}

func (a *asciiWriter) Write(p []byte) (int, error) {
	a.buf = appendASCII(a.buf[:0], p)
	if _, err := a.w.Write(a.buf); err != nil {
		return 0, err
	}
	return len(p), nil
}

func appendASCII(dst, text []byte) []byte {
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		text = text[n:]
		switch {
		case r < 0x7f:
			dst = append(dst, byte(r))
		case r < 0x10000:
			dst = fmt.Appendf(dst, `\u%04x`, r)
		default:
			r -= 0x10000
			dst = fmt.Appendf(dst, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		}
	}
	return dst
}

// appendToken appends one token of compact text; only numbers change.
func appendToken(dst, token []byte) []byte {
	if c := token[0]; c == '-' || '0' <= c && c <= '9' {
		return appendNumber(dst, token)
	}
	return append(dst, token...)
}

// appendNumber appends the canonical form of a number: an integer verbatim, any other number
// as the shortest positional decimal of its float64.
func appendNumber(dst, raw []byte) []byte {
	if isInteger(raw) {
		if string(raw) == "-0" {
			raw = raw[1:]
		}
		return append(dst, raw...)
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		panic("canonjson: a number that Parse accepted is not finite")
	}
	if f == 0 {
		return append(dst, '0') // also -0.0
	}
	return strconv.AppendFloat(dst, f, 'f', -1, 64)
}

// appendString appends a JSON string, whose grammar was checked, in canonical quotes. A string
// without a backslash is already canonical. The result is never longer than raw, and dst may
// end in the same memory before raw.
func appendString(dst, raw []byte) []byte {
	for {
		n := bytes.IndexByte(raw, '\\')
		if n < 0 {
			return append(dst, raw...)
		}
		dst = append(dst, raw[:n]...)
		raw = raw[n:]
		if raw[1] != 'u' {
			dst, raw = appendChar(dst, rune(unescape(raw[1]))), raw[2:]
			continue
		}
		r := hex4(raw[2:6])
		raw = raw[6:]
		if utf16.IsSurrogate(r) {
			r, raw = utf16.DecodeRune(r, hex4(raw[2:6])), raw[6:]
		}
		dst = appendChar(dst, r)
	}
}

// unescape returns the character of a one-letter escape.
func unescape(letter byte) byte {
	switch letter {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return letter // a quote, a slash or a backslash
}

// hex4 is the value of four hex digits.
func hex4(digits []byte) (r rune) {
	for _, c := range digits {
		switch {
		case c <= '9':
			c -= '0'
		default:
			c = c&^0x20 - 'A' + 10
		}
		r = r<<4 | rune(c)
	}
	return r
}

// appendChar appends one character as canonical JSON has it in a string.
func appendChar(dst []byte, r rune) []byte {
	switch {
	case r == '"' || r == '\\':
		return append(dst, '\\', byte(r))
	case r >= 0x20:
		return utf8.AppendRune(dst, r)
	case shortEscape[r] != 0:
		return append(dst, '\\', shortEscape[r])
	}
	const digits = "0123456789abcdef"
	return append(dst, '\\', 'u', '0', '0', digits[r>>4], digits[r&15])
}

// AppendText appends a string in canonical form to dst. It must be UTF-8, as parsed text is.
func AppendText(dst []byte, text string) []byte { return appendQuoted(dst, text) }

// appendQuoted appends text in quotes, with only the required escapes.
func appendQuoted[T string | []byte](dst []byte, text T) []byte {
	dst = append(dst, '"')
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c >= 0x20:
			dst = append(dst, c)
		case shortEscape[c] != 0:
			dst = append(dst, '\\', shortEscape[c])
		default:
			dst = fmt.Appendf(dst, `\u%04x`, c)
		}
	}
	return append(dst, '"')
}

// shortEscape has the letter of each control character with a short escape.
var shortEscape = [0x20]byte{'\b': 'b', '\t': 't', '\n': 'n', '\f': 'f', '\r': 'r'}
