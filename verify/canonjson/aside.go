package canonjson

import (
	"bytes"
	"encoding/binary"
)

// smallObject is the size up to which an object that was sorted stays in the text. Nested unsorted
// objects move its bytes again, at most once for every dozen bytes; a larger object is not moved
// again.
const smallObject = 512

// aside stores the text of sorted objects that are too large to be moved again. In the text each is
// represented by a NUL, which JSON text never has, and the number of the object.
type aside struct {
	texts   [][]byte
	block   []byte // for small texts, next to each other
	scratch []byte
}

const (
	markSize  = 5
	blockSize = 64 << 10
)

// room returns empty memory for size bytes, to be passed to put.
func (a *aside) room(size int) []byte {
	if size <= smallObject {
		if a.scratch == nil {
			a.scratch = make([]byte, 0, smallObject)
		}
		return a.scratch
	}
	if size > blockSize/4 {
		return make([]byte, 0, size)
	}
	if cap(a.block)-len(a.block) < size {
		a.block = make([]byte, 0, blockSize)
	}
	return a.block[len(a.block) : len(a.block) : len(a.block)+size]
}

// put stores a text that was written into room, and appends its mark to dst.
func (a *aside) put(dst, text []byte) []byte {
	if len(text) <= blockSize/4 {
		a.block = a.block[:len(a.block)+len(text)]
	}
	dst = append(dst, 0)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(a.texts)))
	a.texts = append(a.texts, text)
	return dst
}

// expand appends text to dst, with the stored objects in place of their marks. The depth of
// recursion is that of the JSON.
func (a *aside) expand(dst, text []byte) []byte {
	for {
		n := bytes.IndexByte(text, 0)
		if n < 0 {
			return append(dst, text...)
		}
		dst = append(dst, text[:n]...)
		number := binary.LittleEndian.Uint32(text[n+1:])
		dst = a.expand(dst, a.texts[number])
		text = text[n+markSize:]
	}
}
