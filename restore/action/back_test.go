package action_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/restoretest"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
)

// backRoom is a root that is entered with all stores.
type backRoom struct {
	*scene
	f     *savepointStore
	l     *ledger
	place string // of the snapshots
}

func newBackRoom(t *testing.T) *backRoom {
	t.Helper()
	return &backRoom{newScene(t, "single"), newShelf(t), newLedger(t), t.TempDir()}
}

func (b *backRoom) enter() *action.Root { return b.enterWith(b.l.open()) }

func (b *backRoom) enterWith(log *audit.Log) *action.Root {
	b.t.Helper()
	store, err := snapshot.Open(b.place)
	must(b.t, err)
	in, _, err := action.Enter(context.Background(), b.root, action.Entry{
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
	err := action.Commit(context.Background(), in, a, action.Watch{})
	if got := failureOf(t, err); got.Code != restore.InternalError || !strings.Contains(err.Error(), "no snapshot could be taken before it, so it is not begun") {
		t.Errorf("%v", err)
	}
	if after := b.census(); after != before {
		t.Errorf("before %s, after %s", before, after)
	}
	b.l.check()
	b.f.check(b.scene, 0)
}

// TestRollbackIsLogged: each action is logged with the snapshot before it, whose scope is what it
// makes; the snapshot records the kind of the rollback and which savepoint is active then, for
// the command that completes it.
func TestRollbackIsLogged(t *testing.T) {
	b := newBackRoom(t)
	a := b.approve()
	in := b.enter()
	defer func() { in.Leave() }()
	must(t, action.Commit(context.Background(), in, a, action.Watch{}))
	before := b.snapshots()
	wanted := []string{"RESTORE_MANIFEST.json", "RESTORE_REPORT.json", "existing/f.txt", "new", "top.txt"}
	if len(before) != 1 || before[0].Action != in.Commit() || !slices.Equal(b.scope(before[0].ID), wanted) {
		t.Errorf("%+v, scope %q", before, b.scope(before[0].ID))
	}
	done, err := b.goBack(in, func() error { return nil })
	must(t, err)
	said := map[string]string{
		action.SavepointNow: in.Savepoint(), "affected": in.Commit(), "brings": "", "target": "", "rollback": "session", "reason": "because",
	}
	if diff := cmp.Diff(said, done.Snapshot.Header().Texts); diff != "" {
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

// TestRollbackIsRejected: what the caller cannot make, or what is in a directory that makes way and is
// not in the snapshot, undoes it; no savepoint goes. Before it has begun nothing is logged.
func TestRollbackIsRejected(t *testing.T) {
	stop := errors.New("stop")
	for name, do := range map[string]func(b *backRoom) error{
		"fill": func(*backRoom) error { return stop },
		"written": func(b *backRoom) error {
			return os.WriteFile(filepath.Join(b.root, "new/more"), []byte("others\n"), 0o600)
		},
		"plan": nil,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBackRoom(t)
			a := b.approve()
			in := b.enter()
			defer in.Leave()
			must(t, action.Commit(context.Background(), in, a, action.Watch{}))
			if do == nil {
				_, err := in.Before(context.Background(), b.back())
				must(t, err)
				b.f.check(b.scene, 1)
				b.l.check("commit_begin", "commit_end")
				return
			}
			before := entriesIn(t, b.root)
			_, err := b.goBack(in, func() error { return do(b) })
			var failed *staging.Error
			if !errors.As(err, &failed) || failed.Rollback != nil || !errors.Is(err, stop) && !failed.IsDisturbance() {
				t.Errorf("%v", err)
			}
			after := entriesIn(t, b.root)
			for path := range before {
				checkSame(t, path, before[path], after[path])
			}
			b.f.check(b.scene, 1)
			b.l.check("commit_begin", "commit_end", "rollback_begin session", "rollback micro")
		})
	}
}

// TestRollbackIsEnded: a rollback that was complete, and could not be logged, is completed by the
// next command that enters the root: the chain follows then, and the log has it.
func TestRollbackIsEnded(t *testing.T) {
	b := newBackRoom(t)
	a := b.approve()
	f, err := os.OpenFile(b.l.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	must(t, err)
	in := b.enterWith(audit.New(f))
	must(t, action.Commit(context.Background(), in, a, action.Watch{}))
	_, err = b.goBack(in, f.Close)
	in.Leave()
	var unfinished *action.UnfinishedError
	if !errors.As(err, &unfinished) || unfinished.Of.Attempt == "" || unfinished.Of.Kind != "rollback" || unfinished.Of.Staging == "" || len(action.HaltsOf(err)) > 0 {
		t.Errorf("that it is not recorded is said as %v, and nothing halts the root", err)
	}
	b.l.check("commit_begin", "commit_end", "rollback_begin session")
	b.enter().Leave()
	b.f.check(b.scene, 0)
	b.l.check("commit_begin", "commit_end", "rollback_begin session", "rollback session")
}

// back is a rollback of one directory.
func (b *backRoom) back() action.Back {
	b.t.Helper()
	path, err := pathsafe.Parse("new")
	must(b.t, err)
	all := b.f.check(b.scene, 1)
	return action.Back{Type: audit.Session, Reason: "because", Affected: []string{all[0].Attempt()}, Scope: []pathsafe.Path{path}}
}

// goBack replaces that directory; do runs while the new one is made.
func (b *backRoom) goBack(in *action.Root, do func() error) (action.Done, error) {
	b.t.Helper()
	back := b.back()
	st, err := in.Dir().Lstat("new")
	must(b.t, err)
	done, err := in.Before(b.t.Context(), back)
	must(b.t, err)
	var swaps []staging.Swap
	for e := range done.Snapshot.Entries() {
		if st := e.Stat(); strings.HasPrefix(e.Path, "new/") {
			path, err := pathsafe.Found(e.Path)
			must(b.t, err)
			swaps = append(swaps, staging.Swap{Path: path, Old: &st, Empty: st.Mode.IsDir()})
		}
	}
	slices.Reverse(swaps)
	swaps = append(swaps, staging.Swap{Path: back.Scope[0], Old: &st, Empty: true, New: staging.Tree{}})
	return done, in.GoBack(b.t.Context(), done, back, staging.Change{Kind: "rollback", Swaps: swaps}, func(_ context.Context, dir *pathsafe.Dir) error {
		return errors.Join(do(), dir.WriteFile(strconv.Itoa(len(swaps)-1), []byte("before"), 0o600))
	})
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
