package canonjson

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
)

// largeObject is the size of text from which an object is sorted by parts of its names: below it,
// comparing two names costs no more than comparing two numbers.
const largeObject = 64 << 10

// fewMembers is the number of members that are sorted by their whole names in any object.
const fewMembers = 8

// inOrder sorts the members of one object by their names. It returns an error for a duplicate name.
func (p *parser) inOrder(members []member) error {
	first, last := members[0], members[len(members)-1]
	if last.end-first.start < largeObject {
		return p.byName(members)
	}
	for i := range members {
		members[i].start++ // after the quote
	}
	return p.byParts(members)
}

// byName compares whole names.
func (p *parser) byName(members []member) error {
	slices.SortFunc(members, p.order)
	for i := 1; i < len(members); i++ {
		if p.compare(members[i-1], members[i]) == 0 {
			return p.doubleKey(members[i])
		}
	}
	return nil
}

// byParts compares the next four bytes of all names, and then, among names with equal bytes, the
// next four. So a name is read once. Comparing two whole names reads the text in two uncached
// places, and there would be twenty comparisons for each of a million names.
//
// The parts need no memory of their own: during the sort, start of a member is the unread rest of
// its name, and end is the part. Both are restored at the end.
func (p *parser) byParts(members []member) error {
	for len(members) > fewMembers {
		for i := range members {
			p.nextPart(&members[i])
		}
		slices.SortFunc(members, func(a, b member) int { return cmp.Compare(a.end, b.end) })
		var largest []member // last and in this loop, so that each recursion has at most half the members
		for rest := members; len(rest) > 0; {
			n := 1
			for n < len(rest) && rest[n].end == rest[0].end {
				n++
			}
			same := rest[:n]
			rest = rest[n:]
			if n > 1 && byte(same[0].end) == 0 {
				p.find(&same[0])
				return p.doubleKey(same[0])
			}
			if n > len(largest) {
				same, largest = largest, same
			}
			if err := p.byParts(same); err != nil {
				return err
			}
		}
		members = largest
	}
	for i := range members {
		p.find(&members[i])
	}
	return p.byName(members)
}

// nextPart reads four bytes of a name. As no byte of UTF-8 is 0xff, each is one more
// in the part, and zero is the end of the name.
func (p *parser) nextPart(m *member) {
	m.end = 0
	for range 4 {
		m.end <<= 8
		if p.text[m.start] != '"' {
			c, n := unescapedByte(p.text[m.start:])
			m.start += uint32(n)
			m.end |= uint32(c) + 1
		}
	}
}

// find looks for the beginning and the end of a member a part of whose name has been
// read. In a name each quote has a backslash before it, and the first one has not.
func (p *parser) find(m *member) {
	at := bytes.LastIndexByte(p.text[:m.start], '"')
	for p.text[at-1] == '\\' {
		at = bytes.LastIndexByte(p.text[:at], '"')
	}
	m.start = uint32(at)
	at += len(p.quotedName(*m)) + len(":")
	m.end = uint32(at + valueLen(p.text[at:]))
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

// compareQuoted orders two canonically quoted names by the UTF-8 bytes of the names themselves. A
// common prefix is skipped, except for an escape that ends differently.
func compareQuoted(a, b []byte) int {
	a, b = a[1:len(a)-1], b[1:len(b)-1]
	n := samePrefix(a, b)
	if n == len(a) || n == len(b) {
		return cmp.Compare(len(a), len(b))
	}
	n -= inEscape(a[:n])
	c, _ := unescapedByte(a[n:])
	d, _ := unescapedByte(b[n:])
	return cmp.Compare(c, d)
}

// samePrefix is how many bytes a and b have in common at their beginning.
func samePrefix(a, b []byte) int {
	n, end := 0, min(len(a), len(b))
	for ; n+8 <= end; n += 8 {
		if differ := binary.LittleEndian.Uint64(a[n:]) ^ binary.LittleEndian.Uint64(b[n:]); differ != 0 {
			return n + bits.TrailingZeros64(differ)/8
		}
	}
	for n < end && a[n] == b[n] {
		n++
	}
	return n
}

// inEscape returns the length of the incomplete escape at the end of text, or 0.
func inEscape(text []byte) int {
	at := max(0, len(text)-len(`\u001`))
	n := bytes.LastIndexByte(text[at:], '\\')
	if n < 0 {
		return 0
	}
	at += n
	before := len(bytes.TrimRight(text[:at], `\`))
	isEscaped, held := (at-before)%2 == 1, len(text)-at
	if isEscaped || held > 1 && text[at+1] != 'u' {
		return 0
	}
	return held
}

// unescapedByte returns the first byte that a canonically quoted text represents, and the length of
// its representation. Such text has escapes of single bytes only.
func unescapedByte(text []byte) (c byte, n int) {
	if text[0] != '\\' {
		return text[0], 1
	}
	if text[1] == 'u' {
		return byte(hex4(text[2:6])), 6
	}
	return unescape(text[1]), 2
}
