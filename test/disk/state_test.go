package disk

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
)

// The state directory is full, the restore root has plenty: sweeps the blocks
// or inodes that are left for the state, once before the preview and once
// between preview and commit.
func TestStateFull(t *testing.T) {
	blocks := func(v *harness.Volume, t *testing.T, n int) { v.LeaveBytes(t, int64(n)*4096) }
	inodes := func(v *harness.Volume, t *testing.T, n int) { v.LeaveInodes(t, n) }
	for _, c := range []struct {
		harness.Format
		leave func(*harness.Volume, *testing.T, int)
	}{{harness.Tmpfs, blocks}, {harness.Ext4, blocks}, {harness.TmpfsFew, inodes}, {harness.Ext4Few, inodes}} {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			p, v := harness.New(t, small()), filled(t, c.Format)
			var ends harness.Tally
			stride, number := sample.Every(t, 9), 0
			for _, n := range []int{0, 1, 2, 3, 5, 8, 12, 16, 20, 24, 28, 32, 64} { // in the middle of a preview, of a savepoint, of the log
				for _, seen := range []bool{false, true} {
					if number++; !stride.Has(number) {
						continue
					}
					p.State = filepath.Join(v.Path, fmt.Sprintf("state%d%v", n, seen))
					end := stateStep(t, p, v, seen, func() { c.leave(v, t, n) })
					ends.Add(end)
					harness.Must(t, os.RemoveAll(p.State))
					if t.Failed() {
						t.Fatalf("%s, %d left, preview before that: %v: %s", c.Name, n, seen, end)
					}
				}
			}
			ends.DemandKinds(t, 2, "done")
		})
	}
}

// stateStep makes a preview and commits it. fill takes the space either before
// the preview or after it.
func stateStep(t *testing.T, p *harness.Project, v *harness.Volume, seen bool, fill func()) (end string) {
	t.Helper()
	site := p.Site(t, filepath.Join(filepath.Dir(p.Dir), filepath.Base(p.State)))
	harness.Must(t, os.Mkdir(p.State, 0o700))
	if !seen {
		fill()
	}
	r := site.PreviewReply(t, nil)
	end = "preview refused"
	if r.Status == 0 {
		if seen {
			fill()
		}
		end, r = "commit refused", p.Run(t, nil, harness.CommitArgs(strings.TrimSpace(r.Stdout))...)
	}
	v.Release(t)
	if r.Status == 0 {
		want(t, site, harness.After)
		return "done"
	}
	if r.Status != 74 {
		t.Errorf("a full state directory ends with %v", r)
	}
	if full := `file system of "` + v.Path + "/"; !strings.Contains(r.Stderr, full) || !strings.Contains(r.Stderr, "needed, and ") {
		t.Errorf("it does not name the file system that is full, with what is needed and free: %v", r)
	}
	want(t, site, harness.Before)
	again(t, site)
	return end
}
