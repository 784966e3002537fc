package canonjson

import (
	"bytes"
	"iter"

	"github.com/go-json-experiment/json/jsontext"
)

// Value is one JSON value that [Parse] accepted. It is immutable. The zero Value is empty: its
// methods report false.
type Value struct{ text []byte }

// Object is a Value that is a JSON object. Its members are in ascending order
// of the UTF-8 bytes of their names.
type Object struct{ Value }

// Object returns v as an object, and whether it is one.
func (v Value) Object() (Object, bool) {
	if v.first() != '{' {
		return Object{}, false
	}
	return Object{v}, true
}

// Text returns the text of a JSON string, and whether v is one.
func (v Value) Text() (string, bool) {
	if v.first() != '"' {
		return "", false
	}
	return string(unquote(v.text)), true
}

// IsText reports whether v is a string.
func (v Value) IsText() bool { return v.first() == '"' }

// IsTrue reports whether v is exactly the boolean true.
func (v Value) IsTrue() bool { return string(v.text) == "true" }

// IsArray reports whether v is an array.
func (v Value) IsArray() bool { return v.first() == '[' }

// Elements yields the elements of an array in order; nothing for any other value.
func (v Value) Elements() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		if v.first() != '[' {
			return
		}
		for rest := v.text[1:]; rest[0] != ']'; rest = afterComma(rest) {
			n := valueLen(rest)
			if !yield(Value{rest[:n:n]}) {
				return
			}
			rest = rest[n:]
		}
	}
}

// Members yields the members of an object in ascending order of their names.
func (o Object) Members() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		if o.first() != '{' {
			return
		}
		for rest := o.text[1:]; rest[0] != '}'; rest = afterComma(rest) {
			n := stringLen(rest)
			name := rest[:n]
			rest = rest[n+1:]
			n = valueLen(rest)
			if !yield(string(unquote(name)), Value{rest[:n:n]}) {
				return
			}
			rest = rest[n:]
		}
	}
}

// Get returns the member with this exact name, or false.
func (o Object) Get(name string) (Value, bool) {
	for n, v := range o.Members() {
		if n == name {
			return v, true
		}
		if n > name {
			break
		}
	}
	return Value{}, false
}

// Len returns the number of members.
func (o Object) Len() int {
	n := 0
	for range o.Members() {
		n++
	}
	return n
}

// Without returns the object without the member of this name.
func (o Object) Without(name string) Object {
	text := append(make([]byte, 0, len(o.text)), '{')
	for n, v := range o.Members() {
		if n == name {
			continue
		}
		if len(text) > 1 {
			text = append(text, ',')
		}
		text = appendQuoted(text, []byte(n))
		text = append(text, ':')
		text = append(text, v.text...)
	}
	return Object{Value{append(text, '}')}}
}

func (v Value) first() byte {
	if len(v.text) == 0 {
		return 0
	}
	return v.text[0]
}

// The functions below read compact text, which Parse has made well formed.

// afterComma skips the comma between two elements, if there is one.
func afterComma(text []byte) []byte {
	if text[0] == ',' {
		return text[1:]
	}
	return text
}

// valueLen returns the length of the value at the beginning of text.
func valueLen(text []byte) int {
	depth, n := 0, 0
	for {
		switch text[n] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		n += tokenLen(text[n:])
		if depth == 0 {
			return n
		}
	}
}

// tokenLen returns the length of the token at the beginning of text; brackets, commas and colons
// are tokens of one byte.
func tokenLen(text []byte) int {
	switch text[0] {
	case '{', '}', '[', ']', ',', ':':
		return 1
	case '"':
		return stringLen(text)
	case 0:
		return markSize
	}
	if n := bytes.IndexAny(text, ",]}:"); n >= 0 {
		return n
	}
	return len(text)
}

// stringLen returns the length of the quoted string at the beginning of text.
func stringLen(text []byte) int {
	n := 1
	for {
		n += bytes.IndexByte(text[n:], '"') + 1
		back := n - 2
		for text[back] == '\\' {
			back--
		}
		if (n-2-back)%2 == 0 {
			return n
		}
	}
}

// unquote returns the text of a canonically quoted string.
func unquote(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	text, err := jsontext.AppendUnquote(nil, quoted)
	if err != nil {
		panic("canonjson: a string that Parse accepted cannot be read")
	}
	return text
}
