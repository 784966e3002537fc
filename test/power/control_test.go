package power

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// lying is a plan under which no staged file is ever synced, though the program
// gets an error.
func lying() *sysfault.Plan {
	return &sysfault.Plan{N: 1, Onward: true, Lie: true, Match: func(c sysfault.Call) bool {
		switch c.Name {
		case "syncfs":
			return true
		case "fsync", "fdatasync":
			info, err := os.Lstat(c.Path)
			staged := strings.Contains(c.Path, stagePrefix) && !strings.HasPrefix(filepath.Base(c.Path), ".")
			return err == nil && info.Mode().IsRegular() && staged
		}
		return false
	}}
}

// TestControlShutdown takes the power after a commit whose syncs were lies: the
// oracle must see damage.
func TestControlShutdown(t *testing.T) {
	tried := sample.Pick(t, 1, cuts)
	for _, c := range tried {
		for _, s := range []commit{single, large} {
			k := newCutter(t, s.project(t), c)
			k.try(t, lying())
			k.volume.Unmount(t)
			if len(k.sum.faults) == 0 {
				t.Errorf("%s, %s: no sync of a file was done, and nothing is damaged", c.name, s.name)
			}
		}
	}
	t.Logf("%d commits with lies were seen through", 2*len(tried))
}

// TestControlImages looks at the images of such a commit.
func TestControlImages(t *testing.T) {
	for _, f := range sample.Pick(t, 1, formats) {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			lies := command{name: "commit with lies", plan: lying(), promise: harness.After}
			sum := record(t, single.project(t), f, lies).spread(t, 24)
			t.Log(sum)
			if len(sum.faults) == 0 {
				t.Error("no sync of a file was done, and nothing is damaged")
			}
		})
	}
}
