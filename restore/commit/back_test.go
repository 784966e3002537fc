package commit_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/commit"
	"github.com/spectrumfs/spectrum/restore/restoretest"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
)

// backRoom is a root that is entered with all stores.
type backRoom struct {
	*scene
	f     *shelf
	l     *ledger
	place string // of the snapshots
}

func newBackRoom(t *testing.T) *backRoom {
	t.Helper()
	return &backRoom{newScene(t, "single"), newShelf(t), newLedger(t), t.TempDir()}
}

func (b *backRoom) enter() *commit.Root { return b.enterWith(b.l.open()) }

func (b *backRoom) enterWith(log *audit.Log) *commit.Root {
	b.t.Helper()
	store, err := snapshot.Open(b.place)
	must(b.t, err)
	in, _, err := commit.Enter(context.Background(), b.root, commit.Entry{
		Key: restoretest.JournalKey, Log: log, Savepoints: b.f.store(), Snapshots: store, Host: b.f.host, Authority: b.f,
	})
	must(b.t, err)
	return in
}

// TestNoSnapshotNoCommit: what cannot be kept before a commit blocks it. Nothing is
// written, and the failure says why.
func TestNoSnapshotNoCommit(t *testing.T) {
	b := newBackRoom(t)
	a := b.approve()
	in := b.enter()
	defer in.Leave()
	must(t, os.Rename(filepath.Join(b.place, "roots"), filepath.Join(b.place, "roots.gone")))
	must(t, os.RemoveAll(filepath.Join(b.place, "incoming")))
	before := b.census()
	err := commit.Run(context.Background(), in, a, commit.Watch{})
	if got := failureOf(t, err); got.Code != restore.InternalError || !strings.Contains(err.Error(), "no snapshot could be taken before it, so it is not begun") {
		t.Errorf("%v", err)
	}
	if after := b.census(); after != before {
		t.Errorf("before %s, after %s", before, after)
	}
	b.l.check()
	b.f.check(b.scene, 0)
}

// TestBackIsLogged: each action is logged with the snapshot before it, whose scope
// is what it makes; what a way back was, and which savepoint is active then, whoever
// ends it finds in the snapshot.
func TestBackIsLogged(t *testing.T) {
	b := newBackRoom(t)
	a := b.approve()
	in := b.enter()
	defer func() { in.Leave() }()
	must(t, commit.Run(context.Background(), in, a, commit.Watch{}))
	before := b.snapshots()
	wanted := []string{"RESTORE_MANIFEST.json", "RESTORE_REPORT.json", "existing/f.txt", "new", "top.txt"}
	if len(before) != 1 || before[0].Action != in.Commit() || !slices.Equal(b.scope(before[0].ID), wanted) {
		t.Errorf("%+v, scope %q", before, b.scope(before[0].ID))
	}
	done, err := in.GoBack(context.Background(), b.back(nil))
	must(t, err)
	said := map[string]string{
		commit.SavepointNow: in.Savepoint(), "savepoint_after": "", "affected": in.Commit(), "brings": "", "target": "", "rollback": "session", "reason": "because",
	}
	if diff := cmp.Diff(said, done.Snapshot.Header().Said); diff != "" {
		t.Error(diff)
	}
	b.f.check(b.scene, 0)
	b.l.check("commit_begin", "commit_end", "rollback_begin session", "rollback session")
	for i, e := range b.l.entries() {
		if want := []string{before[0].ID, "", done.Snapshot.ID(), done.Snapshot.ID()}[i]; e.Snapshot != want {
			t.Errorf("entry %d has snapshot %q, want %q", i, e.Snapshot, want)
		}
	}
}

// TestBackIsRefused: what the caller says of the snapshot, or of what went, undoes
// it; no savepoint goes.
func TestBackIsRefused(t *testing.T) {
	stop := errors.New("stop")
	for name, change := range map[string]func(*staging.Exchange) error{
		"plan":    func(*staging.Exchange) error { return stop },
		"settled": settledBy(func() error { return stop }),
	} {
		t.Run(name, func(t *testing.T) {
			b := newBackRoom(t)
			a := b.approve()
			in := b.enter()
			defer in.Leave()
			must(t, commit.Run(context.Background(), in, a, commit.Watch{}))
			before := entriesIn(t, b.root)
			_, err := in.GoBack(context.Background(), b.back(change))
			if !errors.Is(err, stop) {
				t.Errorf("%v", err)
			}
			after := entriesIn(t, b.root)
			for path := range before {
				checkSame(t, path, before[path], after[path])
			}
			b.f.check(b.scene, 1)
			if name == "plan" {
				b.l.check("commit_begin", "commit_end")
			} else {
				b.l.check("commit_begin", "commit_end", "rollback_begin session", "rollback micro")
			}
		})
	}
}

// TestBackIsEnded: a way back that was complete, and could not be logged, is ended by
// the next one to enter: the chain follows then, and the log has it.
func TestBackIsEnded(t *testing.T) {
	b := newBackRoom(t)
	a := b.approve()
	f, err := os.OpenFile(b.l.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	must(t, err)
	in := b.enterWith(audit.New(f))
	must(t, commit.Run(context.Background(), in, a, commit.Watch{}))
	_, err = in.GoBack(context.Background(), b.back(settledBy(f.Close)))
	in.Leave()
	var unfinished *commit.UnfinishedError
	if !errors.As(err, &unfinished) || unfinished.Of.Attempt == "" || unfinished.Of.Kind != "rollback" || unfinished.Of.Staging == "" || len(commit.HaltsOf(err)) > 0 {
		t.Errorf("that it is not recorded is said as %v, and nothing halts the root", err)
	}
	b.l.check("commit_begin", "commit_end", "rollback_begin session")
	b.enter().Leave()
	b.f.check(b.scene, 0)
	b.l.check("commit_begin", "commit_end", "rollback_begin session", "rollback session")
}

func settledBy(do func() error) func(e *staging.Exchange) error {
	return func(e *staging.Exchange) error {
		e.Settled = func(context.Context, *pathsafe.Dir) error { return do() }
		return nil
	}
}

// back is a way back of one file.
func (b *backRoom) back(change func(*staging.Exchange) error) commit.Back {
	b.t.Helper()
	dir, err := pathsafe.OpenRoot(b.root)
	must(b.t, err)
	defer dir.Close()
	path, err := pathsafe.Parse("top.txt")
	must(b.t, err)
	st, err := dir.Lstat("top.txt")
	must(b.t, err)
	all := b.f.check(b.scene, 1)
	return commit.Back{
		Type: audit.Session, Reason: "because", Affected: []string{all[0].Attempt()}, Scope: []pathsafe.Path{path},
		Plan: func(*snapshot.Snapshot) (staging.Exchange, error) {
			e := staging.Exchange{Kind: "rollback", Swaps: []staging.Swap{{Path: path, Old: &st}}}
			if change == nil {
				return e, nil
			}
			return e, change(&e)
		},
	}
}

func (b *backRoom) snapshots() []snapshot.Header {
	b.t.Helper()
	store, err := snapshot.Open(b.place)
	must(b.t, err)
	defer store.Close()
	all, err := store.List(b.root)
	must(b.t, err)
	return all
}

func (b *backRoom) scope(id string) (names []string) {
	b.t.Helper()
	store, err := snapshot.Open(b.place)
	must(b.t, err)
	defer store.Close()
	s, err := store.Find(id)
	must(b.t, err)
	for _, p := range s.Scope() {
		names = append(names, p.String())
	}
	return names
}
