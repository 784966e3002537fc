package bundle

import (
	"math"
	"testing"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// TestNoTableForTime: an output with a time that BLOCKS cannot have is sealed without a table.
func TestNoTableForTime(t *testing.T) {
	for _, sec := range []int64{253_402_300_800, -62_167_219_201, math.MaxInt64, math.MinInt64} {
		if table, err := tableOf(nil, pathsafe.NoLinks, []output{{}, {sec: sec}}); table != nil || err != nil {
			t.Errorf("%d: %v", sec, err)
		}
	}
}
