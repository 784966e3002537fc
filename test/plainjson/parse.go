package plainjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxDepth is the deepest nesting; the top value is at depth 1.
const maxDepth = 512

// Parse reads one JSON text (RFC 8259, section 2):
//
//	JSON-text = ws value ws
func Parse(text []byte) (any, error) {
	if err := checkUTF8(text); err != nil {
		return nil, err
	}
	r := &reader{rest: string(text)}
	r.whitespace()
	v, err := r.value(1)
	if err != nil {
		return nil, err
	}
	r.whitespace()
	if r.rest != "" {
		return nil, errors.New("bytes after the value")
	}
	return v, nil
}

// reader holds what has not been read yet.
type reader struct{ rest string }

// take reads a piece of text if it comes next.
func (r *reader) take(piece string) bool {
	rest, ok := strings.CutPrefix(r.rest, piece)
	r.rest = rest
	return ok
}

// unexpected is the error for whatever comes next. A byte order mark comes
// here too: it is not white space (section 8.1).
func (r *reader) unexpected(want string) error {
	return fmt.Errorf("%.20q comes instead of %s", r.rest, want)
}

// whitespace: section 2.
//
//	ws = *( %x20 / %x09 / %x0A / %x0D )
func (r *reader) whitespace() {
	for r.take("\x20") || r.take("\x09") || r.take("\x0A") || r.take("\x0D") {
	}
}

// value: section 3.
//
//	value = false / null / true / object / array / number / string
//
// A structural character may have white space on either side (section 2); who
// reads one sees to that.
func (r *reader) value(depth int) (any, error) {
	switch {
	case r.take("false"):
		return false, nil
	case r.take("null"):
		return nil, nil
	case r.take("true"):
		return true, nil
	case r.take("{"):
		return r.object(depth)
	case r.take("["):
		return r.array(depth)
	case r.take(`"`):
		return r.str()
	}
	return r.number()
}

var errDeep = fmt.Errorf("deeper than %d", maxDepth)

// object: section 4, after its brace. Names are compared after their escapes
// are gone, and each may occur once.
//
//	object = begin-object [ member *( value-separator member ) ] end-object
//	member = string name-separator value
func (r *reader) object(depth int) (any, error) {
	if depth > maxDepth {
		return nil, errDeep
	}
	members := map[string]any{}
	r.whitespace()
	if r.take("}") {
		return members, nil
	}
	for {
		name, value, err := r.member(depth)
		if err != nil {
			return nil, err
		}
		if _, twice := members[name]; twice {
			return nil, fmt.Errorf("name %q occurs twice", name)
		}
		members[name] = value
		if r.take("}") {
			return members, nil
		}
		if !r.take(",") {
			return nil, r.unexpected("a comma or the end of an object")
		}
	}
}

func (r *reader) member(depth int) (string, any, error) {
	r.whitespace()
	if !r.take(`"`) {
		return "", nil, r.unexpected("a name")
	}
	name, err := r.str()
	if err != nil {
		return "", nil, err
	}
	r.whitespace()
	if !r.take(":") {
		return "", nil, r.unexpected("a colon")
	}
	value, err := r.element(depth)
	return name, value, err
}

// element is a value inside another, with the white space round it.
func (r *reader) element(depth int) (any, error) {
	r.whitespace()
	value, err := r.value(depth + 1)
	r.whitespace()
	return value, err
}

// array: section 5, after its bracket.
//
//	array = begin-array [ value *( value-separator value ) ] end-array
func (r *reader) array(depth int) (any, error) {
	if depth > maxDepth {
		return nil, errDeep
	}
	elements := []any{}
	r.whitespace()
	if r.take("]") {
		return elements, nil
	}
	for {
		value, err := r.element(depth)
		if err != nil {
			return nil, err
		}
		elements = append(elements, value)
		if r.take("]") {
			return elements, nil
		}
		if !r.take(",") {
			return nil, r.unexpected("a comma or the end of an array")
		}
	}
}

// number: section 6.
//
//	number = [ minus ] int [ frac ] [ exp ]
//	int    = zero / ( digit1-9 *DIGIT )
//	frac   = decimal-point 1*DIGIT
//	exp    = e [ minus / plus ] 1*DIGIT
func (r *reader) number() (any, error) {
	begin, plain := r.rest, true
	r.take("-")
	if !r.take("0") && r.digits() == "" {
		return nil, r.unexpected("a value")
	}
	if r.take(".") {
		plain = false
		if r.digits() == "" {
			return nil, r.unexpected("a digit of a fraction")
		}
	}
	if r.take("e") || r.take("E") {
		plain = false
		_ = r.take("-") || r.take("+")
		if r.digits() == "" {
			return nil, r.unexpected("a digit of an exponent")
		}
	}
	text := begin[:len(begin)-len(r.rest)]
	if !plain && !Finite(text) { // an integer may have any size
		return nil, fmt.Errorf("%.40s is not finite", text)
	}
	return json.Number(text), nil
}

func (r *reader) digits() string {
	begin := r.rest
	for r.rest != "" && '0' <= r.rest[0] && r.rest[0] <= '9' {
		r.rest = r.rest[1:]
	}
	return begin[:len(begin)-len(r.rest)]
}

// str: section 7, after its first quotation mark. That the bytes are UTF-8 has
// been checked.
//
//	unescaped = %x20-21 / %x23-5B / %x5D-10FFFF
func (r *reader) str() (string, error) {
	var text strings.Builder
	for {
		switch {
		case r.rest == "":
			return "", r.unexpected("the end of a string")
		case r.take(`"`):
			return text.String(), nil
		case r.take(`\`):
			c, err := r.escape()
			if err != nil {
				return "", err
			}
			text.WriteString(c)
		case r.rest[0] < 0x20:
			return "", r.unexpected("a character that is not a control character")
		default:
			text.WriteByte(r.rest[0])
			r.rest = r.rest[1:]
		}
	}
}

// escape: section 7, after the backslash. Half of a surrogate pair alone is not a
// character.
func (r *reader) escape() (string, error) {
	for letter, c := range map[string]string{
		`"`: "\x22", `\`: "\x5C", `/`: "\x2F", `b`: "\x08", `f`: "\x0C", `n`: "\x0A", `r`: "\x0D", `t`: "\x09",
	} {
		if r.take(letter) {
			return c, nil
		}
	}
	first, err := r.codeUnit()
	if err != nil {
		return "", err
	}
	if first < 0xD800 || first > 0xDFFF {
		return utf8Of(first), nil
	}
	if first >= 0xDC00 || !r.take(`\`) {
		return "", errors.New("a lone surrogate")
	}
	second, err := r.codeUnit()
	if err != nil {
		return "", err
	}
	if second < 0xDC00 || second > 0xDFFF {
		return "", errors.New("a lone surrogate")
	}
	return utf8Of(0x10000 + (first-0xD800)*0x400 + (second - 0xDC00)), nil
}

// codeUnit reads a "u" and four hexadecimal digits of either case.
func (r *reader) codeUnit() (rune, error) {
	if !r.take("u") {
		return 0, r.unexpected("an escape")
	}
	var unit rune
	for range 4 {
		if r.rest == "" {
			return 0, r.unexpected("a hexadecimal digit")
		}
		digit := strings.IndexByte("0123456789abcdef", lower(r.rest[0]))
		if digit < 0 {
			return 0, r.unexpected("a hexadecimal digit")
		}
		unit = unit*16 + rune(digit)
		r.rest = r.rest[1:]
	}
	return unit, nil
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'F' {
		return c - 'A' + 'a'
	}
	return c
}

func utf8Of(c rune) string { return string(utf8.AppendRune(nil, c)) }
