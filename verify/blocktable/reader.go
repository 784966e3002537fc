package blocktable

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/spectrumfs/spectrum/internal/inorder"
	"github.com/spectrumfs/spectrum/verify/blockhash"
)

// A Source is a source whose reads are slow and can fail. A [Reader] uses these methods if its
// source has them.
type Source interface {
	io.ReaderAt

	// Limit returns the context of one read of n bytes, which is done when that takes too long; the
	// error of the read is its cause.
	Limit(ctx context.Context, n int) (context.Context, context.CancelFunc)

	// ReadContext is ReadAt, but returns the cause of ctx when ctx is done.
	ReadContext(ctx context.Context, p []byte, off int64) (int, error)

	// ReadAgain is ReadContext of bytes that were wrong when they were read before.
	ReadAgain(ctx context.Context, p []byte, off int64) (int, error)
}

// Reader reads a source through the part of a table that is about one file. It is safe for
// parallel use if the source is.
type Reader struct {
	src     io.ReaderAt
	slow    Source // the same, if it is a Source; else nil
	table   *Table
	file    int
	digest  [sha256.Size]byte
	size    int64
	values  []byte
	cache   *Cache   // nil: none
	checked *Checked // nil: not counted
}

// NewReader returns a Reader of src as file i of a table, whose signed SHA-256 is digest.
func (t *Table) NewReader(i int, digest [sha256.Size]byte, src io.ReaderAt) *Reader {
	slow, _ := src.(Source)
	return &Reader{src: src, slow: slow, table: t, file: i, digest: digest, size: t.Attributes(i).Size, values: t.values(i)}
}

// Cached returns a Reader that keeps blocks of which only a part was wanted in a cache, and
// notes in checked which blocks were checked. Both may be nil.
func (r *Reader) Cached(cache *Cache, checked *Checked) *Reader {
	with := *r
	with.cache, with.checked = cache, checked
	return &with
}

// Size is the number of bytes that the table has for the file.
func (r *Reader) Size() int64 { return r.size }

// ReadAt fills p with checked bytes from off, on several cores when they are in several blocks.
// It returns io.EOF at the end of the file, a [*blockhash.MismatchError] for bytes that do not
// fit the table, or the source's error; with an error other than io.EOF it counts the bytes
// before that block, and no byte of the block was copied to p.
func (r *Reader) ReadAt(p []byte, off int64) (int, error) {
	return r.ReadContext(context.Background(), p, off)
}

// ReadContext is [Reader.ReadAt] that ends when ctx is done, with the cause of that, if the source is a
// [Source]. All of it is one read to the source, however many blocks it is in.
func (r *Reader) ReadContext(ctx context.Context, p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, errors.New("blocktable: negative offset")
	}
	want := p[:min(int64(len(p)), max(0, r.size-off))]
	if r.slow != nil {
		limited, cancel := r.slow.Limit(ctx, len(want))
		defer cancel()
		ctx = limited
	}
	if n, err := r.readBlocks(ctx, want, off); err != nil {
		return n, err
	}
	if len(want) < len(p) {
		return len(want), io.EOF
	}
	return len(p), nil
}

// blockError is an error and the block that has it.
type blockError struct {
	block int64
	err   error
}

func (e *blockError) Error() string { return e.err.Error() }

// atOnce is how many blocks of one read are read at once from a [Source], which only waits for them.
const atOnce = 8

// readBlocks fills p, all of which lies in the file.
func (r *Reader) readBlocks(ctx context.Context, p []byte, off int64) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	first, last := off/r.table.block, (off+int64(len(p))-1)/r.table.block
	read := func(n int) error {
		if err := r.copyBlock(ctx, p, off, first+int64(n)); err != nil {
			return &blockError{first + int64(n), err}
		}
		return nil
	}
	workers := 0
	if r.slow != nil {
		workers = atOnce
	}
	var err error
	if first == last {
		err = read(0)
	} else {
		err = inorder.Each(ctx, workers, int(last-first+1), func() struct{} { return struct{}{} }, func(_ struct{}, n int) error { return read(n) })
	}
	if err == nil {
		return len(p), nil
	}
	var bad *blockError
	if errors.As(err, &bad) {
		return int(max(0, bad.block*r.table.block-off)), bad.err
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return 0, err
}

// copyBlock checks block i, and copies its part of p, which starts at off.
func (r *Reader) copyBlock(ctx context.Context, p []byte, off, i int64) error {
	begin := i * r.table.block
	into, from := p, int64(0)
	if begin < off {
		from = off - begin
	} else {
		into = p[begin-off:]
	}
	if from == 0 && len(into) >= r.blockLen(i) {
		buf := buffer(r.table.block)
		defer recycle(buf)
		n, err := r.block(ctx, buf, i)
		copy(into, buf[:n])
		return err
	}
	return r.cache.use(ctx, blockKey{r.table, r.table.first[r.file] + uint32(i)}, r.table.block,
		func(buf []byte) (int, error) { return r.block(ctx, buf, i) },
		func(block []byte) { copy(into, block[from:]) })
}

// blockLen is the number of bytes in block i.
func (r *Reader) blockLen(i int64) int { return int(min(r.table.block, r.size-i*r.table.block)) }

// block reads and checks block i. On an error it returns 0 bytes.
func (r *Reader) block(ctx context.Context, buf []byte, i int64) (int, error) {
	want, off := r.blockLen(i), i*r.table.block
	ways := []func(ctx context.Context, p []byte, off int64) (int, error){
		func(_ context.Context, p []byte, off int64) (int, error) { return r.src.ReadAt(p, off) },
	}
	if r.slow != nil {
		ways = []func(ctx context.Context, p []byte, off int64) (int, error){r.slow.ReadContext, r.slow.ReadAgain}
	}
	got := 0
	for _, read := range ways {
		n, err := read(ctx, buf[:want], off)
		switch {
		case n == want && r.holds(i, buf[:want]):
			r.checked.note(r.table.first[r.file]+uint32(i), want)
			return want, nil
		case err != nil && !errors.Is(err, io.EOF):
			return 0, fmt.Errorf("block %d: %w", i, err)
		}
		got = n
	}
	return 0, &blockhash.MismatchError{Block: i, Off: off, Len: want, Got: got}
}

// holds reports whether data is block i.
func (r *Reader) holds(i int64, data []byte) bool {
	var before []byte
	if i > 0 {
		before = r.values[(i-1)*valueLen : i*valueLen]
	}
	if i == Blocks(r.size, r.table.block)-1 {
		return blockhash.EndsIn(before, i*r.table.block, data, r.digest)
	}
	return blockhash.LeadsTo(before, i*r.table.block, data, r.values[i*valueLen:(i+1)*valueLen])
}

// Check reads all of the source and returns the error of its first bad block.
func (r *Reader) Check(ctx context.Context) error {
	return inorder.Do(ctx, int(Blocks(r.size, r.table.block)), func(i int) error {
		buf := buffer(r.table.block)
		defer recycle(buf)
		_, err := r.block(ctx, buf, int64(i))
		return err
	})
}

// Checked notes which blocks of a table were checked. It is safe for concurrent use.
type Checked struct {
	blocks []atomic.Uint32 // a bit for each
	bytes  atomic.Int64
}

// NewChecked returns notes for the blocks of a table, none of which was checked.
func (t *Table) NewChecked() *Checked {
	var blocks uint32
	if len(t.first) > 0 {
		blocks = t.first[len(t.first)-1]
	}
	return &Checked{blocks: make([]atomic.Uint32, blocks/32+1)}
}

// Bytes is the number of bytes in the blocks that were checked.
func (c *Checked) Bytes() int64 { return c.bytes.Load() }

func (c *Checked) note(block uint32, bytes int) {
	if c == nil {
		return
	}
	bit := uint32(1) << (block % 32)
	if word := &c.blocks[block/32]; word.Load()&bit == 0 && word.Or(bit)&bit == 0 {
		c.bytes.Add(int64(bytes))
	}
}
