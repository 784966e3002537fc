package harness

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/spectrumfs/spectrum/test/sample"
)

// lanes is how many trials of a sweep run at the same time.
const lanes = 2

// Sweep runs the trials of a stride in their order, until one reports that there is no
// such case. Two run at a time. The first that fails ends its lane.
//
// A sweep that tries nothing fails. Where the stride begins behind the last case, an
// earlier one is tried.
func Sweep(t *testing.T, s sample.Stride, trial func(t *testing.T, n int) bool) {
	t.Helper()
	SweepIn(t, s, func(*testing.T) func(*testing.T, int) bool { return trial })
}

// SweepIn is Sweep where each lane prepares something for its trials first.
func SweepIn(t *testing.T, s sample.Stride, prepare func(t *testing.T) func(t *testing.T, n int) bool) {
	t.Helper()
	for {
		if sweep(t, s, prepare) > 0 || t.Failed() || t.Skipped() {
			return
		}
		if s.First == 1 {
			t.Error("nothing was tried")
			return
		}
		s.First /= 2
	}
}

// sweep returns how many trials there were.
func sweep(t *testing.T, s sample.Stride, prepare func(t *testing.T) func(t *testing.T, n int) bool) int64 {
	t.Helper()
	var tried atomic.Int64
	t.Run("sweep", func(t *testing.T) {
		for lane := range lanes {
			t.Run(fmt.Sprint("lane ", lane), func(t *testing.T) {
				t.Parallel()
				trial := prepare(t)
				for i := lane; !t.Failed() && trial(t, s.At(i)); i += lanes {
					tried.Add(1)
				}
			})
		}
	})
	return tried.Load()
}
