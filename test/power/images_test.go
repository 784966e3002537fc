package power

import (
	"sync/atomic"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
)

var formats = []harness.Format{harness.Ext4Large, harness.XFS, harness.Btrfs}

// writeback is an ext4 that writes names before their contents.
var writeback = func() harness.Format {
	f := harness.Ext4Large
	f.Name, f.Options = "ext4 data=writeback", "data=writeback"
	return f
}()

// TestImages cuts the power after each write of a commit, in a sample after some. A large one
// is tried on btrfs too: after a syncfs a file that is moved has both its names
// there, until the directory that it left is synced as well.
func TestImages(t *testing.T) {
	type image struct {
		harness.Format
		commit
	}
	all := []image{{harness.Ext4Large, single}, {harness.XFS, single}, {harness.Btrfs, single}, {harness.Btrfs, large}, {harness.Btrfs, spread}}
	for _, c := range sample.Pick(t, 2, all) {
		t.Run(c.Name+", "+c.commit.name, func(t *testing.T) {
			t.Parallel()
			record(t, c.project(t), c.Format, committing).sample(t, 20).report(t, harness.Before, harness.After)
		})
	}
}

// TestImagesOfEndings does it to commits that roll back, and to recoveries.
func TestImagesOfEndings(t *testing.T) {
	for _, f := range sample.Pick(t, 1, formats) {
		for _, a := range sample.Pick(t, 2, endings()) {
			t.Run(f.Name+", "+a.name, func(t *testing.T) {
				t.Parallel()
				record(t, single.project(t), f, a).sample(t, 6).report(t, a.promise)
			})
		}
	}
}

// TestLongImages cuts the power after every write, with eight ways to lose what
// was not flushed.
func TestLongImages(t *testing.T) {
	sample.Need(t, sample.Long)
	var images atomic.Int64
	t.Run("all", func(t *testing.T) {
		for _, f := range append(formats, writeback) {
			for _, s := range commits {
				t.Run(f.Name+", "+s.name, func(t *testing.T) {
					t.Parallel()
					sum := record(t, s.project(t), f, committing).everything(t, 8)
					sum.report(t, harness.Before, harness.After)
					images.Add(int64(sum.cuts))
				})
			}
			for _, a := range endings() {
				t.Run(f.Name+", "+a.name, func(t *testing.T) {
					t.Parallel()
					sum := record(t, single.project(t), f, a).everything(t, 8)
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
