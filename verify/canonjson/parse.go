package canonjson

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxDepth is the deepest nesting of objects and arrays that is accepted; the
// top value is at depth 1 (decision D6).
const MaxDepth = 512

// Parse reads exactly one JSON value. The error says what is wrong with it; on
// an error the value is the zero Value.
func Parse(data []byte) (Value, error) {
	if len(data) > math.MaxUint32 {
		return Value{}, errors.New("larger than 4 GiB")
	}
	p := parser{
		dec:  jsontext.NewDecoder(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true)),
		text: make([]byte, 0, len(data)),
	}
	if err := p.value(); err != nil {
		return Value{}, err
	}
	if _, err := p.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return Value{}, errors.New("bytes after the value")
	}
	return Value{text: p.text}, nil
}

// parser appends tokens to the compact text. Offsets are uint32: Parse has
// bounded the size, and there may be many of them.
type parser struct {
	dec     *jsontext.Decoder
	text    []byte
	stack   []container
	members []member
	scratch []byte
}

// container is an object or array that has begun and not ended.
type container struct {
	object   bool
	unsorted bool
	filled   bool   // it has at least one element or member
	start    uint32 // of its bracket in text
	first    int    // its first entry in members, if it is an object
}

// member is where one member of an object stands in text: its quoted name
// from start to colon, its value up to end.
type member struct{ start, colon, end uint32 }

// value reads tokens until the one value that began has ended.
func (p *parser) value() error {
	for {
		if err := p.token(); err != nil {
			return err
		}
		if len(p.stack) == 0 {
			return nil
		}
	}
}

func (p *parser) token() error {
	switch kind := p.dec.PeekKind(); kind {
	case '{', '[':
		return p.begin(kind)
	case '}', ']':
		return p.end()
	case '"':
		return p.str()
	default:
		return p.scalar(kind)
	}
}

func (p *parser) begin(kind jsontext.Kind) error {
	if _, err := p.dec.ReadToken(); err != nil {
		return err
	}
	p.separate()
	if len(p.stack) == MaxDepth {
		return fmt.Errorf("nested deeper than %d levels", MaxDepth)
	}
	p.stack = append(p.stack, container{object: kind == '{', start: uint32(len(p.text)), first: len(p.members)})
	p.text = append(p.text, byte(kind))
	return nil
}

func (p *parser) end() error {
	tok, err := p.dec.ReadToken()
	if err != nil {
		return err
	}
	top := p.top()
	if top.object {
		if err := p.order(top); err != nil {
			return err
		}
		p.members = p.members[:top.first]
	}
	p.text = append(p.text, byte(tok.Kind()))
	p.stack = p.stack[:len(p.stack)-1]
	p.closeMember()
	return nil
}

func (p *parser) str() error {
	raw, err := p.dec.ReadValue()
	if err != nil {
		return err
	}
	isName := p.nameIsNext()
	p.separate()
	start := uint32(len(p.text))
	if p.text, err = appendString(p.text, raw); err != nil {
		return err
	}
	if isName {
		return p.name(start)
	}
	p.closeMember()
	return nil
}

func (p *parser) scalar(kind jsontext.Kind) error {
	raw, err := p.dec.ReadValue()
	if err != nil {
		return err
	}
	if kind == '0' {
		if err := checkNumber(raw); err != nil {
			return err
		}
	}
	p.separate()
	p.text = append(p.text, raw...)
	p.closeMember()
	return nil
}

func (p *parser) top() *container { return &p.stack[len(p.stack)-1] }

// nameIsNext says whether a string that comes now is the name of a member.
func (p *parser) nameIsNext() bool {
	if len(p.stack) == 0 || !p.top().object {
		return false
	}
	open := len(p.members)
	return open == p.top().first || p.members[open-1].end != 0
}

// separate writes the comma that the next element or name needs.
func (p *parser) separate() {
	if len(p.stack) == 0 {
		return
	}
	top := p.top()
	if top.object && !p.nameIsNext() {
		return
	}
	if top.filled {
		p.text = append(p.text, ',')
	}
	top.filled = true
}

// name opens a member whose quoted name begins at start, and notes when it
// does not come after the one before it.
func (p *parser) name(start uint32) error {
	m := member{start: start, colon: uint32(len(p.text))}
	if top := p.top(); len(p.members) > top.first {
		order := p.compare(p.members[len(p.members)-1], m)
		if order == 0 {
			return p.doubleKey(m)
		}
		top.unsorted = top.unsorted || order > 0
	}
	p.members = append(p.members, m)
	p.text = append(p.text, ':')
	return nil
}

// closeMember notes the end of the member whose value has just been written.
func (p *parser) closeMember() {
	if len(p.stack) > 0 && p.top().object {
		p.members[len(p.members)-1].end = uint32(len(p.text))
	}
}

// order puts the members of an object that has ended in ascending order.
func (p *parser) order(top *container) error {
	if !top.unsorted {
		return nil
	}
	members := p.members[top.first:]
	slices.SortFunc(members, p.compare)
	for i := 1; i < len(members); i++ {
		if p.compare(members[i-1], members[i]) == 0 {
			return p.doubleKey(members[i])
		}
	}
	p.scratch = p.scratch[:0]
	for i, m := range members {
		if i > 0 {
			p.scratch = append(p.scratch, ',')
		}
		p.scratch = append(p.scratch, p.text[m.start:m.end]...)
	}
	copy(p.text[top.start+1:], p.scratch)
	return nil
}

func (p *parser) compare(a, b member) int {
	return compareQuoted(p.text[a.start:a.colon], p.text[b.start:b.colon])
}

func (p *parser) doubleKey(m member) error {
	return fmt.Errorf("key %.100q occurs twice in one object", unquote(p.text[m.start:m.colon]))
}

// compareQuoted orders two canonically quoted names by the UTF-8 bytes of the
// names themselves.
func compareQuoted(a, b []byte) int {
	if bytes.IndexByte(a, '\\') < 0 && bytes.IndexByte(b, '\\') < 0 {
		return bytes.Compare(a[1:len(a)-1], b[1:len(b)-1])
	}
	return bytes.Compare(unquote(a), unquote(b))
}

// checkNumber refuses what has a fraction or an exponent and is not finite as
// a float64. An integer may have any size (D7).
func checkNumber(raw []byte) error {
	if isInteger(raw) {
		return nil
	}
	if _, err := strconv.ParseFloat(string(raw), 64); err != nil {
		return fmt.Errorf("number %.40s is not finite", raw)
	}
	return nil
}

func isInteger(raw []byte) bool { return !bytes.ContainsAny(raw, ".eE") }
