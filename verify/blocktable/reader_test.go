package blocktable_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spectrumfs/spectrum/verify/blockhash"
	"github.com/spectrumfs/spectrum/verify/blocktable"
)

// source counts the reads of a content.
type source struct {
	content []byte
	reads   atomic.Int64
	err     error
}

func (s *source) ReadAt(p []byte, off int64) (int, error) {
	s.reads.Add(1)
	if s.err != nil {
		return 0, s.err
	}
	return bytes.NewReader(s.content).ReadAt(p, off)
}

func isMismatch(err error) (*blockhash.MismatchError, bool) {
	return errors.AsType[*blockhash.MismatchError](err)
}

// TestReader: every range of files of many sizes, with and without a cache.
func TestReader(t *testing.T) {
	const block = blocktable.MinBlock
	files := filesOf(block)
	table := tableOf(t, block, files)
	for _, cache := range []*blocktable.Cache{nil, blocktable.NewCache(1), blocktable.NewCache(2 * block), blocktable.NewCache(1 << 30)} {
		checked := table.NewChecked()
		var total int64
		for i, f := range files {
			r := table.NewReader(i, sha256.Sum256(f.content), bytes.NewReader(f.content)).Cached(cache, checked)
			if r.Size() != int64(len(f.content)) {
				t.Errorf("%q has %d bytes", f.path, r.Size())
			}
			for range 40 {
				off := rand.IntN(len(f.content) + 2)
				p := make([]byte, rand.IntN(2*block))
				n, err := r.ReadAt(p, int64(off))
				want := f.content[min(off, len(f.content)):min(off+len(p), len(f.content))]
				if !bytes.Equal(p[:n], want) || n < len(p) && !errors.Is(err, io.EOF) || n == len(p) && err != nil {
					t.Fatalf("%q: %d bytes at %d: %d, %v", f.path, len(p), off, n, err)
				}
			}
			whole, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
			if err != nil || !bytes.Equal(whole, f.content) {
				t.Errorf("%q as a whole: %v", f.path, err)
			}
			if err := r.Check(t.Context()); err != nil {
				t.Errorf("%q: %v", f.path, err)
			}
			if total += int64(len(f.content)); checked.Bytes() != total {
				t.Errorf("%d bytes were checked, want %d", checked.Bytes(), total)
			}
		}
		if _, err := table.NewReader(0, [32]byte{}, nil).ReadAt(nil, -1); err == nil {
			t.Error("a negative offset is one")
		}
	}
}

// TestReaderMismatch: of a changed source only the changed block is an error, nothing of it
// reaches the caller, and it is not counted.
func TestReaderMismatch(t *testing.T) {
	const block = blocktable.MinBlock
	files := filesOf(block)
	table := tableOf(t, block, files)
	f := files[5]
	digest := sha256.Sum256(f.content)
	for at := range 4 {
		changed := bytes.Clone(f.content)
		changed[min(at*block+11, len(changed)-1)] ^= 1
		checked := table.NewChecked()
		r := table.NewReader(5, digest, bytes.NewReader(changed)).Cached(blocktable.NewCache(1<<20), checked)
		p := make([]byte, len(f.content))
		n, err := r.ReadAt(p, 0)
		bad, is := isMismatch(err)
		if !is || bad.Block != int64(at) || n != at*block || !bytes.Equal(p[:n], f.content[:n]) {
			t.Fatalf("block %d: %d bytes, %v", at, n, err)
		}
		end := min((at+1)*block, len(p))
		if slices.ContainsFunc(p[n:end], func(b byte) bool { return b != 0 }) {
			t.Errorf("a byte of block %d reached the caller", at)
		}
		for other := range 4 {
			one := make([]byte, 3)
			_, err := r.ReadAt(one, int64(other*block))
			if _, is := isMismatch(err); is != (other == at) || !is && !bytes.Equal(one, f.content[other*block:][:3]) {
				t.Errorf("block %d changed, block %d: %v", at, other, err)
			}
			if slices.ContainsFunc(one, func(b byte) bool { return b != 0 }) && other == at {
				t.Error("an unchecked byte")
			}
		}
		if want := int64(len(f.content)) - min(block, int64(len(f.content)-at*block)); checked.Bytes() != want {
			t.Errorf("%d bytes were checked, want %d", checked.Bytes(), want)
		}
		if err := r.Check(context.Background()); err == nil {
			t.Error("a check found nothing")
		}
	}
	short := table.NewReader(5, digest, bytes.NewReader(f.content[:block+5]))
	bad, is := isMismatch(second(short.ReadAt(make([]byte, 10), block)))
	if !is || bad.Got != 5 {
		t.Errorf("a short source: %v", bad)
	}
	failed := errors.New("no")
	broken := table.NewReader(5, digest, &source{err: failed}).Cached(blocktable.NewCache(1<<20), nil)
	if err := second(broken.ReadAt(make([]byte, 10), 3)); !errors.Is(err, failed) {
		t.Error(err)
	}
}

func second(_ int, err error) error { return err }

// TestForgedValues: a signer may sign any chaining values, but the block that a wrong one begins or
// ends at is an error, whatever the content; and the last one ends in the signed digest.
func TestForgedValues(t *testing.T) {
	const block = blocktable.MinBlock
	real, other := contentOf(4*block), contentOf(4*block + 1)[:4*block]
	forge := func(values []byte) *blocktable.Table {
		table, err := blocktable.New(blocktable.Draft{Block: block, DirPerm: func(string) fs.FileMode { return 0o755 }, Entries: func(yield func(blocktable.Entry) bool) {
			yield(blocktable.Entry{Path: "a", Attributes: blocktable.Attributes{Size: 4 * block, Perm: 0o644}, Values: values})
		}})
		if err != nil {
			t.Fatal(err)
		}
		return table
	}
	bad := func(table *blocktable.Table, content []byte) (blocks []int) {
		r := table.NewReader(0, sha256.Sum256(real), bytes.NewReader(content))
		for i := range 4 {
			if _, is := isMismatch(second(r.ReadAt(make([]byte, 1), int64(i*block)))); is {
				blocks = append(blocks, i)
			}
		}
		return blocks
	}
	values := valuesOf(real, block)
	if got := bad(forge(values), real); got != nil {
		t.Errorf("the right table: %v", got)
	}
	for i := range 3 {
		forged := bytes.Clone(values)
		forged[i*32] ^= 1
		if got := bad(forge(forged), real); !slices.Equal(got, []int{i, i + 1}) {
			t.Errorf("value %d is forged: bad blocks %v", i, got)
		}
	}
	// The table of another file, with a digest that is not its own: every block is that file's but the
	// last one.
	if got := bad(forge(valuesOf(other, block)), other); !slices.Equal(got, []int{3}) {
		t.Errorf("the table of another file: bad blocks %v", got)
	}
}

// TestCacheShares: concurrent readers of one block share one check, and a reader never gets the
// bytes of another block.
func TestCacheShares(t *testing.T) {
	const block = blocktable.MinBlock
	content := contentOf(64 * block)
	files := []file{{"a", content, 0o644, 0, 0}}
	table := tableOf(t, block, files)
	src := &source{content: content}
	r := table.NewReader(0, sha256.Sum256(content), src).Cached(blocktable.NewCache(64*block), table.NewChecked())
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for i := range 64 {
				p := make([]byte, 100)
				if _, err := r.ReadAt(p, int64(i*block+50)); err != nil || !bytes.Equal(p, content[i*block+50:][:100]) {
					t.Errorf("block %d: %v", i, err)
				}
			}
		})
	}
	all.Wait()
	if n := src.reads.Load(); n != 64 {
		t.Errorf("64 blocks were read %d times", n)
	}
	small := table.NewReader(0, sha256.Sum256(content), src).Cached(blocktable.NewCache(3*block), nil)
	for range 8 {
		all.Go(func() {
			for range 100 {
				off := rand.IntN(len(content) - 100)
				p := make([]byte, 100)
				if _, err := small.ReadAt(p, int64(off)); err != nil || !bytes.Equal(p, content[off:][:100]) {
					t.Errorf("at %d: %v", off, err)
				}
			}
		})
	}
	all.Wait()
}

// panics is a source that ends in a panic, once.
type panics struct {
	source
	calm atomic.Bool
}

func (p *panics) ReadAt(b []byte, off int64) (int, error) {
	if !p.calm.Swap(true) {
		panic("a source")
	}
	return p.source.ReadAt(b, off)
}

// TestCachePanic: a check that panics leaves nothing behind.
func TestCachePanic(t *testing.T) {
	content := contentOf(100)
	table := tableOf(t, blocktable.MinBlock, []file{{"a", content, 0o644, 0, 0}})
	r := table.NewReader(0, sha256.Sum256(content), &panics{source: source{content: content}}).Cached(blocktable.NewCache(1<<20), nil)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		_, _ = r.ReadAt(make([]byte, 5), 1)
	}()
	p := make([]byte, 5)
	if _, err := r.ReadAt(p, 1); err != nil || !bytes.Equal(p, content[1:6]) {
		t.Error(err)
	}
}

// slowSource answers wrongly a number of times, and waits for a signal where there is one.
type slowSource struct {
	source
	wrong atomic.Int64 // answers that are wrong
	short bool         // instead of flipped
	again atomic.Int64
	began chan struct{} // nil: it does not wait
	free  chan struct{}
	limit time.Duration // of one read; 0 for none
}

var errSlow = errors.New("it is too slow")

func (s *slowSource) Limit(ctx context.Context, _ int) (context.Context, context.CancelFunc) {
	if s.limit == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, s.limit, errSlow)
}

func (s *slowSource) ReadContext(ctx context.Context, p []byte, off int64) (int, error) {
	if s.began != nil {
		s.began <- struct{}{}
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-s.free:
		}
	}
	n, err := s.ReadAt(p, off)
	if s.wrong.Add(-1) >= 0 {
		if s.short {
			return n - 1, io.EOF
		}
		p[n-1] ^= 1
	}
	return n, err
}

func (s *slowSource) ReadAgain(ctx context.Context, p []byte, off int64) (int, error) {
	s.again.Add(1)
	return s.ReadContext(ctx, p, off)
}

// TestSourceIsAskedOnceMore: a wrong and a short answer are read once more, and no further time.
func TestSourceIsAskedOnceMore(t *testing.T) {
	const block = blocktable.MinBlock
	content := bytes.Repeat([]byte("0123456789abcdef"), block/4)
	table := tableOf(t, block, []file{{path: "a", content: content}})
	for _, short := range []bool{false, true} {
		for wrong, want := range map[int64]bool{0: true, 1: true, 2: false} {
			src := &slowSource{source: source{content: content}, short: short}
			src.wrong.Store(wrong)
			p := make([]byte, 100)
			n, err := table.NewReader(0, sha256.Sum256(content), src).ReadAt(p, block+5)
			_, is := isMismatch(err)
			if (err == nil) != want || err != nil && !is || err == nil && !bytes.Equal(p, content[block+5:block+105]) || err != nil && n != 0 {
				t.Errorf("%d wrong answers, short %v: %d, %v", wrong, short, n, err)
			}
			if got := src.again.Load(); got != min(wrong, 1) {
				t.Errorf("%d wrong answers: asked %d times again", wrong, got)
			}
		}
	}
	src := &slowSource{source: source{content: content, err: io.ErrNoProgress}}
	if _, err := table.NewReader(0, sha256.Sum256(content), src).ReadAt(make([]byte, 10), 0); !errors.Is(err, io.ErrNoProgress) || src.again.Load() != 0 {
		t.Errorf("%v, asked %d times again", err, src.again.Load())
	}
}

// TestReadIsLimited: all blocks of a read have one limit, and its error is the cause; so has a block that
// another reader loads.
func TestReadIsLimited(t *testing.T) {
	const block = blocktable.MinBlock
	content := bytes.Repeat([]byte("0123456789abcdef"), 20*block/16)
	table := tableOf(t, block, []file{{path: "a", content: content}})
	synctest.Test(t, func(t *testing.T) {
		src := &slowSource{source: source{content: content}, began: make(chan struct{}, 100), free: make(chan struct{}), limit: time.Second}
		r := table.NewReader(0, sha256.Sum256(content), src).Cached(blocktable.NewCache(1<<20), nil)
		var readers sync.WaitGroup
		for _, n := range []int{10, 20, len(content)} {
			readers.Go(func() {
				began := time.Now()
				if _, err := r.ReadAt(make([]byte, n), 0); !errors.Is(err, errSlow) || time.Since(began) != src.limit {
					t.Errorf("%d bytes: %v after %v", n, err, time.Since(began))
				}
			})
		}
		readers.Wait()
	})
}

// TestReaderGivesUp: a reader whose context is done returns, and another one of the same block gets it.
func TestReaderGivesUp(t *testing.T) {
	const block = blocktable.MinBlock
	content := bytes.Repeat([]byte("0123456789abcdef"), block/16)
	table := tableOf(t, block, []file{{path: "a", content: content}})
	src := &slowSource{source: source{content: content}, began: make(chan struct{}), free: make(chan struct{})}
	r := table.NewReader(0, sha256.Sum256(content), src).Cached(blocktable.NewCache(1<<20), nil)
	read := func(ctx context.Context) chan error {
		ended := make(chan error)
		go func() {
			_, err := r.ReadContext(ctx, make([]byte, 10), 7)
			ended <- err
		}()
		return ended
	}
	ctx, cancel := context.WithCancel(t.Context())
	first := read(ctx)
	<-src.began
	waiting, leave := context.WithCancel(t.Context())
	second, third := read(waiting), read(t.Context())
	leave()
	if err := <-second; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	<-src.began // the third one has begun anew
	close(src.free)
	if err := <-third; err != nil {
		t.Errorf("%v", err)
	}
}
