package harness

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spectrumfs/spectrum/test/blocklog"
	"github.com/spectrumfs/spectrum/test/sample"
)

// A Ground is where the roots of a sweep are, and who runs the program there.
type Ground struct {
	Name   string
	Format Format // of their file system; the zero one: that of the temporary directory
	User   int    // 0: the one who runs the tests
}

// Grounds are each kind of file system that a restore root may be on, with room for the roots of
// a sweep. A user who cannot mount gets the temporary directory only.
func Grounds() []Ground {
	if os.Geteuid() != 0 {
		return []Ground{{Name: "here"}}
	}
	btrfs := Btrfs
	btrfs.Size = 1 << 30
	var all []Ground
	for _, f := range []Format{TmpfsWith("tmpfs", ""), Ext4Roomy, Ext4NoJournal, XFS, btrfs, Overlay} {
		all = append(all, Ground{Name: f.Name, Format: f})
	}
	return all
}

// Dir returns a new directory on a file system of this format, with its image in memory. It is
// unmounted when the test ends.
func (g Ground) Dir(t testing.TB) string {
	t.Helper()
	dir := MemoryDir(t)
	if g.Format.Kind == "" {
		return dir
	}
	mnt := filepath.Join(dir, "mnt")
	Must(t, os.Mkdir(mnt, 0o755))
	g.Format.MountOn(t, dir, mnt)
	t.Cleanup(func() { Must(t, blocklog.Unmount(mnt)) })
	return mnt
}

// Turns returns the grounds for the trials of this name, from one on that follows from the seed:
// in a sample that one alone.
func Turns(name string, all []Ground) []Ground {
	turns := sample.From(name, all)
	if sample.Now() == sample.Sample {
		return turns[:1]
	}
	return turns
}

// TakeTurns has the grounds take turns in the trials of a stride: each case is tried on one of them,
// with another seed on another. Only the long tier tries each case on each. It calls on with
// the part of the stride that is for a ground.
func TakeTurns(t *testing.T, turns []Ground, s sample.Stride, on func(t *testing.T, g Ground, own sample.Stride)) {
	t.Helper()
	for i, g := range turns {
		own := s
		if sample.Now() < sample.Long {
			own = sample.Stride{First: s.At(i), Every: s.Every * len(turns)}
		}
		t.Run(g.Name, func(t *testing.T) { on(t, g, own) })
	}
}
