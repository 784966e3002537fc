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
		return Value{}, errTooLarge
	}
	return Consume(slices.Clone(data))
}

// Consume is [Parse] for data that nobody else needs: the value is written over
// it, so that a large one never stands in memory twice. Compact text is never
// longer than what it was read from, so only what has been read is written
// over. The decoder would look back at that for nothing but the names in the
// words of an error, which are not used.
func Consume(data []byte) (Value, error) {
	if len(data) > math.MaxUint32 {
		return Value{}, errTooLarge
	}
	p := parser{
		dec:     jsontext.NewDecoder(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true)),
		text:    data[:0],
		members: make([]member, 0, countMembers(data)),
	}
	if err := p.value(); err != nil {
		return Value{}, inWords(err)
	}
	if _, err := p.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return Value{}, errors.New("bytes after the value")
	}
	return Value{text: p.text}, nil
}

var errTooLarge = errors.New("larger than 4 GiB")

// inWords drops the path of names from an error of the decoder: it is as long
// as the input wants it to be.
func inWords(err error) error {
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) {
		return fmt.Errorf("%w at byte %d", syntactic.Err, syntactic.ByteOffset)
	}
	return err
}

// countMembers is the number of members in all of data, if it is JSON: room for
// them is made once, since what grows stands in memory twice meanwhile.
func countMembers(data []byte) int {
	n := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case ':':
			n++
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		}
	}
	return min(n, len(data)/minMember)
}

// minMember is the least number of bytes for a member and its comma or brackets:
// what is no JSON gets no more room than it could use.
const minMember = len(`"":0,`)

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
	named    bool   // the value of a name comes next
	start    uint32 // of its bracket in text
	first    int    // its first entry in members, if it is an object
}

// member is where one member of an object stands in text, from its quoted name
// to the end of its value.
type member struct{ start, end uint32 }

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
	return len(p.stack) > 0 && p.top().object && !p.top().named
}

// separate writes the colon that the value of a name needs, or the comma that
// the next element or name does. That is done only once the value, element or
// name has been read: the place of the separator has been read then as well.
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

// name opens a member whose quoted name begins at start, and notes when it
// does not come after the one before it.
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
	p.scratch = slices.Grow(p.scratch[:0], len(p.text)-int(top.start))
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
	return compareQuoted(p.quotedName(a), p.quotedName(b))
}

func (p *parser) quotedName(m member) []byte {
	text := p.text[m.start:]
	return text[:stringLen(text)]
}

func (p *parser) doubleKey(m member) error {
	return fmt.Errorf("key %.100q occurs twice in one object", unquote(p.quotedName(m)))
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
