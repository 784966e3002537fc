package verify

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/verify/blockhash"
)

// TestTagsNeedInstructions: what is read again is checked against chaining values where
// the processor has no instructions for tags.
func TestTagsNeedInstructions(t *testing.T) {
	defer func(was bool) { canTag = was }(canTag)
	content := strings.Repeat("x", blockhash.BlockSize)
	for can, blocks := range map[bool]int64{true: blockhash.BlockSize / blockhash.TagBlockSize, false: 1} {
		canTag = can
		table, err := Watch{Reread: true}.newHasher(nil).Sum(t.Context(), bytes.NewReader([]byte(content)), int64(len(content)))
		if err != nil || table.Blocks() != blocks {
			t.Errorf("instructions %v: %d blocks, want %d; %v", can, table.Blocks(), blocks, err)
		}
	}
}
