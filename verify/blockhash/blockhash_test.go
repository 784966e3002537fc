package blockhash_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/spectrumfs/spectrum/verify/blockhash"
	"pgregory.net/rapid"
)

// bs is a whole number of blocks of both kinds.
const bs = blockhash.BlockSize

// kind is one of the two kinds of tables.
type kind struct {
	hasher func() *blockhash.Hasher
	block  int
}

// eachKind runs a test for both.
func eachKind(t *testing.T, test func(t *testing.T, k kind)) {
	t.Helper()
	for name, k := range map[string]kind{
		"chaining values": {blockhash.NewHasher, blockhash.BlockSize},
		"tags":            {blockhash.NewTagger, blockhash.TagBlockSize},
	} {
		t.Run(name, func(t *testing.T) { test(t, k) })
	}
}

func (k kind) table(t testing.TB, data []byte) *blockhash.Table {
	t.Helper()
	tab, err := k.hasher().Sum(t.Context(), bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return &tab
}

// reader reads a source through the table of what it should be.
func (k kind) reader(t testing.TB, src io.ReaderAt, data []byte) *blockhash.Reader {
	t.Helper()
	return blockhash.NewReader(src, k.table(t, data))
}

func random(n int) []byte {
	data := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte(binary.LittleEndian.AppendUint64(make([]byte, 24), uint64(n)))).Read(data)
	return data
}

// sizes are around every boundary in the code.
var sizes = []int{0, 1, 63, 64, 65, bs/2 - 1, bs / 2, bs/2 + 1, bs - 1, bs, bs + 1, 2*bs - 1, 2 * bs, 4*bs - 1, 4 * bs, 4*bs + 1, 9*bs + 17, 200 * bs}

func TestDigestIsSHA256(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		for _, n := range sizes {
			data := random(n)
			tab := k.table(t, data)
			if tab.Digest() != sha256.Sum256(data) || tab.Size() != int64(n) {
				t.Errorf("size %d: digest or size wrong", n)
			}
			if err := blockhash.NewReader(bytes.NewReader(data), tab).Check(t.Context()); err != nil {
				t.Errorf("size %d: %v", n, err)
			}
		}
	})
}

func TestHasherIsReusable(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		h := k.hasher()
		for _, n := range []int{3*bs + 5, 0, 7, bs} {
			data := random(n)
			tab, err := h.Sum(t.Context(), bytes.NewReader(data), int64(n))
			if err != nil || tab.Digest() != sha256.Sum256(data) {
				t.Errorf("size %d after another file: wrong digest (%v)", n, err)
			}
		}
	})
}

func TestSumStopsAtLimitAndAtEnd(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		data := random(3 * bs)
		h := k.hasher()
		short, _ := h.Sum(t.Context(), bytes.NewReader(data), bs+9)
		if short.Size() != bs+9 || short.Digest() != sha256.Sum256(data[:bs+9]) {
			t.Error("limit not kept")
		}
		whole, _ := h.Sum(t.Context(), bytes.NewReader(data), 10*bs)
		if whole.Size() != 3*bs {
			t.Errorf("size %d of a file that ended early", whole.Size())
		}
	})
}

// TestEveryBlockIsBound flips one bit in each block in turn, at its first,
// middle and last byte: that block is rejected, and every other still reads.
func TestEveryBlockIsBound(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		data := random(5*bs + 100)
		tab := k.table(t, data)
		for i := int64(0); i < tab.Blocks(); i++ {
			begin, end := int(i)*k.block, min(int(i+1)*k.block, len(data))
			for _, at := range []int{begin, (begin + end) / 2, end - 1} {
				bad := bytes.Clone(data)
				bad[at] ^= 1
				checkOneBadBlock(t, k.block, blockhash.NewReader(bytes.NewReader(bad), tab), data, i)
			}
		}
	})
}

func checkOneBadBlock(t *testing.T, size int, r *blockhash.Reader, data []byte, bad int64) {
	t.Helper()
	for off := 0; off < len(data); off += size {
		p := make([]byte, min(size, len(data)-off))
		n, err := r.ReadAt(p, int64(off))
		var mismatch *blockhash.MismatchError
		switch block := int64(off / size); {
		case block != bad && (err != nil || !bytes.Equal(p, data[off:off+n])):
			t.Errorf("block %d bad: block %d does not read: %v", bad, block, err)
		case block == bad && (!errors.As(err, &mismatch) || mismatch.Block != bad || n != 0):
			t.Errorf("block %d bad: read %d bytes of it, error %v", bad, n, err)
		case block == bad && !bytes.Equal(p, make([]byte, len(p))):
			t.Errorf("block %d bad: unchecked bytes reached the caller", bad)
		}
	}
	var mismatch *blockhash.MismatchError
	if err := r.Check(context.Background()); !errors.As(err, &mismatch) || mismatch.Block != bad {
		t.Errorf("block %d bad: Check says %v", bad, err)
	}
}

func TestCheckReportsTheFirstBadBlock(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		data := random(300 * bs)
		tab := k.table(t, data)
		for _, i := range []int{299, 250, 131, 17} {
			data[i*k.block+5] ^= 0x80
			var mismatch *blockhash.MismatchError
			err := blockhash.NewReader(bytes.NewReader(data), tab).Check(t.Context())
			if !errors.As(err, &mismatch) || mismatch.Block != int64(i) {
				t.Fatalf("want block %d, got %v", i, err)
			}
		}
	})
}

func TestTruncatedSource(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		data := random(2*bs + 10)
		r := blockhash.NewReader(bytes.NewReader(data[:bs+3]), k.table(t, data))
		p := make([]byte, len(data))
		n, err := r.ReadAt(p, 0)
		var mismatch *blockhash.MismatchError
		if n != bs || !errors.As(err, &mismatch) || mismatch.Got != 3 {
			t.Errorf("read %d bytes, error %v", n, err)
		}
	})
}

func TestGrownSourceReadsAsSigned(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		data := random(bs + 10)
		r := blockhash.NewReader(bytes.NewReader(append(bytes.Clone(data), "more"...)), k.table(t, data))
		got, err := io.ReadAll(io.NewSectionReader(r, 0, 10*bs))
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("read %d bytes, error %v", len(got), err)
		}
	})
}

func TestCancelled(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		data := random(bs)
		if _, err := k.hasher().Sum(ctx, bytes.NewReader(data), bs); !errors.Is(err, context.Canceled) {
			t.Errorf("Sum: %v", err)
		}
		if err := blockhash.NewReader(bytes.NewReader(data), k.table(t, data)).Check(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Check: %v", err)
		}
	})
}

// TestReadRange compares reads of any range with a plain slice.
func TestReadRange(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		data := random(4*bs + 1234)
		r := blockhash.NewReader(bytes.NewReader(data), k.table(t, data))
		rapid.Check(t, func(t *rapid.T) {
			off := rapid.Int64Range(0, int64(len(data)+bs)).Draw(t, "off")
			p := make([]byte, rapid.IntRange(0, 3*bs).Draw(t, "len"))
			n, err := r.ReadAt(p, off)
			want, wantErr := bytes.NewReader(data).ReadAt(bytes.Clone(p), off)
			if len(p) == 0 {
				want, wantErr = 0, nil
			}
			if n != want || err != wantErr || !bytes.Equal(p[:n], data[min(off, int64(len(data))):][:n]) {
				t.Fatalf("ReadAt(%d, %d) = %d, %v; want %d, %v", len(p), off, n, err, want, wantErr)
			}
		})
	})
}

func BenchmarkSum(b *testing.B) {
	data, h := random(64<<20), blockhash.NewHasher()
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := h.Sum(b.Context(), bytes.NewReader(data), int64(len(data))); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSHA256(b *testing.B) {
	data := random(64 << 20)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		sha256.Sum256(data)
	}
}

// brokenSource fails from an offset on.
type brokenSource struct {
	data []byte
	from int64
}

var errBroken = errors.New("broken")

func (s brokenSource) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > s.from {
		return 0, errBroken
	}
	return bytes.NewReader(s.data).ReadAt(p, off)
}

// TestBrokenSource: the error of the source is returned, and no byte of the block.
func TestBrokenSource(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		data := random(6 * bs)
		source := brokenSource{data, 3*bs + 1}
		if _, err := k.hasher().Sum(t.Context(), source, int64(len(data))); !errors.Is(err, errBroken) {
			t.Errorf("Sum: %v", err)
		}
		r := blockhash.NewReader(source, k.table(t, data))
		p := make([]byte, 5*bs)
		if n, err := r.ReadAt(p, 10); n != 3*bs-10 || !errors.Is(err, errBroken) || !bytes.Equal(p[:n], data[10:][:n]) {
			t.Errorf("ReadAt: %d bytes, %v", n, err)
		}
		if err := r.Check(t.Context()); !errors.Is(err, errBroken) {
			t.Errorf("Check: %v", err)
		}
	})
}

func TestOddReads(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		data := random(bs + 5)
		r := blockhash.NewReader(bytes.NewReader(data), k.table(t, data))
		for _, c := range []struct {
			n    int
			off  int64
			want int
			err  error
		}{
			{0, 0, 0, nil}, {0, 1 << 62, 0, nil}, {1, int64(len(data)), 0, io.EOF}, {1, 1 << 62, 0, io.EOF}, {10, bs, 5, io.EOF}, {5, bs, 5, nil}, {len(data), 0, len(data), nil},
		} {
			if n, err := r.ReadAt(make([]byte, c.n), c.off); n != c.want || err != c.err {
				t.Errorf("ReadAt(%d, %d) = %d, %v", c.n, c.off, n, err)
			}
		}
		if n, err := r.ReadAt(make([]byte, 1), -1); n != 0 || err == nil || err == io.EOF {
			t.Errorf("a negative offset: %d, %v", n, err)
		}
	})
}

// TestZeroTable belongs to no file.
func TestZeroTable(t *testing.T) {
	r := blockhash.NewReader(bytes.NewReader([]byte("x")), &blockhash.Table{})
	if err := r.Check(t.Context()); err == nil {
		t.Error("a file passes")
	}
	if n, err := r.ReadAt(make([]byte, 1), 0); n != 0 || err != io.EOF {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// TestParallelReads share one reader.
func TestParallelReads(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		data := random(20 * bs)
		r := blockhash.NewReader(bytes.NewReader(data), k.table(t, data))
		errs := make(chan error)
		for i := range 8 {
			go func() {
				p := make([]byte, 3*bs)
				n, err := r.ReadAt(p, int64(i*2*bs+i))
				if err == nil && !bytes.Equal(p[:n], data[i*2*bs+i:][:n]) {
					err = errors.New("other bytes")
				}
				errs <- err
			}()
		}
		for range 8 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	})
}

func TestMismatchErrorSaysWhere(t *testing.T) {
	for want, e := range map[string]blockhash.MismatchError{
		"block 2 (bytes 131072 to 131082) does not match the signed hash": {Block: 2, Off: 2 * bs, Len: 10, Got: 10},
		"block 2 (bytes 131072 to 131082): the file ends at byte 131075":  {Block: 2, Off: 2 * bs, Len: 10, Got: 3},
	} {
		if e.Error() != want {
			t.Error(e.Error())
		}
	}
}
