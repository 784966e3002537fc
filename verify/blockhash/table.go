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

// BlockSize is the number of bytes in every block but the last, in a table of
// chaining values. Larger blocks make small random reads dearer, smaller ones
// make the table larger.
const BlockSize = 64 << 10

// TagBlockSize is the block size of a table with tags. Tags are half as long and far faster to
// check, so blocks are smaller: see docs/performance.md for the measurements.
const TagBlockSize = 32 << 10

// Table has a file's size, its SHA-256, and values to check its blocks: the chaining value at the
// end of every block but the last (32 bytes each) or, in a table of a tagging [Hasher], a tag of
// every block (16 bytes each). The zero Table belongs to no file.
type Table struct {
	size   int64
	serial uint64 // of a table with tags; 0 in one of chaining values
	digest [sha256.Size]byte
	marks  []byte // chaining values or tags
}

// Size is the number of bytes that were hashed.
func (t *Table) Size() int64 { return t.size }

// Digest is the SHA-256 of those bytes.
func (t *Table) Digest() [sha256.Size]byte { return t.digest }

// Blocks is the number of blocks; an empty file has one, which is empty.
func (t *Table) Blocks() int64 { return max(1, (t.size+t.blockSize()-1)/t.blockSize()) }

// blockSize is the number of bytes in every block but the last.
func (t *Table) blockSize() int64 {
	if t.serial != 0 {
		return TagBlockSize
	}
	return BlockSize
}

// blockLen is the number of bytes in block i.
func (t *Table) blockLen(i int64) int {
	return int(min(t.blockSize(), t.size-i*t.blockSize()))
}

// holds reports whether data is block i. The nonce is memory of the caller.
func (t *Table) holds(i int64, data []byte, n *nonce) bool {
	if t.serial != 0 {
		return tagHolds(t.marks[i*tagLen:(i+1)*tagLen], n.set(t.serial, i), data)
	}
	if i == t.Blocks()-1 {
		return EndsIn(t.stateBefore(i), i*BlockSize, data, t.digest)
	}
	return LeadsTo(t.stateBefore(i), i*BlockSize, data, t.stateBefore(i+1))
}

// LeadsTo reports whether a block of a file at offset off, a multiple of 64, leads from the
// chaining value before it (nil: at the start of the file) to the one after it. The length of the
// block is a multiple of 64.
func LeadsTo(before []byte, off int64, block, after []byte) bool {
	h := hashers.Get().(hash.Hash)
	defer hashers.Put(h)
	resume(h, before, off)
	h.Write(block)
	return subtle.ConstantTimeCompare(appendState(make([]byte, 0, sha256.Size), h), after) == 1
}

// EndsIn is [LeadsTo] for the last block of a file, of any length, and the SHA-256 of the file.
func EndsIn(before []byte, off int64, block []byte, digest [sha256.Size]byte) bool {
	h := hashers.Get().(hash.Hash)
	defer hashers.Put(h)
	resume(h, before, off)
	h.Write(block)
	return bytes.Equal(h.Sum(make([]byte, 0, sha256.Size)), digest[:])
}

// stateBefore is the chaining value at the start of block i; nil for the first.
func (t *Table) stateBefore(i int64) []byte {
	if i == 0 {
		return nil
	}
	return t.marks[(i-1)*sha256.Size : i*sha256.Size]
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
