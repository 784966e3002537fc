package staging

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

// recoverWith is a recovery whose calls go through a hook.
func (s *commitFixture) recoverWith(mode Mode, hook func(op, path string, f func() error) error) ([]Outcome, error) {
	s.t.Helper()
	l, err := enter(context.Background(), s.dir, testKey, &sysHook{})
	must(s.t, err)
	defer l.Close()
	l.s.Call = hook
	return l.recover(context.Background(), mode)
}

// unfinishable leaves an attempt that cannot be undone altogether: another process has put a file
// into a directory that it made.
func unfinishable(t *testing.T) *commitFixture {
	t.Helper()
	sc, _ := lazilyAbandoned(t, allMoved)
	plant(t, sc.root, "fresh/deep/theirs")
	return sc
}

// lazilyAbandoned is abandoned where no power is cut, and in a sample not on disk.
func lazilyAbandoned(t *testing.T, call string) (*commitFixture, picture) {
	t.Helper()
	root := filepath.Join(t.TempDir(), "root")
	if sampled() {
		root = filepath.Join(scratch(t), "root")
	}
	sc := singleCommit(t, root)
	sc.lazy = true
	before := take(t, sc.root)
	sc.abandon(call)
	return sc, before
}

// TestReleased: what cannot be undone is released when a person says so. What is left is
// reported, foreign files stay, and the root is free again.
func TestReleased(t *testing.T) {
	sc := unfinishable(t)
	theirs := take(t, sc.root)["fresh/deep/theirs"]
	for _, mode := range []Mode{Automatic, Person} {
		var halt *HaltError
		if _, err := sc.recover(mode); !errors.As(err, &halt) {
			t.Fatalf("%v", err)
		}
	}
	out, err := sc.recover(Acknowledged)
	if err != nil || len(out) != 1 || out[0].Result != Released || out[0].Left == nil {
		t.Fatalf("%v, %v", out, err)
	}
	if now := take(t, sc.root)["fresh/deep/theirs"]; now != theirs {
		t.Errorf("theirs was %s, is %s", theirs, now)
	}
	for _, mode := range []Mode{Automatic, Person, Acknowledged} {
		if out, err := sc.recover(mode); err != nil || len(out) > 0 {
			t.Errorf("then %v, %v", out, err)
		}
	}
	left := take(t, sc.root)
	must(t, os.RemoveAll(sc.at("fresh")))
	must(t, sc.commit())
	if len(left) == 0 || take(t, sc.root)["fresh"] == "" {
		t.Error("the next commit put nothing there")
	}
}

// TestReleaseFailsAnywhere fails each call of the recovery that releases, once
// each. Theirs stays, and a second recovery ends it. Where it was away and could not be put
// back, it is in what is kept, and the outcome says so.
func TestReleaseFailsAnywhere(t *testing.T) {
	failsAnywhere(t, Acknowledged, unfinishable, func(sc *commitFixture, what string, out []Outcome) {
		text, err := os.ReadFile(sc.at("fresh/deep/theirs"))
		if kept, _ := filepath.Glob(sc.at(keptPrefix + "*/old/*/deep/theirs")); len(kept) == 1 && len(out) == 1 && strings.Contains(out[0].Left.Error(), keptPrefix+out[0].Attempt) {
			text, err = os.ReadFile(kept[0])
		}
		if string(text) != "foreign fresh/deep/theirs" {
			t.Errorf("%s: theirs is gone: %q, %v", what, text, err)
		}
		if len(out) > 0 && out[0].Result != Released && out[0].Result != Cleared {
			t.Errorf("%s: %v", what, out)
		}
	})
}

// TestRecoverFailsAnywhere fails each call of a recovery, once each. A second
// one ends it: all is in place, or all is as it was.
func TestRecoverFailsAnywhere(t *testing.T) {
	for _, call := range []string{halfStaged, allMoved, notPublished, allPublished, "unlink .spectrum06_committed"} {
		var before picture
		failsAnywhere(t, Automatic, func(t *testing.T) *commitFixture {
			sc, b := lazilyAbandoned(t, call)
			before = b
			return sc
		}, func(sc *commitFixture, what string, out []Outcome) {
			if t.Failed() {
				return
			}
			if _, err := os.Lstat(sc.at("RESTORE_MANIFEST.json")); err == nil {
				sc.done(before)
			} else {
				sameTree(t, before, sc.root)
			}
			if t.Failed() {
				t.Fatalf("%s, failing %s: %v", call, what, out)
			}
		})
	}
}

// failsAnywhere makes a fixture for each call of its recovery, fails that call,
// and recovers again.
func failsAnywhere(t *testing.T, mode Mode, make func(*testing.T) *commitFixture, check func(sc *commitFixture, what string, out []Outcome)) {
	t.Helper()
	failed := 0
	try := func(n int) (calls int) { // the first call is 1; 0 fails none
		t.Run("", func(t *testing.T) {
			sc, what := make(t), ""
			var mu sync.Mutex
			fails := func(op, path string) bool {
				mu.Lock()
				defer mu.Unlock()
				if calls++; calls != n || op == "close" {
					return false
				}
				what = op + " " + path
				return true
			}
			first, err := sc.recoverWith(mode, func(op, path string, f func() error) error {
				if fails(op, path) {
					return unix.EIO
				}
				return sc.lazily(op, path, f)
			})
			if err != nil {
				failed++
			}
			if calls < n {
				t.Errorf("there are only %d calls, not %d", calls, n)
			}
			out, err := sc.recover(max(mode, Person))
			if err != nil {
				t.Fatalf("failing %s (%v), then %v", what, first, err)
			}
			if again, err := sc.recover(Automatic); err != nil || len(again) > 0 {
				t.Fatalf("failing %s: not ended: %v, %v", what, again, err)
			}
			check(sc, what, append(slices.Clone(first), out...))
		})
		return calls
	}
	chosen := tries(t, 12, try(0))
	for _, n := range chosen {
		try(n)
	}
	t.Logf("%d calls failed, of which %d ended the recovery", len(chosen), failed)
	if !sampled() && failed < 3 {
		t.Errorf("only %d calls matter", failed)
	}
}

// TestErrorNamesLockHolder: the error names who holds the lock, and a session knows its own
// directory.
func TestErrorNamesLockHolder(t *testing.T) {
	one, other := openRoot(t, t.TempDir()), openRoot(t, t.TempDir())
	l, err := Lock(t.Context(), one, testKey, 0)
	must(t, err)
	defer l.Close()
	must(t, l.Hold(t.Context()))
	_, err = Lock(t.Context(), one, testKey, 0)
	var busy *BusyError
	if !errors.As(err, &busy) || !errors.Is(err, pathsafe.ErrLocked) {
		t.Fatalf("%v", err)
	}
	if busy.PID != os.Getpid() || busy.Command == "" || !strings.Contains(busy.Error(), busy.Command) {
		t.Errorf("%d %q: %v", busy.PID, busy.Command, busy)
	}
	if text := (&BusyError{Err: pathsafe.ErrLocked}).Error(); strings.Contains(text, "process 0") {
		t.Errorf("it names a process that is none: %s", text)
	}
	for dir, want := range map[*pathsafe.Dir]bool{one: true, other: false} {
		if is, err := l.Is(dir); err != nil || is != want {
			t.Errorf("%v, %v; want %v", is, err, want)
		}
	}
	closed, err := pathsafe.OpenRoot(t.TempDir())
	must(t, err)
	must(t, closed.Close())
	if is, err := l.Is(closed); err == nil || is {
		t.Errorf("of a closed one: %v, %v", is, err)
	}
}
