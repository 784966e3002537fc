package blockhash

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
)

// Hasher makes tables. It has a buffer, so there is one for each worker, for many files. It is not
// safe for concurrent use.
type Hasher struct {
	hash  hash.Hash
	buf   []byte
	marks []byte // of the current file
	tags  bool
	nonce nonce

	every  int64  // bytes between two chaining values in values; 0 for none
	values []byte // of the current file
}

// readSize is how much is read at once: several blocks, and few enough bytes
// to stay in a core's cache.
const readSize = 4 * BlockSize

// NewHasher returns a Hasher whose tables cost nothing extra to make.
func NewHasher() *Hasher {
	return &Hasher{hash: sha256.New(), buf: make([]byte, readSize)}
}

// NewTagger returns a Hasher that tags every block that it hashes, for files that will be read
// repeatedly.
func NewTagger() *Hasher {
	h := NewHasher()
	h.tags = true
	return h
}

// Every makes the Hasher also record the chaining values at each multiple of so many bytes, which
// are a multiple of [BlockSize]; see [Hasher.Values].
func (h *Hasher) Every(bytes int64) *Hasher {
	h.every = bytes
	return h
}

// Values returns the chaining values between blocks, in order, of the file that [Hasher.Sum] read
// last, for the block size that was passed to [Hasher.Every]. They are valid until the next Sum.
func (h *Hasher) Values() []byte { return h.values }

// Sum reads r from its start, at most limit bytes, and returns the table of the bytes read. A
// file that ends earlier is not an error: the table has its size. Sum stops when ctx is done.
func (h *Hasher) Sum(ctx context.Context, r io.ReaderAt, limit int64) (Table, error) {
	t := h.begin()
	for t.size < limit {
		if err := ctx.Err(); err != nil {
			return Table{}, err
		}
		want := min(int64(len(h.buf)), limit-t.size)
		n, err := readFull(r, h.buf[:want], t.size)
		if err != nil {
			return Table{}, err
		}
		h.add(&t, h.buf[:n])
		if int64(n) < want {
			break
		}
	}
	return h.end(t)
}

func (h *Hasher) begin() Table {
	h.hash.Reset()
	h.marks, h.values = h.marks[:0], h.values[:0]
	if h.tags {
		return Table{serial: serials.Add(1)}
	}
	return Table{}
}

// add hashes data, which starts at a block boundary.
func (h *Hasher) add(t *Table, data []byte) {
	for len(data) > 0 {
		n := min(int(t.blockSize()), len(data))
		h.mark(t, data[:n])
		h.hash.Write(data[:n])
		t.size += int64(n)
		data = data[n:]
	}
}

// mark records the value against which a block will be checked: its tag, or the state before it.
func (h *Hasher) mark(t *Table, block []byte) {
	if h.every > 0 && t.size > 0 && t.size%h.every == 0 {
		h.values = appendState(h.values, h.hash)
	}
	switch {
	case h.tags:
		h.marks = appendTag(h.marks, h.nonce.set(t.serial, t.size/TagBlockSize), block)
	case t.size > 0:
		h.marks = appendState(h.marks, h.hash)
	}
}

func (h *Hasher) end(t Table) (Table, error) {
	if h.tags && t.Blocks() > maxTagBlocks {
		return Table{}, fmt.Errorf("%d bytes are too many to be tagged", t.size)
	}
	if h.tags && t.size == 0 {
		h.mark(&t, nil)
	}
	h.hash.Sum(t.digest[:0])
	t.marks = slices.Clone(h.marks)
	return t, nil
}

// readFull reads len(p) bytes at off, or fewer at the end.
func readFull(r io.ReaderAt, p []byte, off int64) (int, error) {
	n, err := r.ReadAt(p, off)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}
