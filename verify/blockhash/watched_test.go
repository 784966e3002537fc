package blockhash_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/spectrumfs/spectrum/verify/blockhash"
)

// TestWatched: every byte that is read is reported, and the reader is the same.
func TestWatched(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789"), bs/4)
	source := bytes.NewReader(content)
	told := int64(0)
	var tables [2]blockhash.Table
	for i, r := range []io.ReaderAt{blockhash.Watched(source, nil), blockhash.Watched(source, func(n int64) { told += n })} {
		table, err := blockhash.NewHasher().Sum(t.Context(), r, int64(len(content))+1)
		if err != nil {
			t.Fatal(err)
		}
		tables[i] = table
	}
	if told != int64(len(content)) || tables[0].Digest() != tables[1].Digest() {
		t.Errorf("told of %d bytes of %d", told, len(content))
	}
}
