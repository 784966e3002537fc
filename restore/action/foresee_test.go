package action_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
	"golang.org/x/sys/unix"
)

// lookIn enters the root for a dry run.
func (w *fixture) lookIn() (*action.Root, func(), error) {
	w.t.Helper()
	state := w.state()
	key, err := state.JournalKey()
	must(w.t, err)
	in, _, err := action.Enter(context.Background(), w.root, action.Entry{
		Key: key, Halts: state, Bars: state, Savepoints: w.savepoints(), Snapshots: w.snapshots(), State: state.Root(), DryRun: true,
	})
	return in, func() {
		in.Leave()
		must(w.t, state.Close())
	}, err
}

// prints are what stands beneath the root and the state directory: identities, contents and
// the times of change, so that every write shows.
func (w *fixture) prints() []string { return w.printsBut() }

// printsBut are the prints without some names.
func (w *fixture) printsBut(names ...string) (all []string) {
	w.t.Helper()
	for _, top := range []string{w.root, filepath.Join(w.base, "state")} {
		must(w.t, filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
			must(w.t, err)
			if slices.Contains(names, e.Name()) {
				if e.IsDir() {
					return fs.SkipDir
				}
				return nil
			}
			var st unix.Stat_t
			must(w.t, unix.Lstat(path, &st))
			content := ""
			if e.Type().IsRegular() && strings.HasPrefix(path, filepath.Join(w.base, "state")) {
				raw, err := os.ReadFile(path)
				must(w.t, err)
				content = string(raw)
			}
			all = append(all, fmt.Sprint(path, st.Ino, st.Size, st.Mode, st.Mtim, st.Ctim, content))
			return nil
		}))
	}
	return all
}

// fatal is of a test and of a rapid one.
type fatal interface {
	Helper()
	Fatalf(format string, args ...any)
}

// foreseen does a dry run, which must write nothing.
func foreseen[R any](t fatal, w *fixture, look func(*action.Root) (R, error)) (R, error) {
	t.Helper()
	w.state().Close() // so that the directory is there
	for _, close := range []func() error{w.snapshots().Close, w.savepoints().Close} {
		must(w.t, close())
	}
	before := w.prints()
	in, leave, err := w.lookIn()
	if err != nil {
		t.Fatalf("a dry run did not get in: %v", err)
	}
	seen, err := look(in)
	leave()
	if diff := cmp.Diff(before, w.prints()); diff != "" {
		t.Fatalf("a dry run has written:\n%s", diff)
	}
	return seen, err
}

// wantForeseen holds what a dry run has said against what was done.
func wantForeseen[R any](t fatal, seen, done R, unseen, err error) {
	t.Helper()
	if (unseen == nil) != (err == nil) {
		t.Fatalf("the dry run: %v, the real one: %v", unseen, err)
	}
	var later, later2 *action.LaterError
	if errors.As(err, &later) && (!errors.As(unseen, &later2) || !cmp.Equal(later, later2)) {
		t.Fatalf("the dry run: %v, the real one: %v", unseen, err)
	}
	same := cmp.Options{
		cmpopts.IgnoreFields(action.Done{}, "Action"), cmpopts.IgnoreUnexported(action.Undone{}),
		cmpopts.IgnoreTypes([]action.Space{}),
		cmp.Comparer(func(a, b savepoint.Savepoint) bool { return a.ID() == b.ID() }),
		cmp.Transformer("entries", func(s *snapshot.Snapshot) (all []string) {
			if s == nil {
				return nil
			}
			for e := range s.Entries() {
				all = append(all, fmt.Sprint(e.Path, e.Type, e.Size, e.Digest, e.Hard, e.Asked))
			}
			return append(all, fmt.Sprint(s.Header().Files, s.Header().Bytes, s.Header().Names, s.Header().Whole))
		}),
	}
	if diff := cmp.Diff(seen, done, same); diff != "" {
		t.Fatalf("the dry run and the real one (-dry +real):\n%s", diff)
	}
}

// wantChanges compares changes with the trees before and after them.
func wantChanges(t fatal, before, after forest, changes []action.Change) {
	t.Helper()
	sum := func(f forest, top string) (c action.Content) {
		for path := range f {
			if path == top || strings.HasPrefix(path, top+"/") {
				c.Names++
				if f[path].kind == 'f' {
					c.Files++
				}
			}
		}
		return c
	}
	covered := func(path string) bool {
		return slices.ContainsFunc(changes, func(c action.Change) bool {
			return path == c.Path || c.Kind != action.Adjusted && strings.HasPrefix(path, c.Path+"/")
		})
	}
	differs := func(path string) bool {
		was, is := before[path], after[path]
		if was == nil || is == nil || was.kind != is.kind {
			return was != is
		}
		return was.content != is.content || was.mode != is.mode && was.kind != 'l' || was.note != is.note
	}
	for path := range before {
		if differs(path) && !covered(path) {
			t.Fatalf("%q differs, and is in no change: %+v", path, changes)
		}
	}
	for path := range after {
		if differs(path) && !covered(path) {
			t.Fatalf("%q differs, and is in no change: %+v", path, changes)
		}
	}
	for _, c := range changes {
		if c.Kind == action.Adjusted {
			if !differs(c.Path) {
				t.Fatalf("%+v, and it is the same", c)
			}
			continue
		}
		for what, is := range map[string][2]action.Content{"before": {c.Old, sum(before, c.Path)}, "after": {c.New, sum(after, c.Path)}} {
			if is[0].Names != is[1].Names || is[0].Files != is[1].Files {
				t.Fatalf("%s %q: %+v, and there is %+v", what, c.Path, is[0], is[1])
			}
		}
		if (c.Old.Names > 0) != (c.Kind != action.Created) || (c.New.Names > 0) != (c.Kind != action.Removed) {
			t.Fatalf("%+v", c)
		}
	}
}

// TestDryRunOfUndo: a dry run has all that a rollback does: what goes with its sizes, what had
// been edited, what stays and why.
func TestDryRunOfUndo(t *testing.T) {
	w := newFixture(t)
	first := w.mustCommit(map[string]string{"out/a": "alpha", "out/sub/b": "beta", "kept/c": "gamma"})
	w.write("out/a", "edited")
	w.write("kept/mine", "mine")
	w.remove("RESTORE_REPORT.json")
	for _, later := range []bool{true, false} {
		what := action.What{Commit: first, Later: later, Reason: "why"}
		seen, err := foreseen(t, w, func(in *action.Root) (*action.Undone, error) {
			return action.ForeseeUndo(context.Background(), in, what)
		})
		must(t, err)
		want := []action.Change{
			{Path: "RESTORE_MANIFEST.json", Kind: action.Removed, Old: action.Content{Type: snapshot.File, Names: 1, Files: 1, Bytes: seen.Changes[0].Old.Bytes}},
			{Path: "kept/c", Kind: action.Removed, Old: action.Content{Type: snapshot.File, Names: 1, Files: 1, Bytes: 5}},
			{Path: "out", Kind: action.Removed, Old: action.Content{Type: snapshot.Dir, Names: 4, Files: 2, Bytes: 10}},
		}
		if diff := cmp.Diff(want, seen.Changes); diff != "" {
			t.Errorf("changes (-want +got):\n%s", diff)
		}
		if len(seen.Left) != 1 || seen.Left[0].Path != "kept" || !slices.Equal(seen.Changed, []string{"out/a"}) || seen.Files != 4 || seen.Done.Action != "" {
			t.Errorf("%+v", seen)
		}
	}
}

// TestDryRunOfRestore: the same of a restore, in which names come and are replaced.
func TestDryRunOfRestore(t *testing.T) {
	w := newFixture(t)
	w.fill()
	taken := w.take()
	w.change()
	how := action.How{Type: audit.Session, Reason: "why"}
	seen, err := foreseen(t, w, func(in *action.Root) (*action.Restored, error) {
		return action.ForeseeRestore(context.Background(), in, taken, how)
	})
	must(t, err)
	was := read(t, w.root)
	done, err := w.restore(taken)
	wantForeseen(t, seen, done, nil, err)
	wantChanges(t, was, read(t, w.root), done.Changes)
	kinds := map[action.ChangeKind]int{}
	for _, c := range done.Changes {
		kinds[c.Kind]++
	}
	for _, kind := range []action.ChangeKind{action.Created, action.Removed, action.Replaced, action.Adjusted} {
		if kinds[kind] == 0 {
			t.Errorf("no change is %q: %+v", kind, done.Changes)
		}
	}
}

// TestDryRunRejected: the dry run rejects what a restore rejects, with the same words.
func TestDryRunRejected(t *testing.T) {
	w := newFixture(t)
	w.write("f/x", "x")
	taken := w.take()
	how := w.some("nothing")
	_, unseen := foreseen(t, w, func(in *action.Root) (*action.Restored, error) {
		return action.ForeseeRestore(context.Background(), in, taken, how)
	})
	_, err := w.restoreSome(taken, w.some("nothing"))
	if !errors.Is(err, action.ErrNothingThere) || unseen == nil || unseen.Error() != err.Error() {
		t.Errorf("the dry run: %v, the real one: %v", unseen, err)
	}
}

// TestDryEntry: a dry run ends nothing that an attempt has left, and reports a halt as every
// other command does.
func TestDryEntry(t *testing.T) {
	const id = "11111111-2222-4333-8444-555555555555"
	w := newFixture(t)
	w.write("f", "")
	w.take()
	for _, kind := range []string{".spectrum06_staging_", ".spectrum06_exchange_"} {
		stage := kind + id
		w.write(stage+"/.spectrum06_intent", "torn")
		state := w.state()
		for _, halted := range []bool{false, true} {
			if halted {
				must(t, state.Halt(id))
			}
			before := w.prints()
			in, leave, err := w.lookIn()
			if err == nil {
				leave()
				t.Errorf("%s: a dry run got in: %v", stage, in)
				continue
			}
			if diff := cmp.Diff(before, w.prints()); diff != "" {
				t.Errorf("%s: a dry run has written:\n%s", stage, diff)
			}
			if errors.Is(err, action.ErrUnended) == halted || errors.Is(err, staging.ErrHalted) != halted || !strings.Contains(err.Error(), stage) {
				t.Errorf("%s, halted %v: %v", stage, halted, err)
			}
		}
		must(t, state.Release(id))
		must(t, state.Close())
		w.remove(stage)
	}
}

// TestDryRunOnly: a root that was entered for a dry run is not taken back.
func TestDryRunOnly(t *testing.T) {
	w := newFixture(t)
	w.write("f", "was")
	taken := w.take()
	w.write("f", "is")
	in, leave, err := w.lookIn()
	must(t, err)
	defer leave()
	before := w.prints()
	if _, err := action.Restore(context.Background(), in, taken, action.How{Type: audit.Session, Reason: "why"}); err == nil {
		t.Error("it was restored")
	}
	if diff := cmp.Diff(before, w.prints()); diff != "" {
		t.Errorf("it has written:\n%s", diff)
	}
}
