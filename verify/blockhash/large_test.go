package blockhash_test

import (
	"bytes"
	"testing"

	"github.com/spectrumfs/spectrum/verify/blockhash"
)

// TestLargeReads: a read of so many blocks that several goroutines check it together has
// every byte, wherever it begins and ends.
func TestLargeReads(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		data := random(20*k.block + 1)
		r := blockhash.NewReader(bytes.NewReader(data), k.table(t, data))
		for blocks := range 20 {
			for _, off := range []int{0, 1, k.block - 1, k.block} {
				for _, n := range []int{blocks * k.block, blocks*k.block + 1} {
					p := buffer(min(n, len(data)-off))
					got, err := r.ReadAt(p, int64(off))
					if got != len(p) || err != nil || !bytes.Equal(p, data[off:off+len(p)]) {
						t.Errorf("ReadAt(%d, %d) = %d, %v, or other bytes", len(p), off, got, err)
					}
				}
			}
		}
	})
}
