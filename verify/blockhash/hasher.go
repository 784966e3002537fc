package blockhash

import (
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
)

// Hasher makes tables. It holds a buffer, so one is made for each worker and
// used for many files; it must not be used by two goroutines at once.
type Hasher struct {
	hash hash.Hash
	buf  []byte
}

// readSize is how much is read at once: several blocks, and few enough bytes
// to stay in a core's cache.
const readSize = 4 * BlockSize

// NewHasher returns a Hasher.
func NewHasher() *Hasher {
	return &Hasher{hash: sha256.New(), buf: make([]byte, readSize)}
}

// Sum reads r from its start, at most limit bytes, and returns the table of
// what it read. A file that ends earlier is no error: the table's size says
// where. It stops when ctx is done.
func (h *Hasher) Sum(ctx context.Context, r io.ReaderAt, limit int64) (Table, error) {
	h.hash.Reset()
	var t Table
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
	h.hash.Sum(t.digest[:0])
	return t, nil
}

// add hashes data, which begins at a block boundary, and notes the state at
// each boundary that is followed by a byte.
func (h *Hasher) add(t *Table, data []byte) {
	for len(data) > 0 {
		if t.size > 0 {
			t.states = appendState(t.states, h.hash)
		}
		n := min(BlockSize, len(data))
		h.hash.Write(data[:n])
		t.size += int64(n)
		data = data[n:]
	}
}

// readFull reads len(p) bytes at off, or as many as there are.
func readFull(r io.ReaderAt, p []byte, off int64) (int, error) {
	n, err := r.ReadAt(p, off)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}
