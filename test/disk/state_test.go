package disk

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
)

// The state directory is full, the restore root has plenty: sweeps the blocks
// or inodes that are left for the state, once before the preview and once
// between preview and commit.
func TestStateFull(t *testing.T) {
	for _, c := range []struct {
		kind  string
		leave func(*volume, *testing.T, int64)
	}{
		{"tmpfs", func(v *volume, t *testing.T, n int64) { v.leaveBytes(t, n*4096) }},
		{"ext4", func(v *volume, t *testing.T, n int64) { v.leaveBytes(t, n*4096) }},
		{"tmpfs-few", func(v *volume, t *testing.T, n int64) { v.leaveInodes(t, int(n)) }},
		{"ext4-few", func(v *volume, t *testing.T, n int64) { v.leaveInodes(t, int(n)) }},
	} {
		t.Run(c.kind, func(t *testing.T) {
			t.Parallel()
			p, v := harness.New(t, small()), newVolume(t, c.kind)
			ends := map[string]int{}
			for _, n := range []int64{0, 1, 2, 3, 5, 8, 12, 16, 20, 24, 28, 32, 64} { // in the middle of a preview, of a savepoint, of the log
				for _, seen := range []bool{false, true} {
					what := fmt.Sprintf("%d left, preview before that: %v", n, seen)
					p.State = filepath.Join(v.path, fmt.Sprintf("state%d%v", n, seen))
					end := stateStep(t, p, v, seen, func() { c.leave(v, t, n) })
					ends[end]++
					harness.Must(t, os.RemoveAll(p.State))
					if t.Failed() {
						t.Fatalf("%s, %s: %s", c.kind, what, end)
					}
				}
			}
			t.Logf("%s: %v", c.kind, ends)
			if ends["done"] == 0 || len(ends) < 2 {
				t.Errorf("the sweep saw only %v", ends)
			}
		})
	}
}

// stateStep makes a preview and commits it. fill takes the space either before
// the preview or after it.
func stateStep(t *testing.T, p *harness.Project, v *volume, seen bool, fill func()) (end string) {
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
	v.release(t)
	if r.Status == 0 {
		want(t, site, harness.After)
		return "done"
	}
	if r.Status != 70 {
		t.Errorf("a full state directory ends with %v", r)
	}
	want(t, site, harness.Before)
	again(t, site)
	return end
}
