package power

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// TestBothNames: a file was moved, the new name is on the disk, and the old one
// is too. btrfs is like that after a power cut (see TestImages), and POSIX allows
// it to all.
func TestBothNames(t *testing.T) {
	for _, c := range []struct {
		name  string
		last  string            // what got its name last
		moved map[string]string // new names and, in staging, old ones
		state harness.State
	}{
		{"files", "top0", map[string]string{
			"top0": "new/top0", "out/f0-01": "new/out/f0-01", "out/deep/f0-03": "new/out/deep/f0-03",
		}, harness.Before},
		{"one file", "top0", map[string]string{"out/deep/f0-03": "new/out/deep/f0-03"}, harness.Before},
		{"artifacts", reportName, map[string]string{
			manifestName: artifactsName + "/0", reportName: artifactsName + "/1",
		}, harness.After},
		{"one artifact", reportName, map[string]string{manifestName: artifactsName + "/0"}, harness.After},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			site := single.project(t).Site(t, filepath.Join(t.TempDir(), "root"))
			if r := site.Commit(t, beforeSync(c.last, sysfault.Plan{Kill: true})); !r.Killed() {
				t.Fatal(r)
			}
			stage := filepath.Dir(theOnly(t, filepath.Join(site.Root, stagePrefix+"*", preparedName)))
			for name, old := range c.moved {
				harness.Must(t, os.Link(filepath.Join(site.Root, name), filepath.Join(stage, old)))
			}
			state, err := recovered(t, site)
			if err != nil {
				t.Fatal(err)
			}
			if state != c.state {
				t.Errorf("recovered to %v, want %v", state, c.state)
			}
		})
	}
}
