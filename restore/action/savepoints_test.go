package action_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/preview/report"
	"github.com/spectrumfs/spectrum/restore/restoretest"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/staging"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// savepointStore is a store of savepoints of a test's own, and what a commit needs of it.
type savepointStore struct {
	t     testing.TB
	path  string
	host  func() (action.Host, error)
	began []string // by root
	veto  error
}

func newShelf(t testing.TB) *savepointStore {
	t.Helper()
	key, err := bundle.GenerateKey()
	must(t, err)
	return &savepointStore{t: t, path: t.TempDir(), host: func() (action.Host, error) { return action.Host{Key: key, BuildID: "git:x"}, nil }}
}

// Attempt is [action.Authority].
func (f *savepointStore) RolledBack(string, []string) error { return nil }

func (f *savepointStore) Attempt(root string) error {
	f.began = append(f.began, root)
	return f.veto
}

func (f *savepointStore) store() *savepoint.Store {
	f.t.Helper()
	store, err := savepoint.Open(f.path)
	must(f.t, err)
	return store
}

func (f *savepointStore) enter(s *scene) *action.Root {
	f.t.Helper()
	in, _, err := action.Enter(context.Background(), s.root, action.Entry{Key: restoretest.JournalKey, Savepoints: f.store(), Host: func() (action.Host, error) { return f.host() }, Authority: f})
	must(f.t, err)
	return in
}

// check requires so many savepoints of the root, and nothing that is only prepared.
func (f *savepointStore) check(s *scene, want int) []savepoint.Savepoint {
	f.t.Helper()
	store := f.store()
	defer store.Close()
	all, err := store.List(s.root)
	must(f.t, err)
	waiting, err := store.Pending(s.root)
	must(f.t, err)
	if len(all) != want || len(waiting) != 0 {
		f.t.Fatalf("%d savepoints, want %d; prepared: %q", len(all), want, waiting)
	}
	return all
}

// TestSavepoint: a commit leaves one savepoint of exactly its files, with its
// report, and says which; it is prepared before anything is written.
func TestSavepoint(t *testing.T) {
	for _, kind := range []string{"single", "chain"} {
		t.Run(kind, func(t *testing.T) {
			s, f := newScene(t, kind), newShelf(t)
			a := s.approve()
			in := f.enter(s)
			defer in.Leave()
			prepared := 0
			must(t, action.Commit(context.Background(), in, a, action.Watch{Progress: func(string, int64) {
				if prepared == 0 {
					names, _ := filepath.Glob(filepath.Join(f.path, "*", "prepared", "*"))
					prepared = len(names)
				}
			}}))
			sp := f.check(s, 1)[0]
			targets, err := a.Targets()
			must(t, err)
			if prepared != 1 || in.Savepoint() != sp.ID() || sp.Listing().Len() != len(targets) || len(f.began) != 1 || f.began[0] != s.root {
				t.Errorf("prepared %d, said %q of %q, %d files of %d, began %q", prepared, in.Savepoint(), sp.ID(), sp.Listing().Len(), len(targets), f.began)
			}
			kept, err := sp.Report()
			must(t, err)
			want, err := a.Outcome().JSON()
			must(t, err)
			if string(kept.JSON) != string(want) || string(kept.Markdown) != string(report.Commit(a.Outcome())) {
				t.Errorf("%s", kept.JSON)
			}
		})
	}
}

// TestNoSavepointOfAFailure: nothing is left in the store of a commit that failed, and
// nothing is written where there can be no savepoint, or no preview may hold.
func TestNoSavepointOfAFailure(t *testing.T) {
	s, f := newScene(t, "single"), newShelf(t)
	a := s.approve()
	in := f.enter(s)
	for path := range s.want {
		must(t, os.WriteFile(s.source(path), []byte("other"), 0o644))
	}
	err := action.Commit(context.Background(), in, a, action.Watch{})
	in.Leave()
	if err == nil {
		t.Fatal("it succeeded")
	}
	f.check(s, 0)

	broken := errors.New("broken")
	for name, c := range map[string]struct {
		change func(f *savepointStore)
		want   string
	}{
		"no authority": {func(f *savepointStore) { f.veto = broken }, "broken"},
		"no key":       {func(f *savepointStore) { f.host = func() (action.Host, error) { return action.Host{}, broken } }, "the key that signs savepoints: broken"},
		"no store":     {func(f *savepointStore) { must(t, os.Chmod(f.path, 0o777)); must(t, os.RemoveAll(f.path)) }, "preparing the savepoint"},
	} {
		t.Run(name, func(t *testing.T) {
			s, f := newScene(t, "single"), newShelf(t)
			before := s.census()
			a := s.approve()
			in := f.enter(s)
			defer in.Leave()
			c.change(f)
			err := action.Commit(context.Background(), in, a, action.Watch{})
			var failure *restore.Failure
			if !errors.As(err, &failure) || failure.Code != restore.InternalError || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if after := s.census(); after != before {
				t.Errorf("something was written:\n%s\n%s", before, after)
			}
		})
	}
}

// prepare leaves what a commit leaves that is killed before it writes anything in a
// directory.
func (f *savepointStore) prepare(s *scene, attempt, dir string) {
	f.t.Helper()
	store := f.store()
	defer store.Close()
	host, err := f.host()
	must(f.t, err)
	approved := s.approve()
	targets, err := approved.Targets()
	must(f.t, errors.Join(err, approved.Restore().Close()))
	root, err := pathsafe.OpenRoot(dir)
	must(f.t, err)
	defer root.Close()
	id, err := root.Identity()
	must(f.t, err)
	draft := savepoint.Draft{
		Outputs: targets, Report: savepoint.Report{Markdown: []byte("m"), JSON: []byte("{}")},
		Said: map[string]any{"restore_root_id": id},
	}
	_, err = store.Prepare(context.Background(), s.root, attempt, draft, host.Key, host.BuildID)
	must(f.t, err)
}

const killed = "8c5f0f2e-93a5-4f3e-8f1e-0d6b1c9f7a11"

// TestSavepointIsDropped: what a killed commit has prepared goes when its root is entered, and
// not when another directory is in its place.
func TestSavepointIsDropped(t *testing.T) {
	s, f := newScene(t, "single"), newShelf(t)
	f.prepare(s, killed, s.root)
	must(t, os.Rename(s.root, s.root+" away"))
	must(t, os.Mkdir(s.root, 0o755))
	f.enter(s).Leave()
	store := f.store()
	defer store.Close()
	if waiting, err := store.Pending(s.root); err != nil || len(waiting) != 1 {
		t.Fatalf("%q, %v: it went with another directory", waiting, err)
	}
	must(t, os.Remove(s.root))
	must(t, os.Rename(s.root+" away", s.root))
	f.enter(s).Leave()
	f.check(s, 0)
}

// TestSavepointOfAnotherDisk: a disk has another device number after a restart, and another
// disk at the same path can have its number: each keeps its own prepared savepoints.
func TestSavepointOfAnotherDisk(t *testing.T) {
	format := harness.Ext4
	format.Fresh = true // each with an ID of its own
	own, other, beside := harness.NewVolume(t, format), harness.NewVolume(t, format), harness.NewVolume(t, format)
	own.Mount(t)
	s, f := newScene(t, "single"), newShelf(t)
	s.root = own.Path
	f.prepare(s, killed, s.root)
	own.Unmount(t)

	must(t, own.MountFile(other.Image)) // the number that is free now
	f.enter(s).Leave()
	store := f.store()
	defer store.Close()
	if waiting, err := store.Pending(s.root); err != nil || len(waiting) != 1 {
		t.Errorf("%q, %v: it went with another disk", waiting, err)
	}
	own.Unmount(t)

	beside.Mount(t) // takes the number of before
	own.Mount(t)
	f.enter(s).Leave()
	f.check(s, 0)
}

// TestSavepointOfAMovedRoot: a commit that is found complete under another path has
// the savepoint that was prepared for it.
func TestSavepointOfAMovedRoot(t *testing.T) {
	s, f := newScene(t, "single"), newShelf(t)
	f.prepare(s, killed, s.root)
	store := f.store()
	defer store.Close()
	id, err := store.PublishMoved(killed)
	must(t, err)
	if sp := f.check(s, 1)[0]; sp.ID() != id || sp.Root() != s.root {
		t.Errorf("%q of %q, said %q", sp.ID(), sp.Root(), id)
	}
	if id, err := store.PublishMoved("8c5f0f2e-93a5-4f3e-8f1e-0d6b1c9f7a12"); id != "" || err != nil {
		t.Errorf("of none: %q, %v", id, err)
	}
}

// TestSavepointOfALink: a root is one root, whichever path leads there.
func TestSavepointOfALink(t *testing.T) {
	s, f := newScene(t, "single"), newShelf(t)
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(s.root, link))
	a := s.approve()
	in, _, err := action.Enter(context.Background(), link, action.Entry{Key: restoretest.JournalKey, Savepoints: f.store(), Host: f.host, Mode: staging.Automatic})
	must(t, err)
	defer in.Leave()
	must(t, action.Commit(context.Background(), in, a, action.Watch{}))
	f.check(s, 1)
	if action.RootPath(link) != action.RootPath(s.root+"/.") || action.RootPath("/no/./where/") != "/no/where" {
		t.Errorf("%q, %q", action.RootPath(link), action.RootPath("/no/./where/"))
	}
}

// TestOwnArtifacts: the result artifacts of the active savepoint are those that its commit made, and none
// after its rollback.
func TestOwnArtifacts(t *testing.T) {
	w := newFixture(t)
	own := func() map[string][sha256.Size]byte {
		t.Helper()
		found, err := action.OwnArtifacts(w.savepoints(), w.root)
		must(t, err)
		return found
	}
	if found := own(); len(found) > 0 {
		t.Errorf("without a commit: %v", found)
	}
	commit := w.mustCommit(map[string]string{"a": "one"})
	found := own()
	for _, name := range []string{restore.ManifestName, restore.ReportName} {
		content, err := os.ReadFile(w.at(name))
		must(t, err)
		if found[name] != sha256.Sum256(content) {
			t.Errorf("%s is not as it was made", name)
		}
	}
	if len(found) != 2 {
		t.Errorf("%d artifacts", len(found))
	}
	_, err := w.undo(commit, false)
	must(t, err)
	if found := own(); len(found) > 0 {
		t.Errorf("after the rollback: %v", found)
	}
}
