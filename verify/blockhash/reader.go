package blockhash

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/spectrumfs/spectrum/internal/inorder"
)

// MismatchError says that the bytes read are not the ones that were signed.
type MismatchError struct {
	Block int64 // its number, from 0
	Off   int64 // where the block begins, in bytes
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
}

// NewReader returns a Reader of src, whose table is t.
func NewReader(src io.ReaderAt, t *Table) *Reader { return &Reader{src: src, table: t} }

var buffers = sync.Pool{New: func() any { return new([BlockSize]byte) }}

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

// readBlocks fills p, all of which lies before the table's size.
func (r *Reader) readBlocks(p []byte, off int64) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	first, last := off/BlockSize, (off+int64(len(p))-1)/BlockSize
	if first == last { // the usual case of a small file
		return beforeBlock(len(p), off, r.copyBlock(p, off, first))
	}
	err := inorder.Do(context.Background(), int(last-first+1), func(i int) error {
		return r.copyBlock(p, off, first+int64(i))
	})
	return beforeBlock(len(p), off, err)
}

// beforeBlock is the result of a read of n bytes at off: all, or those before
// the block that failed.
func beforeBlock(n int, off int64, err error) (int, error) {
	var bad *blockError
	if errors.As(err, &bad) {
		return int(max(0, bad.block*BlockSize-off)), bad.err
	}
	return n, err
}

// blockError is an error and the block it was met at.
type blockError struct {
	block int64
	err   error
}

func (e *blockError) Error() string { return e.err.Error() }

// copyBlock checks block i and copies what belongs into p, which begins at off.
func (r *Reader) copyBlock(p []byte, off, i int64) error {
	buf := buffers.Get().(*[BlockSize]byte)
	defer buffers.Put(buf)
	block, err := r.block(i, buf)
	if err != nil {
		return &blockError{i, err}
	}
	if begin := i * BlockSize; begin < off {
		copy(p, block[off-begin:])
	} else {
		copy(p[begin-off:], block)
	}
	return nil
}

// block reads and checks block i.
func (r *Reader) block(i int64, buf *[BlockSize]byte) ([]byte, error) {
	want := r.table.blockLen(i)
	n, err := readFull(r.src, buf[:want], i*BlockSize)
	if err != nil {
		return nil, fmt.Errorf("block %d: %w", i, err)
	}
	if n < want || !r.table.holds(i, buf[:n]) {
		return nil, &MismatchError{Block: i, Off: i * BlockSize, Len: want, Got: n}
	}
	return buf[:n], nil
}

// Check reads all of the source and returns the error of its first bad block,
// on all cores when there are many blocks. Bytes of the source beyond the
// table's size are not looked at.
func (r *Reader) Check(ctx context.Context) error {
	tasks := (r.table.Blocks() + taskBlocks - 1) / taskBlocks
	return inorder.Do(ctx, int(tasks), func(task int) error {
		return r.checkBlocks(int64(task) * taskBlocks)
	})
}

// taskBlocks is how many neighbouring blocks one goroutine takes at a time.
const taskBlocks = 16

// checkBlocks checks one task's blocks from block i on.
func (r *Reader) checkBlocks(i int64) error {
	buf := buffers.Get().(*[BlockSize]byte)
	defer buffers.Put(buf)
	for end := min(i+taskBlocks, r.table.Blocks()); i < end; i++ {
		if _, err := r.block(i, buf); err != nil {
			return err
		}
	}
	return nil
}
