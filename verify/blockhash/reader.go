package blockhash

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/spectrumfs/spectrum/internal/inorder"
)

// MismatchError reports that the bytes read are not the signed ones.
type MismatchError struct {
	Block int64 // its number, from 0
	Off   int64 // offset of the block, in bytes
	Len   int   // how long it is
	Got   int   // how many bytes could be read; less than Len when the file is too short
}

func (e *MismatchError) Error() string {
	if e.Got < e.Len {
		return fmt.Sprintf("block %d (bytes %d to %d): the file ends at byte %d", e.Block, e.Off, e.Off+int64(e.Len), e.Off+int64(e.Got))
	}
	return fmt.Sprintf("block %d (bytes %d to %d) does not match the signed hash", e.Block, e.Off, e.Off+int64(e.Len))
}

// Reader reads a source through its table. It is safe for parallel use if the
// source is.
type Reader struct {
	src   io.ReaderAt
	table *Table
	cache *Cache // nil: none
}

// NewReader returns a Reader of src, whose table is t.
func NewReader(src io.ReaderAt, t *Table) *Reader { return &Reader{src: src, table: t} }

// Cached returns a Reader that stores partially read blocks in a cache; a nil cache stores nothing.
// A cache identifies a table by its address, so the table must not be overwritten as long as the
// cache exists.
func (r *Reader) Cached(c *Cache) *Reader { return &Reader{r.src, r.table, c} }

// scratch is the memory for checking one block.
type scratch struct {
	block [BlockSize]byte
	nonce nonce
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// ReadAt fills p with checked bytes from off, on several cores when they are in
// several blocks. It returns io.EOF at the table's size, a [*MismatchError] for
// bytes that are not the signed ones, or the source's error; with an error
// other than io.EOF it counts the bytes before that block, and no byte of the
// block was copied to p.
func (r *Reader) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, errors.New("blockhash: negative offset")
	}
	want := p[:min(int64(len(p)), max(0, r.table.size-off))]
	if n, err := r.readBlocks(want, off); err != nil {
		return n, err
	}
	if len(want) < len(p) {
		return len(want), io.EOF
	}
	return len(p), nil
}

// taskBytes is how much one goroutine checks at a time, at the least.
const taskBytes = 256 << 10

// readBlocks fills p, all of which lies before the table's size.
func (r *Reader) readBlocks(p []byte, off int64) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	size := r.table.blockSize()
	first, last := off/size, (off+int64(len(p))-1)/size
	perTask := taskBytes / size
	tasks := (last - first + perTask) / perTask
	var err error
	if tasks == 1 { // the usual case of a small read
		err = r.copyBlocks(p, off, first, last+1)
	} else {
		err = inorder.Do(context.Background(), int(tasks), func(task int) error {
			i := first + int64(task)*perTask
			return r.copyBlocks(p, off, i, min(i+perTask, last+1))
		})
	}
	var bad *blockError
	if errors.As(err, &bad) {
		return int(max(0, bad.block*size-off)), bad.err
	}
	return len(p), err
}

// blockError is an error and the block it was met at.
type blockError struct {
	block int64
	err   error
}

func (e *blockError) Error() string { return e.err.Error() }

// copyBlocks checks the blocks from i to end-1, and copies their part of p, which starts at off.
func (r *Reader) copyBlocks(p []byte, off, i, end int64) error {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	for ; i < end; i++ {
		if err := r.copyBlock(p, off, i, s); err != nil {
			return &blockError{i, err}
		}
	}
	return nil
}

func (r *Reader) copyBlock(p []byte, off, i int64, s *scratch) error {
	begin := i * r.table.blockSize()
	into, from := p, int64(0)
	if begin < off {
		from = off - begin
	} else {
		into = p[begin-off:]
	}
	whole := from == 0 && len(into) >= r.table.blockLen(i)
	if !whole && r.cache.get(r.table, i, into, from) {
		return nil
	}
	block, err := r.block(i, s)
	if err != nil {
		return err
	}
	copy(into, block[from:])
	if !whole {
		r.cache.put(r.table, i, block)
	}
	return nil
}

// block reads and checks block i.
func (r *Reader) block(i int64, s *scratch) ([]byte, error) {
	want, off := r.table.blockLen(i), i*r.table.blockSize()
	n, err := readFull(r.src, s.block[:want], off)
	if err != nil {
		return nil, fmt.Errorf("block %d: %w", i, err)
	}
	if n < want || !r.table.holds(i, s.block[:n], &s.nonce) {
		return nil, &MismatchError{Block: i, Off: off, Len: want, Got: n}
	}
	return s.block[:n], nil
}

// Check reads all of the source and returns the error of its first bad block. It uses all cores if
// there are many blocks. Bytes of the source beyond the table's size are ignored.
func (r *Reader) Check(ctx context.Context) error {
	tasks := (r.table.Blocks() + taskBlocks - 1) / taskBlocks
	return inorder.Do(ctx, int(tasks), func(task int) error {
		return r.checkBlocks(int64(task) * taskBlocks)
	})
}

// taskBlocks is the number of neighbouring blocks that one goroutine checks at a time.
const taskBlocks = 16

// checkBlocks checks one task's blocks from block i on.
func (r *Reader) checkBlocks(i int64) error {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	for end := min(i+taskBlocks, r.table.Blocks()); i < end; i++ {
		if _, err := r.block(i, s); err != nil {
			return err
		}
	}
	return nil
}
