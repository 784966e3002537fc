package blockhash_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/spectrumfs/spectrum/verify/blockhash"
	"pgregory.net/rapid"
)

// counting counts the reads of a source, whose bytes may change between them.
type counting struct {
	data  []byte
	reads *atomic.Int64
}

func (c counting) ReadAt(p []byte, off int64) (int, error) {
	c.reads.Add(1)
	return bytes.NewReader(c.data).ReadAt(p, off)
}

// one reads one byte and reports whether it was read from the source.
func one(t testing.TB, r *blockhash.Reader, reads *atomic.Int64, off int, want byte) (asked bool) {
	t.Helper()
	before := reads.Load()
	p := make([]byte, 1)
	if n, err := r.ReadAt(p, int64(off)); n != 1 || err != nil || p[0] != want {
		t.Fatalf("byte %d: %d bytes, %v, right: %v", off, n, err, p[0] == want)
	}
	return reads.Load() > before
}

// TestCacheOrder: the least recently used block is dropped, and only if there is no room for
// another.
func TestCacheOrder(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		data, reads := random(6*k.block), new(atomic.Int64)
		cache := blockhash.NewCache(3 * k.block)
		r := k.reader(t, counting{data, reads}, data).Cached(cache)
		for step, read := range []struct {
			block int
			asked bool
		}{
			{0, true}, {0, false}, {1, true}, {2, true}, {0, false}, // 1 is the oldest now
			{3, true}, {0, false}, {2, false}, {3, false}, // 1 has gone
			{1, true}, {2, false}, {3, false}, // 0 has gone
			{0, true}, {1, true}, {3, false}, {2, true}, {0, true},
		} {
			at := read.block*k.block + 100 + step
			if asked := one(t, r, reads, at, data[at]); asked != read.asked {
				t.Fatalf("step %d, block %d: the source was asked: %v", step, read.block, asked)
			}
			if blocks, bytes := cache.Kept(); blocks > 3 || bytes > 3*k.block {
				t.Fatalf("step %d: %d blocks, %d bytes", step, blocks, bytes)
			}
		}
	})
}

// TestCacheOfWholeBlocks: a read of whole blocks leaves nothing in the cache, and takes nothing
// from it.
func TestCacheOfWholeBlocks(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		data, reads := random(4*k.block+10), new(atomic.Int64)
		cache := blockhash.NewCache(10 * k.block)
		r := k.reader(t, counting{data, reads}, data).Cached(cache)
		read := func(off, n, wantBlocks int) {
			t.Helper()
			p := make([]byte, n)
			if got, err := r.ReadAt(p, int64(off)); err != nil && err != io.EOF || !bytes.Equal(p[:got], data[off:min(off+n, len(data))]) {
				t.Fatalf("%d bytes, %v", got, err)
			}
			if blocks, _ := cache.Kept(); blocks != wantBlocks {
				t.Errorf("after %d bytes at %d: %d blocks, want %d", n, off, blocks, wantBlocks)
			}
		}
		read(0, len(data), 0)
		read(0, len(data)+100, 0)
		read(4*k.block, 10, 0)          // the whole last block
		read(1, len(data)-1, 1)         // not all of the first
		read(k.block-1, 2*k.block+1, 1) // the first again
		read(k.block-1, 2*k.block+2, 2) // and a byte of the fourth
		read(4*k.block+1, 9, 3)         // the end of the last
		read(4*k.block, 9, 3)           // and its beginning
		read(0, 0, 3)                   // nothing
		read(3*k.block+5, k.block, 3)   // two of those that are kept
		read(k.block+1, k.block-2, 4)   // the middle of the second
		if reads.Load() != 23 {         // one for each block that was not kept
			t.Errorf("%d reads of blocks", reads.Load())
		}
	})
}

// TestCacheServesWhatWasChecked: after the source was changed what is kept still
// is what was signed, and what is not kept is an error.
func TestCacheServesWhatWasChecked(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		data := random(3 * k.block)
		want, reads := bytes.Clone(data), new(atomic.Int64)
		r := k.reader(t, counting{data, reads}, data).Cached(blockhash.NewCache(k.block))
		one(t, r, reads, k.block+7, want[k.block+7])
		for i := range data {
			data[i] = ^data[i]
		}
		p := buffer(k.block - 1)
		if n, err := r.ReadAt(p, int64(k.block)); n != len(p) || err != nil || !bytes.Equal(p, want[k.block:][:n]) {
			t.Errorf("what was checked: %d bytes, %v", n, err)
		}
		for _, off := range []int{0, k.block - 1, 2 * k.block} {
			p := buffer(1)
			if n, err := r.ReadAt(p, int64(off)); n != 0 || err == nil || p[0] != canary {
				t.Errorf("byte %d: %d bytes, %v", off, n, err)
			}
		}
		if one(t, r, reads, 2*k.block-1, want[2*k.block-1]) {
			t.Error("a bad block displaced a good one")
		}
	})
}

// TestSmallCaches: one that has no room for a block keeps nothing, and throws
// nothing away for it.
func TestSmallCaches(t *testing.T) {
	large, small := random(bs), random(100)
	hasher := kind{blockhash.NewHasher, bs}
	for _, room := range []int{-1, 0, 1, 99, 100, 1000, bs - 1} {
		cache, reads := blockhash.NewCache(room), new(atomic.Int64)
		s := hasher.reader(t, counting{small, reads}, small).Cached(cache)
		l := hasher.reader(t, counting{large, reads}, large).Cached(cache)
		one(t, s, reads, 5, small[5])
		kept, _ := cache.Kept()
		one(t, l, reads, 5, large[5])
		one(t, l, reads, 6, large[6])
		blocks, bytes := cache.Kept()
		if bytes > max(0, room) {
			t.Errorf("room for %d: %d blocks of %d bytes", room, blocks, bytes)
		}
		if blocks != kept {
			t.Errorf("room for %d: %d blocks, and %d after a block for which there is no room", room, kept, blocks)
		}
	}
}

// TestCacheNeverOverflows puts blocks of all lengths, of both kinds, in any
// order.
func TestCacheNeverOverflows(t *testing.T) {
	type source struct {
		*blockhash.Reader
		data []byte
	}
	var sources []source
	for _, k := range []kind{{blockhash.NewHasher, blockhash.BlockSize}, {blockhash.NewTagger, blockhash.TagBlockSize}} {
		for _, n := range []int{1, 2, 9, 17, 1000, 1025, 9000, 32<<10 - 1, 32<<10 + 1, 33000, 40961, 64<<10 - 1, 64<<10 + 5, 150_000} {
			data := random(n)
			sources = append(sources, source{k.reader(t, bytes.NewReader(data), data), data})
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		room := rapid.IntRange(0, 200_000).Draw(t, "room")
		cache := blockhash.NewCache(room)
		for range rapid.IntRange(1, 60).Draw(t, "reads") {
			s := rapid.SampledFrom(sources).Draw(t, "source")
			off := rapid.IntRange(0, len(s.data)).Draw(t, "off")
			p := make([]byte, rapid.IntRange(0, 100).Draw(t, "len"))
			n, err := s.Cached(cache).ReadAt(p, int64(off))
			if err != nil && err != io.EOF || !bytes.Equal(p[:n], s.data[off:min(off+len(p), len(s.data))]) {
				t.Fatalf("%d bytes at %d: %d, %v", len(p), off, n, err)
			}
			if blocks, bytes := cache.Kept(); bytes > room {
				t.Fatalf("room for %d: %d blocks of %d bytes", room, blocks, bytes)
			}
		}
	})
}

// TestCacheTellsTablesApart: two files, blocks of one number, one cache.
func TestCacheTellsTablesApart(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		cache, reads := blockhash.NewCache(10*k.block), new(atomic.Int64)
		var readers []*blockhash.Reader
		var contents [][]byte
		for i := range 4 {
			data := bytes.Repeat([]byte{byte('a' + i)}, 2*k.block)
			contents = append(contents, data)
			readers = append(readers, k.reader(t, counting{data, reads}, data).Cached(cache))
		}
		for range 3 {
			for i, r := range readers {
				one(t, r, reads, k.block+1, contents[i][0])
			}
		}
		if reads.Load() != 4 {
			t.Errorf("%d reads of four blocks", reads.Load())
		}
	})
}

// TestCacheManyReaders hammers a small cache from many goroutines, while the
// source is being spoiled: an error is all right, a wrong byte never is.
func TestCacheManyReaders(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		good := random(40*k.block + 77)
		source := &flickering{good: good, bad: bytes.Repeat([]byte{0xee}, len(good))}
		cache := blockhash.NewCache(7 * k.block)
		r := k.reader(t, source, good).Cached(cache)
		var served atomic.Int64
		var group sync.WaitGroup
		for worker := range 8 {
			group.Go(func() {
				rng := rand.New(rand.NewPCG(7, uint64(worker)))
				for range 400 {
					off := rng.IntN(len(good))
					p := buffer(1 + rng.IntN(5000))
					n, err := r.ReadAt(p, int64(off))
					if !bytes.Equal(p[:n], good[off:][:n]) {
						t.Errorf("wrong bytes at %d", off)
					}
					if err == nil {
						served.Add(1)
					}
				}
			})
		}
		group.Wait()
		if blocks, bytes := cache.Kept(); bytes > 7*k.block || blocks == 0 {
			t.Errorf("%d blocks of %d bytes", blocks, bytes)
		}
		if served.Load() == 0 {
			t.Error("nothing was served at all")
		}
	})
}

// flickering is bad every third time.
type flickering struct {
	good, bad []byte
	turn      atomic.Int64
}

func (f *flickering) ReadAt(p []byte, off int64) (int, error) {
	if f.turn.Add(1)%3 == 0 {
		return bytes.NewReader(f.bad).ReadAt(p, off)
	}
	return bytes.NewReader(f.good).ReadAt(p, off)
}

// TestSmallReadsMakeNoGarbage: bounded generously, because a pool may be
// emptied at any moment.
func TestSmallReadsMakeNoGarbage(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		data := random(8 * k.block)
		for name, cache := range map[string]*blockhash.Cache{"kept": blockhash.NewCache(len(data)), "displaced": blockhash.NewCache(k.block), "none": nil} {
			r := k.reader(t, bytes.NewReader(data), data).Cached(cache)
			p, off := make([]byte, 4096), int64(0)
			allocs := testing.AllocsPerRun(200, func() {
				if _, err := r.ReadAt(p, off); err != nil {
					t.Fatal(err)
				}
				off = (off + 3*int64(k.block) + 512) % (7 * int64(k.block))
			})
			if allocs > 30 {
				t.Errorf("%s: %v allocations for one small read", name, allocs)
			}
		}
	})
}
