package crash

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// TestKillRollback has a stranger take the name of a target in the middle of the
// commit, and kills the rollback that follows before each of its calls.
func TestKillRollback(t *testing.T) {
	for name, runs := range map[string][]harness.Files{"single": {harness.Single()}, "chain": harness.Chain(3, 3)} {
		t.Run(name, func(t *testing.T) { killRollbacks(t, restoring(runs...)) })
	}
}

func killRollbacks(t *testing.T, made maker) {
	t.Helper()
	sum := sweep(t, sample.Every(t, 37), made, func(t *testing.T, tr *trials, n int) bool {
		s := tr.site(t, n)
		// The last target: what is moved before it must be moved back.
		name := "top.txt"
		if tr.Chain {
			name = tr.Runs[len(tr.Runs)-1].ID
		}
		path, taken := filepath.Join(s.Root, name), false
		r := s.Commit(t, &sysfault.Plan{N: n, Kill: true, Record: true, Match: func(c sysfault.Call) bool {
			if taken {
				return s.Beneath(harness.Changing)(c)
			}
			if c.To == path {
				harness.Must(t, os.WriteFile(path, []byte("mine"), 0o600))
				taken = true
			}
			return false
		}})
		if !taken {
			t.Fatalf("%q was never moved: %v", name, r)
		}
		tree := harness.MustTake(t, s.Root)
		theirs := tree[name]
		if !r.Killed() {
			// A name that is taken is not free, as the law requires it after a rollback.
			if err := wellSaid(r, nil); err != nil || r.Answer.Cause != "RESTORE_FINALIZE_FAILED" && r.Answer.Code != "RESTORE_FINALIZE_FAILED" {
				t.Errorf("not killed: %v, %v", r, err)
			}
		} else {
			tr.Add("killed")
		}
		if err := tr.leave(t, s, name, theirs); err != nil {
			t.Errorf("rollback killed before %s\n%v", s.Last(r), err)
		}
		return r.Killed()
	})
	sum.Demand(t, "killed")
}

// leave recovers from a root in which a stranger has this name. While it is
// there the root may be halted; when it has gone, recover does the rest.
func (tr *trials) leave(t *testing.T, s *harness.Site, name string, theirs harness.Thing) error {
	t.Helper()
	r := s.Recover(t, nil)
	tr.Add(fmt.Sprint("exit ", r.Status))
	tree, err := harness.Take(s.Root)
	switch {
	case err != nil:
		return err
	case tree[name] != theirs:
		return fmt.Errorf("the stranger's %q was %+v, is %+v: %v", name, theirs, tree[name], r)
	case r.Status == 0:
		err = withStranger(s, name, theirs, false)
	case r.Status == 3:
		err = s.Halted(t)
	default:
		err = fmt.Errorf("recover: %v", r)
	}
	if err := errors.Join(err, os.Remove(filepath.Join(s.Root, name))); err != nil {
		return err
	}
	if r := s.Recover(t, nil); r.Status != 0 {
		return fmt.Errorf("the stranger has gone: %v", r)
	}
	_, err = s.Recovered(t, harness.Before)
	return err
}
