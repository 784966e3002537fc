package blockhash_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/spectrumfs/spectrum/verify/blockhash"
	"pgregory.net/rapid"
)

const canary = 0xa5

// buffer is full of what no test reads there by chance alone.
func buffer(n int) []byte { return bytes.Repeat([]byte{canary}, n) }

// checkRead reads a range, of a source of which one range [from, to) differs
// from data, and demands what a Reader promises: right bytes up to the first bad
// block, nothing of that block, and no other byte that is not right.
func checkRead(t rapid.TB, r *blockhash.Reader, size int, data []byte, from, to, off, n int) {
	t.Helper()
	p := buffer(n)
	got, err := r.ReadAt(p, int64(off))
	end := min(off+n, len(data))
	first, last := off/size*size, (end+size-1)/size*size
	clean := off >= end || from >= to || to <= first || from >= last
	switch {
	case clean && (err != nil && err != io.EOF || got != max(0, end-off)):
		t.Fatalf("ReadAt(%d, %d) = %d, %v", n, off, got, err)
	case clean && (err == io.EOF) != (n > 0 && off+n > len(data)):
		t.Fatalf("ReadAt(%d, %d) of %d bytes: %v", n, off, len(data), err)
	case !clean:
		checkMismatch(t, err, size, data, max(from, first), off, got)
	}
	for i, b := range p {
		at := off + i
		block := at / size * size
		bad := from < to && from < block+size && to > block
		switch {
		case at >= len(data) || bad:
			if b != canary {
				t.Fatalf("byte %d was never checked and is in the buffer", at)
			}
		case b != data[at] && (b != canary || i < got):
			t.Fatalf("byte %d is wrong", at)
		}
	}
}

// checkMismatch requires the error of the block that contains the offset bad.
func checkMismatch(t rapid.TB, err error, size int, data []byte, bad, off, got int) {
	t.Helper()
	begin := bad / size * size
	want := blockhash.MismatchError{Block: int64(bad / size), Off: int64(begin), Len: min(size, len(data)-begin), Got: min(size, len(data)-begin)}
	var mismatch *blockhash.MismatchError
	if !errors.As(err, &mismatch) || *mismatch != want || got != max(0, begin-off) {
		t.Fatalf("%d bytes and %+v, want %d and %+v", got, err, max(0, begin-off), want)
	}
}

// TestTamperedRanges reads any range of a source of which any range was
// changed, at any alignment.
func TestTamperedRanges(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		data := random(4*bs + 1234)
		tab := k.table(t, data)
		rapid.Check(t, func(t *rapid.T) {
			near := func(what string) int {
				edge := rapid.IntRange(0, len(data)/k.block+1).Draw(t, what+" edge") * k.block
				return min(len(data), max(0, edge+rapid.OneOf(rapid.IntRange(-2, 2), rapid.IntRange(-k.block, k.block)).Draw(t, what)))
			}
			from, to := near("from"), near("to")
			bad := bytes.Clone(data)
			for i := from; i < to; i++ {
				bad[i] ^= 1 << (i % 8)
			}
			r := blockhash.NewReader(bytes.NewReader(bad), tab)
			if rapid.Bool().Draw(t, "cached") {
				r = r.Cached(blockhash.NewCache(3 * k.block))
			}
			for range 4 {
				off := near("off")
				checkRead(t, r, k.block, data, from, to, off, rapid.IntRange(0, 3*bs).Draw(t, "len"))
			}
		})
	})
}

// TestEveryBit flips each bit of the bytes around every block boundary.
func TestEveryBit(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		data := random(2*k.block + 3)
		r := k.reader(t, bytes.NewReader(data), data) // sees what happens to data
		want := bytes.Clone(data)
		for _, at := range []int{0, 1, k.block - 1, k.block, k.block + 1, 2*k.block - 1, 2 * k.block, 2*k.block + 1, 2*k.block + 2} {
			for bit := range 8 {
				data[at] ^= 1 << bit
				checkRead(t, r, k.block, want, at, at+1, at, 1)
				checkRead(t, r, k.block, want, at, at+1, 0, len(want)+1)
				data[at] ^= 1 << bit
				checkRead(t, r, k.block, want, 0, 0, at, 1)
			}
		}
	})
}

// TestOtherBlocks: a block is right only at its own place in its own file, also
// where both files have one size and share a Hasher.
func TestOtherBlocks(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		h := k.hasher()
		sum := func(data []byte) *blockhash.Table {
			tab, err := h.Sum(t.Context(), bytes.NewReader(data), int64(len(data)))
			if err != nil {
				t.Fatal(err)
			}
			return &tab
		}
		a := random(3 * k.block)
		b := bytes.Clone(a)
		b[0], b[k.block], b[2*k.block] = a[0]+1, a[k.block]+1, a[2*k.block]+1
		tables := map[string]*blockhash.Table{"a": sum(a), "b": sum(b)}
		swapped := bytes.Clone(a)
		copy(swapped, a[k.block:2*k.block])
		copy(swapped[k.block:], a[:k.block])
		if err := blockhash.NewReader(bytes.NewReader(swapped), tables["a"]).Check(t.Context()); err == nil {
			t.Error("two blocks of a file change places")
		}
		for block := range 3 {
			mixed := bytes.Clone(a)
			copy(mixed[block*k.block:(block+1)*k.block], b[block*k.block:])
			p := buffer(k.block)
			for name, tab := range tables {
				n, err := blockhash.NewReader(bytes.NewReader(mixed), tab).ReadAt(p, int64(block*k.block))
				if (err == nil) != (name == "b") {
					t.Errorf("block %d of b, read through the table of %s: %d bytes, %v", block, name, n, err)
				}
			}
		}
	})
}

// TestSameBlocks: equal blocks in one file and two tables of one content have different tags, and
// no tag of one is accepted for another.
func TestSameBlocks(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		data := make([]byte, 4*k.block)
		one, two := k.table(t, data), k.table(t, data)
		for _, tab := range []*blockhash.Table{one, two} {
			if err := blockhash.NewReader(bytes.NewReader(data), tab).Check(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if k.block != blockhash.TagBlockSize {
			return
		}
		seen := map[string]bool{}
		for _, tab := range []*blockhash.Table{one, two} {
			if len(tab.Marks()) != 16*4 {
				t.Fatalf("%d bytes of tags", len(tab.Marks()))
			}
			for tag := range 4 {
				seen[string(tab.Marks()[16*tag:][:16])] = true
			}
		}
		if len(seen) != 8 {
			t.Errorf("8 blocks have %d tags", len(seen))
		}
		copy(one.Marks(), two.Marks())
		if err := blockhash.NewReader(bytes.NewReader(data), one).Check(t.Context()); err == nil {
			t.Error("tags of another table are taken")
		}
	})
}

// TestEveryMarkCounts changes what blocks are checked against.
func TestEveryMarkCounts(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		data := random(3*k.block + 1)
		tab := k.table(t, data)
		for i := range tab.Marks() {
			tab.Marks()[i] ^= 1 << (i % 8)
			if err := blockhash.NewReader(bytes.NewReader(data), tab).Check(t.Context()); err == nil {
				t.Fatalf("byte %d of the marks does not count", i)
			}
			tab.Marks()[i] ^= 1 << (i % 8)
		}
	})
}

// TestOtherLengths: a source that is shorter, by how much soever, and one that
// is longer.
func TestOtherLengths(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		data := random(2*k.block + 10)
		tab := k.table(t, data)
		for _, n := range []int{0, 1, k.block - 1, k.block, k.block + 1, 2*k.block - 1, 2 * k.block, 2*k.block + 1, 2*k.block + 9} {
			r := blockhash.NewReader(bytes.NewReader(data[:n]), tab)
			p := buffer(len(data))
			got, err := r.ReadAt(p, 0)
			begin := n / k.block * k.block
			want := blockhash.MismatchError{Block: int64(n / k.block), Off: int64(begin), Len: min(k.block, len(data)-begin), Got: n - begin}
			var mismatch *blockhash.MismatchError
			if got != begin || !errors.As(err, &mismatch) || *mismatch != want {
				t.Errorf("%d bytes are left: read %d, %+v, want %+v", n, got, err, want)
			}
			if !bytes.Equal(p[:begin], data[:begin]) || !bytes.Equal(p[begin:], buffer(len(p)-begin)) {
				t.Errorf("%d bytes are left: the buffer is not what was checked", n)
			}
			if err := r.Check(t.Context()); !errors.As(err, &mismatch) || *mismatch != want {
				t.Errorf("%d bytes are left: Check says %+v", n, err)
			}
		}
		for _, more := range []int{1, k.block, 3 * k.block} {
			r := blockhash.NewReader(bytes.NewReader(append(bytes.Clone(data), make([]byte, more)...)), tab)
			if got, err := io.ReadAll(io.NewSectionReader(r, 0, 1<<40)); err != nil || !bytes.Equal(got, data) {
				t.Errorf("%d bytes more: read %d, %v", more, len(got), err)
			}
		}
	})
}

// TestEmptyFile has one block, which is empty and checked like any.
func TestEmptyFile(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		tab := k.table(t, nil)
		if tab.Blocks() != 1 || tab.Size() != 0 {
			t.Errorf("%d blocks, %d bytes", tab.Blocks(), tab.Size())
		}
		r := blockhash.NewReader(bytes.NewReader([]byte("grown")), tab).Cached(blockhash.NewCache(100))
		if err := r.Check(t.Context()); err != nil {
			t.Error(err)
		}
		p := buffer(10)
		if n, err := r.ReadAt(p, 0); n != 0 || err != io.EOF || !bytes.Equal(p, buffer(10)) {
			t.Errorf("%d bytes, %v, %q", n, err, p)
		}
	})
}

// TestTablesAreValues: a copy of a table, made by value, reads the same file.
func TestTablesAreValues(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		h, a, b := k.hasher(), random(3*bs), random(3*bs+1)
		first, err := h.Sum(t.Context(), bytes.NewReader(a), int64(len(a)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Sum(t.Context(), bytes.NewReader(b), int64(len(b))); err != nil {
			t.Fatal(err)
		}
		copied := first // the hasher has worked on
		if err := blockhash.NewReader(bytes.NewReader(a), &copied).Check(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
