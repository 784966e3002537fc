package harness

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/spectrumfs/spectrum/test/sample"
)

// lanes returns how many trials of a sweep run at the same time. A sample has a few trials
// only, and each lane prepares something for its own.
func lanes() int { return sample.Of(1, 2, 2) }

// Sweep runs the trials of a stride in their order, until one reports that there is no
// such case: no later one is tried then. In a sweep two run at a time. The first that fails
// ends its lane.
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
	var tried, end atomic.Int64 // end is a case that there is not, once one is known
	lanes := lanes()
	t.Run("sweep", func(t *testing.T) {
		for lane := range lanes {
			t.Run(fmt.Sprint("lane ", lane), func(t *testing.T) {
				t.Parallel()
				trial := prepare(t)
				for i := lane; !t.Failed(); i += lanes {
					n := s.At(i)
					if known := end.Load(); known > 0 && int64(n) >= known {
						return
					}
					if !trial(t, n) {
						end.Store(int64(n))
						return
					}
					tried.Add(1)
				}
			})
		}
	})
	return tried.Load()
}
