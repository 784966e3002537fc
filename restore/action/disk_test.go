package action_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/staging"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/verify/bundletest"
	"golang.org/x/sys/unix"
)

// TestFullDisk: the root is a file system that is too small for some step. What
// was written is removed, the space is free again, and with more of it the
// restore succeeds.
func TestFullDisk(t *testing.T) {
	for _, mode := range []string{"single", "chain"} {
		for _, c := range []struct {
			name, options, more string
			on                  string // when the rest of the space is filled
			code                restore.Code
			phase               restore.Phase
		}{
			{"no space to copy", "size=64k", "size=4m", "", restore.InternalError, restore.Execute},
			{"no inode to copy", "nr_inodes=6", "nr_inodes=100", "", restore.InternalError, restore.Execute},
			{"no space for the artifacts", "size=1m", "size=4m", publishPhase, restore.ResultArtifactWriteFailed, restore.Verify},
		} {
			t.Run(c.name+"/"+mode, func(t *testing.T) {
				s := emptyScene(t, mode == "chain")
				s.mount(".", c.options)
				s.add("run-2", map[string]string{"a/b/c/d/big": strings.Repeat("x", 100<<10), "a/b/c/small": "s", "top": "t"})
				before, free := entriesIn(t, s.root), freeSpace(t, s.root)
				err := s.commit(context.Background(), s.approve(), at(c.on, func() { fill(t, s.at("filler")) }))
				if got := failureOf(t, err); got.Code != c.code || got.Phase != c.phase || !errors.Is(err, syscall.ENOSPC) {
					t.Errorf("%v", err)
				}
				_ = os.Remove(s.at("filler"))
				fault{on: finalizePhase}.checkLeft(s, before)
				if now := freeSpace(t, s.root); now != free {
					t.Errorf("free %v, before %v", now, free)
				}
				must(t, unix.Mount("tmpfs", s.root, "tmpfs", unix.MS_REMOUNT, c.more))
				s.mustCommit()
			})
		}
	}
}

func freeSpace(t *testing.T, dir string) [2]uint64 {
	t.Helper()
	var st unix.Statfs_t
	must(t, unix.Statfs(dir, &st))
	return [2]uint64{st.Bfree, st.Ffree}
}

// fill leaves not one block.
func fill(t *testing.T, name string) {
	t.Helper()
	if err := os.WriteFile(name, make([]byte, 8<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("filling the disk: %v", err)
	}
}

// TestTwoCommits: while one is running, another one of the same root is rejected, says why, and
// changes nothing; the first goes on.
func TestTwoCommits(t *testing.T) {
	for _, on := range []string{stagePhase, syncPhase, finalizePhase, verifyPhase, publishPhase} {
		s, other := newScene(t, "single"), emptyScene(t, false)
		other.root = s.root
		other.add("run-9", map[string]string{"elsewhere": "x"})
		before := entriesIn(t, s.root)
		a, b := s.approve(), other.approve()
		must(t, s.commit(context.Background(), a, at(on, func() {
			now := bundletest.Census(t, s.root)
			err := s.commit(context.Background(), b, nil)
			var busy *staging.BusyError
			if !errors.As(err, &busy) || busy.PID != os.Getpid() || !errors.Is(err, pathsafe.ErrLocked) {
				t.Errorf("during %s: %v", on, err)
			}
			if bundletest.Census(t, s.root) != now {
				t.Errorf("during %s: the loser wrote something", on)
			}
		})))
		s.checkRestored(before)
	}
}

// TestCancel: before the first move a cancelled commit is undone, afterwards it
// finishes.
func TestCancel(t *testing.T) {
	for _, mode := range []string{"single", "chain"} {
		for _, c := range []struct {
			on       string
			finishes bool
		}{
			{"", false}, {stagePhase, false}, {syncPhase, false}, {finalizePhase, true}, {verifyPhase, true}, {publishPhase, true},
		} {
			t.Run(mode+"/"+c.on, func(t *testing.T) {
				s := newScene(t, mode)
				before, a := entriesIn(t, s.root), s.approve()
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				if c.on == "" {
					cancel()
				}
				err := s.commit(ctx, a, at(c.on, cancel))
				if c.finishes {
					must(t, err)
					s.checkRestored(before)
					return
				}
				want := restore.Failure{Code: restore.InternalError, Phase: restore.Execute}
				if got := failureOf(t, err); got != want || !errors.Is(err, context.Canceled) {
					t.Errorf("%v", err)
				}
				fault{}.checkLeft(s, before)
			})
		}
	}
}

// TestRivals: strangers make and take away things of their own in the root
// during the whole commit. It succeeds, and theirs are as they left them.
func TestRivals(t *testing.T) {
	for _, mode := range []string{"single", "chain"} {
		s := newScene(t, mode)
		before := entriesIn(t, s.root)
		a := s.approve()
		stop := make(chan struct{})
		made := make(chan int)
		go func() { made <- disturb(s, stop) }()
		must(t, s.commit(context.Background(), a, nil))
		close(stop)
		if <-made == 0 {
			t.Error("undisturbed")
		}
		if got := harness.ReadFile(t, s.at("existing/rival")); got != "rival" {
			t.Errorf("rival's file holds %q", got)
		}
		must(t, os.Remove(s.at("existing/rival")))
		s.checkRestored(before)
	}
}

func disturb(s *scene, stop chan struct{}) (n int) {
	name := s.at("existing/rival")
	for ; ; n++ {
		if os.WriteFile(name, []byte("rival"), 0o600) != nil {
			return -1
		}
		select {
		case <-stop:
			return n + 1
		default:
			_ = os.Remove(name)
		}
	}
}

// TestKnownConflict: what the plan knows to be in the way ends the
// commit before anything is looked at again.
func TestKnownConflict(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(s *scene)
		want restore.Failure
	}{
		{"target", rival("new/a.txt"), restore.Failure{Code: restore.TargetPathExists, Phase: restore.Execute, Path: "new/a.txt"}},
		{"artifact", rival(restore.ManifestName), restore.Failure{Code: restore.TargetPathExists, Phase: restore.Execute, Path: restore.ManifestName}},
		{"mount", func(s *scene) { s.mount("existing", "") }, restore.Failure{Code: restore.FinalizeFailed, Phase: restore.Execute, Path: "existing/f.txt"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t, "single")
			c.do(s)
			a, before := s.approve(), bundletest.Census(t, s.root)
			err := s.commit(context.Background(), a, func(phase string, _ int64) { t.Errorf("phase %s began", phase) })
			if got := failureOf(t, err); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
			if bundletest.Census(t, s.root) != before {
				t.Error("something was written")
			}
		})
	}
}
