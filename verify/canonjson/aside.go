package canonjson

import (
	"bytes"
	"encoding/binary"
)

// smallObject is the size up to which an object that was put in order stays in the
// text. Objects in it that are out of order, each in the other, move its bytes again,
// at most once for every dozen of bytes; beyond this size none is moved again.
const smallObject = 512

// aside holds the text of ordered objects that are too large to be moved again. In the text
// each is represented by a NUL, which JSON text never has, and the number of the object.
type aside struct {
	texts   [][]byte
	block   []byte // where small texts are put next to each other
	scratch []byte
}

const (
	markSize  = 5
	blockSize = 64 << 10
)

// room returns empty memory for size bytes, in which put may keep them.
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

// put keeps a text that was written into room, and appends its mark to dst.
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
