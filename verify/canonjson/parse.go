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

// MaxDepth is the deepest nesting of objects and arrays that is accepted; the top value is at
// depth 1.
const MaxDepth = 512

// Parse reads exactly one JSON value. On an error, which describes the fault, the value is the zero
// Value.
func Parse(data []byte) (Value, error) {
	if len(data) > math.MaxUint32 {
		return Value{}, errTooLarge
	}
	return Consume(slices.Clone(data))
}

// Consume is [Parse] for data that the caller does not use any more: the value is written over
// it, so that a large value is never in memory twice. The library's decoder reads all of it,
// and is released, before the first byte is written.
func Consume(data []byte) (Value, error) {
	if len(data) > math.MaxUint32 {
		return Value{}, errTooLarge
	}
	if err := checkGrammar(data); err != nil {
		return Value{}, inWords(err)
	}
	p := parser{in: data, text: data[:0], members: make([]member, 0, mostMembers(data))}
	p.order = p.compare
	if err := p.value(); err != nil {
		return Value{}, err
	}
	return Value{text: p.whole()}, nil
}

// checkGrammar returns an error unless data is one JSON value of at most [MaxDepth] levels. It
// changes nothing.
func checkGrammar(data []byte) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true))
	for {
		if _, err := dec.ReadToken(); err != nil {
			return err
		}
		depth := dec.StackDepth()
		if depth > MaxDepth {
			return fmt.Errorf("nested deeper than %d levels", MaxDepth)
		}
		if depth == 0 {
			break
		}
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("bytes after the value")
	}
	return nil
}

var errTooLarge = errors.New("larger than 4 GiB")

// inWords drops the path of names from an error of the decoder: its length is controlled by
// the input.
func inWords(err error) error {
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) {
		return fmt.Errorf("%w at byte %d", syntactic.Err, syntactic.ByteOffset)
	}
	return err
}

// mostMembers returns the maximum number of members of unfinished objects while data, which is
// valid JSON, is read. Memory for them is allocated once, since a slice that grows is in memory
// twice.
func mostMembers(data []byte) int {
	var before [MaxDepth + 1]int // for each open object, the number of members before it
	depth, now, most := 0, 0, 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '{':
			before[depth] = now
			depth++
		case '}':
			depth--
			now = before[depth]
		case ':':
			now++
			most = max(most, now)
		case '"':
			for i++; data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		}
	}
	return most
}

// parser reads tokens of data whose grammar was checked, and appends them to the compact text,
// which uses the memory of data and is never longer than the part that was read. Offsets are uint32
// to save memory: Consume has limited the size.
type parser struct {
	in      []byte // the unread rest
	text    []byte
	stack   []container
	members []member
	aside   aside
	order   func(a, b member) int // p.compare
}

// container is an object or array that has begun and not ended.
type container struct {
	object   bool
	unsorted bool
	filled   bool   // it has at least one element or member
	named    bool   // the next value belongs to a name
	start    uint32 // of its bracket in text
	first    int    // its first entry in members, if it is an object
}

// member is the position of one member of an object in text, from its quoted name to the end
// of its value.
type member struct{ start, end uint32 }

// value reads all tokens.
func (p *parser) value() error {
	for len(p.in) > 0 {
		if err := p.token(); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) token() error {
	c := p.in[0]
	switch c {
	case ' ', '\t', '\n', '\r', ',', ':':
		p.in = p.in[1:]
		return nil
	case '{', '[':
		p.in = p.in[1:]
		p.separate()
		p.stack = append(p.stack, container{object: c == '{', start: uint32(len(p.text)), first: len(p.members)})
		p.text = append(p.text, c)
		return nil
	case '}', ']':
		p.in = p.in[1:]
		return p.end(c)
	case '"':
		return p.str(p.take(stringLen(p.in)))
	}
	return p.scalar(p.take(scalarLen(p.in)))
}

// take returns the next n bytes, which stay valid until n bytes are written.
func (p *parser) take(n int) []byte {
	raw := p.in[:n]
	p.in = p.in[n:]
	return raw
}

// scalarLen returns the length of the number or literal at the beginning of text.
func scalarLen(text []byte) int {
	for n, c := range text {
		switch c {
		case ' ', '\t', '\n', '\r', ',', ':', ']', '}':
			return n
		}
	}
	return len(text)
}

func (p *parser) end(bracket byte) error {
	top := p.top()
	p.text = append(p.text, bracket)
	if top.object {
		if err := p.sort(top); err != nil {
			return err
		}
		p.members = p.members[:top.first]
	}
	p.stack = p.stack[:len(p.stack)-1]
	p.closeMember()
	return nil
}

func (p *parser) str(raw []byte) error {
	isName := p.nameIsNext()
	p.separate()
	start := uint32(len(p.text))
	p.text = appendString(p.text, raw)
	if isName {
		return p.name(start)
	}
	p.closeMember()
	return nil
}

func (p *parser) scalar(raw []byte) error {
	if c := raw[0]; c == '-' || '0' <= c && c <= '9' {
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

// nameIsNext reports whether a string at this point is the name of a member.
func (p *parser) nameIsNext() bool {
	return len(p.stack) > 0 && p.top().object && !p.top().named
}

// separate writes the colon after a name, or the comma before an element or name. It does so only
// after the value, element or name has been read: then the place of the separator has been read as
// well.
func (p *parser) separate() {
	if len(p.stack) == 0 {
		return
	}
	switch top := p.top(); {
	case top.named:
		p.text = append(p.text, ':')
	case top.filled:
		p.text = append(p.text, ',')
	default:
		top.filled = true
	}
}

// name opens a member whose quoted name begins at start, and records whether it follows the one
// before it.
func (p *parser) name(start uint32) error {
	m, top := member{start: start}, p.top()
	if len(p.members) > top.first {
		order := p.compare(p.members[len(p.members)-1], m)
		if order == 0 {
			return p.doubleKey(m)
		}
		top.unsorted = top.unsorted || order > 0
	}
	p.members, top.named = append(p.members, m), true
	return nil
}

// closeMember notes the end of the member whose value has just been written.
func (p *parser) closeMember() {
	if len(p.stack) > 0 && p.top().object {
		p.members[len(p.members)-1].end, p.top().named = uint32(len(p.text)), false
	}
}

// sort sorts the members of an object that has ended. It stores a large one aside, so that an
// unsorted object around it does not move it again: each byte is moved a bounded number of times,
// whatever the depth.
func (p *parser) sort(top *container) error {
	if !top.unsorted {
		return nil
	}
	members := p.members[top.first:]
	if err := p.inOrder(members); err != nil {
		return err
	}
	sorted := p.aside.room(len(p.text) - int(top.start))
	sorted = append(sorted, '{')
	for i, m := range members {
		if i > 0 {
			sorted = append(sorted, ',')
		}
		sorted = append(sorted, p.text[m.start:m.end]...)
	}
	sorted = append(sorted, '}')
	p.text = p.text[:top.start]
	if len(sorted) <= smallObject {
		p.text = append(p.text, sorted...)
	} else {
		p.text = p.aside.put(p.text, sorted)
	}
	return nil
}

// whole returns the text with the stored objects in their places.
func (p *parser) whole() []byte {
	if len(p.aside.texts) == 0 {
		return p.text
	}
	return p.aside.expand(p.text[:0], bytes.Clone(p.text))
}

// checkNumber rejects a number with a fraction or an exponent that is not finite as a float64.
// An integer may have any size.
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
