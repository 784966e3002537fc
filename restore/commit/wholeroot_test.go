package commit_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/commit"
	"github.com/spectrumfs/spectrum/restore/restoretest"
	"github.com/spectrumfs/spectrum/staging"
)

// house is a directory with a restore root in it.
type house struct {
	t       *testing.T
	root    string
	staging func() // called before the exchange
}

func newHouse(t *testing.T) *house {
	h := &house{t, filepath.Join(t.TempDir(), "root"), func() {}}
	must(t, os.Mkdir(h.root, 0o755))
	must(t, os.WriteFile(filepath.Join(h.root, "old"), nil, 0o600))
	return h
}

// exchange puts a new directory in the place of the root, and calls settled when
// it is there. It is dropped, as by a kill, if settled does not return.
func (h *house) exchange(settled func() error) error {
	h.t.Helper()
	root, err := pathsafe.OpenRoot(h.root)
	must(h.t, err)
	defer root.Close()
	parent, err := pathsafe.OpenRoot(filepath.Dir(h.root))
	must(h.t, err)
	defer parent.Close()
	l, err := staging.Lock(h.t.Context(), root, restoretest.JournalKey, 0)
	must(h.t, err)
	defer l.Close()
	name, err := pathsafe.Parse("root")
	must(h.t, err)
	old, err := parent.Lstat("root")
	must(h.t, err)
	return l.ExchangeRoot(h.t.Context(), parent, "root", staging.Exchange{
		Kind: "snapshot_restore", Swaps: []staging.Swap{{Path: name, Old: &old, New: true}},
		Stage: func(_ context.Context, dir *pathsafe.Dir) error {
			if err := dir.Mkdir("0", 0o755); err != nil {
				return err
			}
			made, err := dir.OpenDir("0")
			if err != nil {
				return err
			}
			defer made.Close()
			h.staging()
			return made.Mkdir("new", 0o700)
		},
		Settled: func(context.Context, *pathsafe.Dir) error { return settled() },
	})
}

// holds wants the root that was entered to be the one at the path, and that to
// hold one thing.
func (h *house) holds(in *commit.Root, name string) {
	h.t.Helper()
	if _, err := os.Lstat(filepath.Join(h.root, name)); err != nil {
		h.t.Error(err)
	}
	root, err := pathsafe.OpenRoot(h.root)
	must(h.t, err)
	defer root.Close()
	if err := commit.Check(in, root); err != nil {
		h.t.Error(err)
	}
	if left, err := os.ReadDir(filepath.Dir(h.root)); err != nil || len(left) != 1 {
		h.t.Error(left, err)
	}
}

// TestEnterAfterAKilledExchange: the root was exchanged when its process was
// killed. Who enters it has the old one again, and its lock.
func TestEnterAfterAKilledExchange(t *testing.T) {
	h := newHouse(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = h.exchange(func() error {
			runtime.Goexit()
			return nil
		})
	}()
	<-done
	if _, err := os.Lstat(filepath.Join(h.root, "new")); err != nil {
		t.Fatal(err)
	}
	in, ended, err := commit.Enter(t.Context(), h.root, commit.Entry{Key: restoretest.JournalKey})
	must(t, err)
	defer in.Leave()
	if len(ended) != 1 || ended[0].Result != staging.RolledBack || ended[0].Kind != "snapshot_restore" {
		t.Error(ended)
	}
	h.holds(in, "old")
}

// TestEnterWhileTheRootIsExchanged: who waits for the lock of the old root gets
// the new one.
func TestEnterWhileTheRootIsExchanged(t *testing.T) {
	h := newHouse(t)
	type result struct {
		in  *commit.Root
		err error
	}
	entered := make(chan result)
	h.staging = func() {
		go func() {
			in, _, err := commit.Enter(t.Context(), h.root, commit.Entry{Key: restoretest.JournalKey, Wait: time.Minute})
			entered <- result{in, err}
		}()
		time.Sleep(50 * time.Millisecond) // it may have opened the old root by now; if not the test is an easy one
	}
	must(t, h.exchange(func() error { return nil }))
	r := <-entered
	must(t, r.err)
	defer r.in.Leave()
	h.holds(r.in, "new")
}
