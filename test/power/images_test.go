package power

import (
	"os"
	"sync/atomic"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
)

var formats = []format{ext4, xfs, btrfs}

// TestImages cuts the power after a sample of the writes of a commit. A large one
// is tried on btrfs too: after a syncfs a file that is moved has both its names
// there, until the directory that it left is synced as well.
func TestImages(t *testing.T) {
	for _, c := range []struct {
		format
		commit
	}{{ext4, single}, {xfs, single}, {btrfs, single}, {btrfs, large}} {
		t.Run(c.format.name+", "+c.commit.name, func(t *testing.T) {
			t.Parallel()
			record(t, c.project(t), c.format, committing).sample(t, 70, 8).report(t, harness.Before, harness.After)
		})
	}
}

// TestImagesOfEndings does it to commits that roll back, and to recoveries.
func TestImagesOfEndings(t *testing.T) {
	for i, a := range endings() {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			record(t, single.project(t), formats[i%len(formats)], a).sample(t, 12, 8).report(t, a.promise)
		})
	}
}

// TestLongImages cuts the power after every write, with eight ways to lose what
// was not flushed.
func TestLongImages(t *testing.T) {
	if os.Getenv("SPECTRUM_LONG") == "" {
		t.Skip("long: make test-long")
	}
	var images atomic.Int64
	t.Run("all", func(t *testing.T) {
		for _, f := range append(formats, writeback) {
			for _, s := range commits {
				t.Run(f.name+", "+s.name, func(t *testing.T) {
					t.Parallel()
					sum := record(t, s.project(t), f, committing).everything(t, 8)
					sum.report(t, harness.Before, harness.After)
					images.Add(int64(sum.cuts))
				})
			}
			for _, a := range endings() {
				t.Run(f.name+", "+a.name, func(t *testing.T) {
					t.Parallel()
					sum := record(t, single.project(t), f, a).sample(t, 300, 8)
					sum.report(t, a.promise)
					images.Add(int64(sum.cuts))
				})
			}
		}
	})
	t.Logf("%d images", images.Load())
	if images.Load() < 5000 {
		t.Error("these are not enough")
	}
}
