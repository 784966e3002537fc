package staging

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// machineFaults are errors that say nothing of what stands in a root.
var machineFaults = []fault{
	{unix.EIO, false}, {unix.EMFILE, false}, {unix.EACCES, false}, {unix.ENOMEM, false}, {unix.ENOSPC, false}, {unix.EIO, true},
}

// TestRecoverForwardMeetsErrors lets each call of a recovery from COMMITTED fail. No
// error of the machine takes back what was announced: the recovery reports it, and
// the next one goes forward.
func TestRecoverForwardMeetsErrors(t *testing.T) {
	for _, from := range []string{notPublished, oneIsMissing, allPublished} {
		for _, f := range machineFaults {
			for _, onward := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%v/%v", from, f, onward), func(t *testing.T) {
					t.Parallel()
					forwardMeets(t, from, f, onward)
				})
			}
		}
	}
}

func forwardMeets(t *testing.T, from string, f fault, onward bool) {
	t.Helper()
	s := &sweeper{t: t, base: scratch(t), make: singleCommit}
	failed := 0
	recoverWith := func(n int) *injector {
		sc, before := s.fresh()
		sc.abandon(from)
		in := &injector{fault: f, onward: onward, n: n}
		out, err := sc.recoverHooked(in.hook)
		if err != nil {
			failed++
			if !errors.Is(err, f.err) {
				t.Errorf("the cause is lost: %v", err)
			}
		}
		again, errAgain := sc.recover(Automatic)
		must(t, errAgain)
		for _, o := range append(out, again...) {
			if o.Result != Completed && o.Result != Cleared {
				t.Errorf("%v, %v", out, again)
			}
		}
		sc.done(before)
		if t.Failed() {
			t.Fatalf("call %d, %q: %v", n, in.what, err)
		}
		return in
	}
	in := recoverWith(0) // counts
	for _, n := range tries(t, 12, in.calls) {
		recoverWith(n)
	}
	if failed == 0 {
		t.Error("no recovery failed")
	}
}

// recoverHooked is recover with a hook once the lock is taken.
func (s *commitFixture) recoverHooked(h hook) ([]Outcome, error) {
	s.t.Helper()
	hooked := &sysHook{}
	l, err := enter(s.t.Context(), s.dir, testKey, hooked)
	must(s.t, err)
	defer l.Close()
	hooked.Call = h
	return l.recover(s.t.Context(), Automatic)
}

// TestRecoverSaysWhyItGoesBack: what is not as it was left is why a commit goes back
// after all.
func TestRecoverSaysWhyItGoesBack(t *testing.T) {
	for want, change := range map[error]func(path string) error{
		unix.ENOENT: os.Remove,
		errAccess:   func(path string) error { return os.Chmod(path, 0o614) },
	} {
		sc, _ := abandoned(t, notPublished)
		must(t, change(sc.at("fresh/g")))
		out, err := sc.recover(Automatic)
		if err != nil || len(out) != 1 || out[0].Result != RolledBack || !errors.Is(out[0].Cause, want) {
			t.Errorf("%v: %+v, %v", want, out, err)
		}
	}
}
