package disk

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
)

// TestDoctorOnFullDisk: a disk that is full is one thing that fails, whatever cannot be
// tried because of it; and nothing is left behind.
func TestDoctorOnFullDisk(t *testing.T) {
	p := harness.New(t, small())
	bytes := func(v *harness.Volume, t *testing.T) { v.LeaveBytes(t, 0) }
	few := func(n int) func(*harness.Volume, *testing.T) {
		return func(v *harness.Volume, t *testing.T) { v.LeaveInodes(t, n) }
	}
	for _, c := range sample.Pick(t, 3, []struct {
		harness.Format
		fill func(*harness.Volume, *testing.T)
	}{{harness.Tmpfs, bytes}, {harness.Ext4, bytes}, {harness.XFS, bytes}, {harness.TmpfsFew, few(0)}, {harness.TmpfsFew, few(5)}}) {
		t.Run(c.Name, func(t *testing.T) {
			v := filled(t, c.Format)
			root := filepath.Join(v.Path, "root")
			harness.Must(t, os.Mkdir(root, 0o755))
			c.fill(v, t)
			v.Sync(t)
			failed, skipped := examined(t, p, root)
			if len(failed) != 1 || failed[0] != "space" || len(skipped) == 0 {
				t.Errorf("failed: %q, skipped: %q", failed, skipped)
			}
			if left, err := os.ReadDir(root); err != nil || len(left) > 0 {
				t.Errorf("%v is left, %v", left, err)
			}
			v.Release(t)
			if failed, skipped := examined(t, p, root); len(failed) != 0 || len(skipped) != 0 {
				t.Errorf("with room, failed: %q, skipped: %q", failed, skipped)
			}
		})
	}
}

// examined has the doctor look at a directory, and returns what failed there and what was
// not tried.
func examined(t *testing.T, p *harness.Project, root string) (failed, skipped []string) {
	t.Helper()
	r := p.Run(t, nil, "doctor", "--json", root)
	var answer struct {
		Details struct {
			Checks []struct{ ID, Path, Status string }
		}
	}
	harness.Must(t, json.Unmarshal([]byte(r.Stdout), &answer))
	for _, c := range answer.Details.Checks {
		switch {
		case c.Path != root:
		case c.Status == "fail":
			failed = append(failed, c.ID)
		case c.Status == "skipped":
			skipped = append(skipped, c.ID)
		}
	}
	return failed, skipped
}
