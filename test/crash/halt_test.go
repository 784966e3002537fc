package crash

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// moving matches what moves or removes things of the plan, but not the journal.
func moving(c sysfault.Call) bool {
	if c.Name != "renameat2" && c.Name != "renameat" && c.Name != "unlinkat" {
		return false
	}
	return !strings.HasPrefix(filepath.Base(c.Path), ".spectrum06_")
}

// TestHalt makes every move fail from a point on, in the commit and in
// its rollback, while the journal can still be written: the root is halted, and
// stays so until recover has done the work.
func TestHalt(t *testing.T) {
	for name, runs := range map[string][]harness.Files{"single": {harness.Single()}, "chain": harness.Chain(3, 3)} {
		t.Run(name, func(t *testing.T) {
			sum := sweep(t, sample.Every(t, 13), restoring(runs...), func(t *testing.T, tr *trials, n int) bool {
				s := tr.site(t, n)
				r := s.Commit(t, &sysfault.Plan{N: n, Onward: true, Errno: syscall.EIO, Match: s.Beneath(moving)})
				if r.Fault.Fired == 0 {
					return false
				}
				if r.Answer.Code == harness.RollbackFailed {
					tr.halted(t, s, r)
				} else {
					tr.Add("ended with " + quote(r.Answer.Code))
				}
				again := s.Recover(t, nil)
				_, err := s.Recovered(t, harness.Allowed(r, s.ReportSeen())...)
				if err != nil || again.Status != 0 {
					t.Errorf("failed from move %d on: %v\n%v\n%v", n, r, again, err)
				}
				return true
			})
			sum.Demand(t, "halted")
		})
	}
}

// halted checks a root after a rollback that failed.
func (tr *trials) halted(t *testing.T, s *harness.Site, r harness.Reply) {
	t.Helper()
	tr.Add("halted")
	if r.Status != 3 || r.Answer.Cause == "" || r.Answer.Cause == harness.RollbackFailed {
		t.Errorf("%v", r)
	}
	tree := harness.MustTake(t, s.Root)
	if err := s.Halted(t); err != nil {
		t.Errorf("after %v: %v", r, err)
	}
	now := harness.MustTake(t, s.Root)
	if d := harness.Diff(tree, now); d != "" {
		t.Errorf("a command changed a halted root:\n%s", d)
	}
}
