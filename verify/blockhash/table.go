package blockhash

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding"
	"encoding/binary"
	"hash"
	"sync"
)

// BlockSize is the number of bytes in every block but the last. Larger blocks
// make small random reads dearer, smaller ones make the table larger.
const BlockSize = 64 << 10

// Table holds a file's size, its SHA-256, and the chaining value at the end of
// every block but the last: 32 bytes a block. The zero Table belongs to no file.
type Table struct {
	size   int64
	digest [sha256.Size]byte
	states []byte
}

// Size is the number of bytes that were hashed.
func (t *Table) Size() int64 { return t.size }

// Digest is the SHA-256 of those bytes.
func (t *Table) Digest() [sha256.Size]byte { return t.digest }

// Blocks is the number of blocks; an empty file has one, which is empty.
func (t *Table) Blocks() int64 { return max(1, (t.size+BlockSize-1)/BlockSize) }

// blockLen is the number of bytes in block i.
func (t *Table) blockLen(i int64) int {
	return int(min(BlockSize, t.size-i*BlockSize))
}

// holds says whether data is block i.
func (t *Table) holds(i int64, data []byte) bool {
	h := hashers.Get().(hash.Hash)
	defer hashers.Put(h)
	resume(h, t.stateBefore(i), i*BlockSize)
	h.Write(data)
	if i == t.Blocks()-1 {
		return bytes.Equal(h.Sum(make([]byte, 0, sha256.Size)), t.digest[:])
	}
	return subtle.ConstantTimeCompare(appendState(nil, h), t.stateBefore(i+1)) == 1
}

// stateBefore is the chaining value at the start of block i; nil for the first.
func (t *Table) stateBefore(i int64) []byte {
	if i == 0 {
		return nil
	}
	return t.states[(i-1)*sha256.Size : i*sha256.Size]
}

// The binary form of Go's SHA-256, fixed by its compatibility promise: a magic
// of four bytes, the chaining value, a partial input block, and the length.
const (
	magic    = "sha\x03"
	stateLen = len(magic) + sha256.Size + sha256.BlockSize + 8
)

var hashers = sync.Pool{New: func() any { return sha256.New() }}

// appendState appends the chaining value of h.
func appendState(dst []byte, h hash.Hash) []byte {
	var buf [stateLen]byte
	text, err := h.(encoding.BinaryAppender).AppendBinary(buf[:0])
	if err != nil || len(text) != stateLen {
		panic("blockhash: SHA-256 does not give its state")
	}
	return append(dst, text[len(magic):][:sha256.Size]...)
}

// resume sets h to the chaining value state after n bytes, n a multiple of
// SHA-256's own block size. A nil state is the beginning.
func resume(h hash.Hash, state []byte, n int64) {
	if state == nil {
		h.Reset()
		return
	}
	var buf [stateLen]byte
	text := append(buf[:0], magic...)
	text = append(text, state...)
	binary.BigEndian.PutUint64(buf[stateLen-8:], uint64(n))
	if err := h.(encoding.BinaryUnmarshaler).UnmarshalBinary(text[:stateLen]); err != nil {
		panic("blockhash: SHA-256 does not take its state: " + err.Error())
	}
}
