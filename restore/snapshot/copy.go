package snapshot

import (
	"bytes"
	"context"
	"errors"
	"hash"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// A copier copies files, and hashes what it has written.
type copier struct {
	s       *sysHook
	buf     []byte
	noClone *atomic.Bool // this file system does not share blocks
	only    bool         // src may have become longer since, and what came is left out
}

// copy makes dst the copy of src and returns how many bytes went into sum: what
// was written, up to one chunk more than e.Size.
func (c *copier) copy(ctx context.Context, dst, src *os.File, sum hash.Hash, e *Entry) (int64, error) {
	w := filler{s: c.s, f: dst, sparse: e.Sparse}
	from := src
	if dst != nil && !c.only && c.clone(dst, src, e.Size) {
		from, w = dst, filler{}
	}
	total := int64(0)
	for total <= e.Size {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		buf := c.buf
		if c.only {
			buf = buf[:min(int64(len(buf)), e.Size-total)]
		}
		n, err := c.s.read(from, buf)
		if err != nil {
			return 0, ofSource(err) // a clone has the same blocks
		}
		sum.Write(c.buf[:n])
		total += int64(n)
		if err := w.write(c.buf[:n]); err != nil {
			return 0, ofStore(err)
		}
		if n < len(c.buf) {
			break
		}
	}
	return total, ofStore(w.end())
}

func (c *copier) clone(dst, src *os.File, size int64) bool {
	if size < cloneMin || c.noClone.Load() {
		return false
	}
	err := c.s.clone(dst, src)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EXDEV) || errors.Is(err, unix.ENOTTY) {
		c.noClone.Store(true)
	}
	return err == nil
}

// A filler writes a file from its beginning. In a sparse one zeros become
// holes. One without a file does nothing.
type filler struct {
	s      *sysHook
	f      *os.File
	sparse bool
	size   int64
	hole   bool // it ends in one
}

var zeros [holeSize]byte

func (w *filler) write(data []byte) error {
	if w.f == nil || len(data) == 0 {
		return nil
	}
	w.size += int64(len(data))
	if !w.sparse {
		return w.s.Write(w.f, data)
	}
	for len(data) > 0 {
		n, hole := run(data)
		step := w.s.Write
		if hole {
			step = func(f *os.File, data []byte) error { return w.s.skip(f, len(data)) }
		}
		if err := step(w.f, data[:n]); err != nil {
			return err
		}
		data, w.hole = data[n:], hole
	}
	return nil
}

// run returns how many bytes at the beginning of data are all hole or all not.
func run(data []byte) (n int, hole bool) {
	block := func(from int) []byte { return data[from:min(from+holeSize, len(data))] }
	empty := func(b []byte) bool { return bytes.Equal(b, zeros[:len(b)]) }
	hole = empty(block(0))
	for n = len(block(0)); n < len(data) && empty(block(n)) == hole; n += len(block(n)) {
	}
	return n, hole
}

func (w *filler) end() error {
	if w.f == nil || !w.hole {
		return nil
	}
	return w.s.truncate(w.f, w.size)
}
