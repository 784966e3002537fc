package blockhash_test

import (
	"io"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/spectrumfs/spectrum/verify/blockhash"
)

// BenchmarkReader reads a warm file through both kinds of tables, and as it is:
// from here come the figures of docs/performance.md on the size of a block.
func BenchmarkReader(b *testing.B) {
	const size = 64 << 20
	f, err := os.CreateTemp(b.TempDir(), "")
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(random(size)); err != nil {
		b.Fatal(err)
	}
	readers := []struct {
		name string
		io.ReaderAt
	}{{name: "plain", ReaderAt: f}}
	for name, hasher := range map[string]*blockhash.Hasher{"states": blockhash.NewHasher(), "tags": blockhash.NewTagger()} {
		table, err := hasher.Sum(b.Context(), f, size)
		if err != nil {
			b.Fatal(err)
		}
		readers = append(readers, struct {
			name string
			io.ReaderAt
		}{name, blockhash.NewReader(f, &table)})
	}
	for _, r := range readers {
		b.Run(r.name+"/random4K", func(b *testing.B) {
			readAll(b, r, make([]byte, 4<<10), func(int64) int64 { return rand.Int64N(size>>12) << 12 })
		})
		b.Run(r.name+"/sequential1M", func(b *testing.B) {
			readAll(b, r, make([]byte, 1<<20), func(i int64) int64 { return i << 20 % size })
		})
	}
}

func readAll(b *testing.B, r io.ReaderAt, p []byte, offset func(i int64) int64) {
	b.SetBytes(int64(len(p)))
	for i := int64(0); b.Loop(); i++ {
		if _, err := r.ReadAt(p, offset(i)); err != nil {
			b.Fatal(err)
		}
	}
}
