package crash

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// TestKillPush kills a push to a directory before each call that changes something. A run is visible only
// if it is whole, and the next push completes it, and leaves nothing unfinished.
func TestKillPush(t *testing.T) {
	sum := sweep(t, sample.Thin(t, 11, 1), restoring(harness.Single()), func(t *testing.T, tr *trials, n int) bool {
		run := tr.Runs[0]
		p := *tr.Project
		p.State = filepath.Join(tr.dir, fmt.Sprint("state ", n))
		store := filepath.Join(tr.dir, fmt.Sprint("store-", n))
		harness.Must(t, os.Mkdir(p.State, 0o700))
		harness.Must(t, os.Mkdir(store, 0o755))
		to := "file://" + store
		killed := p.Run(t, &sysfault.Plan{N: n, Kill: true, Match: harness.Changing}, "push", run.Dir, to)
		if !killed.Killed() {
			return false
		}
		if _, err := os.Stat(filepath.Join(store, "runs", run.Root)); err == nil {
			tr.Add("visible")
			if r := p.Run(t, nil, "verify", to+"@"+run.Root); r.Status != 0 {
				t.Errorf("killed at call %d, the run is visible, and not whole: %v", n, r)
			}
		} else {
			tr.Add("not visible")
		}
		if r := p.Run(t, nil, "push", run.Dir, to); r.Status != 0 || strings.TrimSpace(r.Stdout) != to+"@"+run.Root {
			t.Errorf("killed at call %d: %v", n, r)
		}
		if r := p.Run(t, nil, "store", "check", "--read-data", to); r.Status != 0 {
			t.Errorf("killed at call %d: %v", n, r)
		}
		pulled := filepath.Join(tr.dir, fmt.Sprint("pulled ", n))
		if r := p.Run(t, nil, "pull", to+"@"+run.Root, pulled); r.Status != 0 {
			t.Errorf("killed at call %d: %v", n, r)
		}
		if left, err := filepath.Glob(store + "/*/.*"); err != nil || len(left) > 0 {
			t.Errorf("killed at call %d: %q is left over, %v", n, left, err)
		}
		return true
	})
	sum.Demand(t, "not visible")
}

// TestKillPull kills a pull. The directory is there whole, or not at all, and a later pull makes it.
func TestKillPull(t *testing.T) {
	sum := onGrounds(t, sample.Thin(t, 37, 3), restoring(harness.Single()), func(t *testing.T, tr *trials, own sample.Stride) {
		run := tr.Runs[0]
		store := filepath.Join(tr.dir, "store")
		harness.Must(t, os.Mkdir(store, 0o755))
		from := "file://" + store + "@" + run.Root
		if r := tr.Run(t, nil, "push", run.Dir, "file://"+store); r.Status != 0 {
			t.Fatal(r)
		}
		harness.Sweep(t, own, func(t *testing.T, n int) bool {
			above := filepath.Join(tr.dir, fmt.Sprint("above ", n))
			harness.Must(t, os.Mkdir(above, 0o755))
			pulled := filepath.Join(above, "project")
			killed := tr.Run(t, &sysfault.Plan{N: n, Kill: true, Match: harness.Changing}, "pull", from, pulled)
			if !killed.Killed() {
				return false
			}
			_, err := os.Stat(pulled)
			if err != nil {
				tr.Add("not there")
				if r := tr.Run(t, nil, "pull", from, pulled); r.Status != 0 {
					t.Errorf("killed at call %d: %v", n, r)
				}
			}
			if r := tr.Run(t, nil, "verify", filepath.Join(pulled, "CONTRACTS/_runs", filepath.Base(run.Dir))); r.Status != 0 {
				t.Errorf("killed at call %d: %v", n, r)
			}
			return true
		})
	})
	sum.Demand(t, "not there")
}
