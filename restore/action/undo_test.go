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
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"golang.org/x/sys/unix"
)

func (w *fixture) undo(id string, later bool) (*action.Undone, error) {
	w.t.Helper()
	in := w.enter()
	defer in.leave()
	return action.Undo(context.Background(), in.Root, action.What{Commit: id, Later: later, Reason: "asked for"})
}

func (w *fixture) restore(s *snapshot.Snapshot) (*action.Restored, error) {
	w.t.Helper()
	in := w.enter()
	defer in.leave()
	return action.Restore(context.Background(), in.Root, s, action.How{Type: audit.Session, Reason: "asked for"})
}

func (w *fixture) take() *snapshot.Snapshot {
	w.t.Helper()
	in := w.enter()
	defer in.leave()
	s, err := in.Snapshot(context.Background(), snapshot.Manual, "")
	must(w.t, err)
	return s
}

// same requires the root to be a forest.
func (w *fixture) same(want forest, why string) {
	w.t.Helper()
	if diff := cmp.Diff(want.print(), read(w.t, w.root).print()); diff != "" {
		w.t.Errorf("%s (-want +got):\n%s", why, diff)
	}
}

// paths are those of everything beneath the root.
func (w *fixture) paths() string {
	w.t.Helper()
	return strings.Join(read(w.t, w.root).sorted()[1:], " ")
}

// TestUndo undoes one commit after other changes to the root. Whatever they were, the snapshot
// that is taken then brings everything back.
func TestUndo(t *testing.T) {
	for name, c := range map[string]struct {
		before, after func(w *fixture)
		made          string // path of the files, each with itself as content
		left          string // content of the root afterwards
		files         int
		changed, told string
	}{
		"plain":      {made: "f new/a new/b/c", files: 5},
		"into there": {before: dirs("d"), made: "d/f d/new/f", left: "d", files: 4},
		"changed":    {made: "f g", after: func(w *fixture) { w.write("g", "mine") }, files: 4, changed: "g"},
		"foreign file": {made: "new/a new/b/c", left: "new new/mine", files: 4, told: `new: it contains "mine", which the commit did not create`,
			after: func(w *fixture) { w.write("new/mine", "") }},
		"foreign in the depth": {made: "new/a new/b/c", left: "new new/b new/b/mine", files: 4, told: `new/b: it contains "mine", which the commit did not create`,
			after: func(w *fixture) { w.mkdir("new/b/mine") }},
		"foreign socket":      {made: "new/a", left: "new new/s", files: 3, told: `new: it contains "s", which the commit did not create`, after: func(w *fixture) { w.socket("new/s") }},
		"file is a directory": {made: "f/a", left: "f f/a f/a/mine", files: 2, told: "f/a: it is no longer a file", after: become("f/a", func(w *fixture) { w.write("f/a/mine", "") })},
		"file is a link":      {made: "new/a b", left: "new new/a", files: 3, told: "new/a: it is no longer a file", after: become("new/a", func(w *fixture) { w.link("../b", "new/a") })},
		"file is a fifo":      {made: "a", left: "a", files: 2, told: "a: it is no longer a file", after: become("a", func(w *fixture) { w.fifo("a") })},
		"directory is a link": {made: "new/a", left: "moved moved/a new", files: 2, told: "new: it is no longer a directory", after: func(w *fixture) {
			must(w.t, os.Rename(w.at("new"), w.at("moved")))
			w.link("moved", "new")
		}},
		"directory is a file": {made: "new/a", left: "new", files: 2, told: "new: it is no longer a directory", after: become("new", func(w *fixture) { w.write("new", "") })},
		"removed already":     {made: "new/a new/b f", files: 4, after: func(w *fixture) { w.remove("new/a") }},
		"directory removed":   {made: "new/a new/b f", files: 3, after: func(w *fixture) { w.remove("new") }},
		"all removed":         {made: "new/a", after: func(w *fixture) { w.remove("new"); w.remove(artifacts[0]); w.remove(artifacts[1]) }},
		"through a link":      {before: func(w *fixture) { w.mkdir("d"); w.link("d", "l") }, made: "l/new/a l/f", left: "d l", files: 4},
		"link is gone":        {before: func(w *fixture) { w.mkdir("d"); w.link("d", "l") }, made: "l/new/a", left: "d", files: 3, after: func(w *fixture) { w.remove("l") }},
		"link leads elsewhere": {before: func(w *fixture) { w.mkdir("d"); w.mkdir("e"); w.link("d", "l") }, made: "l/a", left: "d e e/a l", files: 3,
			after: func(w *fixture) { w.remove("l"); w.link("e", "l"); w.write("e/a", "mine") }},
		"two ways to one": {before: dirs("a b"), made: "a/f b/f", left: "a b", files: 3, told: "b: it is no longer a directory", after: become("b", func(w *fixture) { w.link("a", "b") })},
		"way is a file":   {before: dirs("d"), made: "d/f", left: "d", files: 2, told: "d: it is no longer a directory", after: become("d", func(w *fixture) { w.write("d", "") })},
		"way is a fifo":   {before: dirs("d"), made: "d/f", left: "d", files: 2, told: "d: it is no longer a directory", after: become("d", func(w *fixture) { w.fifo("d") })},
		"way leaves":      {before: dirs("d"), made: "d/f", left: "d", files: 2, told: "d: it is no longer a directory", after: become("d", func(w *fixture) { w.link("/etc", "d") })},
		"way is a loop":   {before: dirs("d"), made: "d/f", left: "d", files: 2, told: "d: it is no longer a directory", after: become("d", func(w *fixture) { w.link("d", "d") })},
		"way is gone":     {before: dirs("d"), made: "d/f", files: 2, after: func(w *fixture) { w.remove("d") }},
		"hard links":      {made: "f new/g", files: 4, changed: "new/g", after: become("new/g", func(w *fixture) { must(w.t, os.Link(w.at("f"), w.at("new/g"))) })},
		"no rights":       {made: "new/a", files: 3, after: func(w *fixture) { must(w.t, os.Chmod(w.at("new"), 0)) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			if c.before != nil {
				c.before(w)
			}
			contents := map[string]string{}
			for path := range strings.FieldsSeq(c.made) {
				contents[path] = path
			}
			id := w.mustCommit(contents)
			if c.after != nil {
				c.after(w)
			}
			was := withoutSockets(read(t, w.root))
			got, err := w.undo(id, false)
			must(t, err)
			if left := w.paths(); left != c.left {
				t.Errorf("left %q, want %q", left, c.left)
			}
			told := ""
			for _, l := range got.Left {
				told += l.Path + ": " + l.Why
			}
			if got.Files != c.files || strings.Join(got.Changed, " ") != c.changed || told != c.told {
				t.Errorf("%d files, changed %q, told %q", got.Files, got.Changed, told)
			}
			if chain := w.chain(); len(chain) > 0 {
				t.Errorf("chain %q", chain)
			}
			_, err = w.restore(got.Done.Snapshot)
			must(t, err)
			if diff := cmp.Diff(was.print(), withoutSockets(read(t, w.root)).print()); diff != "" {
				t.Errorf("the snapshot brings back (-before +now):\n%s", diff)
			}
			if chain := w.chain(); !slices.Equal(chain, []string{id}) {
				t.Errorf("chain %q", chain)
			}
		})
	}
}

func dirs(names string) func(*fixture) {
	return func(w *fixture) {
		for name := range strings.FieldsSeq(names) {
			w.mkdir(name)
		}
	}
}

// become replaces what stands at a path.
func become(path string, with func(*fixture)) func(*fixture) {
	return func(w *fixture) {
		w.remove(path)
		with(w)
	}
}

func withoutSockets(f forest) forest {
	for p, th := range f {
		if th.kind == 0 {
			delete(f, p)
		}
	}
	return f
}

// TestUndoIntoAMount: a mount over what the commit made, or on the way to it, stays as it is
// and is named, and so is what it covers; all else is undone.
func TestUndoIntoAMount(t *testing.T) {
	for at, stays := range map[string]string{"new": "d new new/f", "d": "d d/f", "new/f": "d new new/f"} {
		t.Run(at, func(t *testing.T) {
			w := newFixture(t)
			w.mkdir("d")
			id := w.mustCommit(map[string]string{"new/f": "", "d/f": ""})
			from := filepath.Join(w.base, "project-1", "new")
			if at == "new/f" {
				from += "/f"
			}
			if err := unix.Mount(from, w.at(at), "", unix.MS_BIND, ""); err != nil {
				t.Skip(err)
			}
			defer func() { _ = unix.Unmount(w.at(at), unix.MNT_DETACH) }()
			got, err := w.undo(id, false)
			if err != nil || len(got.Left) == 0 || got.Left[0].Path != at || !strings.Contains(got.Left[0].Why, "mount") {
				t.Errorf("%+v, %v", got, err)
			}
			if now := w.paths(); now != stays {
				t.Errorf("there is %q, want %q", now, stays)
			}
			if chain := w.chain(); len(chain) != 1 || !got.InPart {
				t.Errorf("chain %q, %+v", chain, got)
			}
			must(t, unix.Unmount(w.at(at), unix.MNT_DETACH))
			got, err = w.undo(id, false)
			if now := w.paths(); err != nil || got.InPart || now != "d" || len(w.chain()) > 0 {
				t.Errorf("without the mount: %+v, %v, chain %q, and there is %q", got, err, w.chain(), now)
			}
		})
	}
}

// commitAgain commits once more, where the result artifacts of the last one were.
func (w *fixture) commitAgain(contents map[string]string) string {
	w.t.Helper()
	for _, name := range artifacts {
		w.remove(name)
	}
	return w.mustCommit(contents)
}

// TestUndoMany: as many commits as there may be go back in one step, although each is named in
// the snapshot before that.
func TestUndoMany(t *testing.T) {
	w := newFixture(t)
	was := read(t, w.root)
	first := w.mustCommit(map[string]string{"f0": ""})
	for i := range 130 { // 37 bytes each: more than 4 KiB
		w.commitAgain(map[string]string{fmt.Sprint("f", i+1): ""})
	}
	done, err := w.undo(first, true)
	if err != nil || len(done.Commits) != 131 {
		t.Fatalf("%v", err)
	}
	w.same(was, "after the rollback of 131 commits")
}

// TestUndoLater: later commits are named, the newest first, and go with it.
func TestUndoLater(t *testing.T) {
	w := newFixture(t)
	w.write("mine", "")
	was := read(t, w.root)
	a := w.mustCommit(map[string]string{"new/a": "a", "b": "first"})
	before := w.paths()
	w.remove("b")
	b := w.commitAgain(map[string]string{"new/sub/b": "b", "b/inside": "second"})
	w.remove("b")
	c := w.commitAgain(map[string]string{"new/c": "c", "b": "third"})
	all := read(t, w.root)
	_, err := w.undo(a, false)
	var later *action.LaterError
	if !errors.As(err, &later) || later.Commit != a || !slices.Equal(later.Later, []string{c, b}) || !strings.Contains(err.Error(), c+", "+b) {
		t.Errorf("%v", err)
	}
	w.same(all, "after the refusal")
	got, err := w.undo(a, true)
	must(t, err)
	w.same(was, "without all three")
	var undone []string
	for _, sp := range got.Commits {
		undone = append(undone, sp.Attempt())
	}
	if !slices.Equal(undone, []string{c, b, a}) || len(got.Changed) > 0 || len(got.Left) > 0 {
		t.Errorf("%q, changed %q, left %v", undone, got.Changed, got.Left)
	}
	if _, err := w.undo(b, true); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("once more: %v", err)
	}
	_, err = w.restore(got.Done.Snapshot)
	must(t, err)
	w.same(all, "brought back")
	got, err = w.undo(b, true)
	must(t, err)
	if now := w.paths(); strings.Contains(before, " b ") && now != "mine new new/a" { // what the user removed does not come back
		t.Errorf("%q, %+v", now, got.Left)
	}
}

// TestUndoMixed: a directory that one commit made holds what another one made in a
// directory of the user's own, and that one stays.
func TestUndoMixed(t *testing.T) {
	w := newFixture(t)
	a := w.mustCommit(map[string]string{"new/a": "a"})
	w.mkdir("new/mine")
	w.commitAgain(map[string]string{"new/mine/b": "b"})
	got, err := w.undo(a, true)
	must(t, err)
	if now := w.paths(); now != "new new/mine" || len(got.Left) != 1 || got.Left[0].Path != "new" {
		t.Errorf("%q, %+v", now, got.Left)
	}
}

// TestUndoBesideDamage: a commit can be undone whatever has become of the savepoints before it,
// and of what is not a savepoint. If its own savepoint cannot be read, the snapshot from before
// the commit can be restored.
func TestUndoBesideDamage(t *testing.T) {
	w := newFixture(t)
	a := w.mustCommit(map[string]string{"a": "a"})
	b := w.commitAgain(map[string]string{"b": "b"})
	before := read(t, w.root)
	c := w.commitAgain(map[string]string{"c": "c"})
	chain, err := filepath.Glob(filepath.Join(w.base, "state", "savepoints", "*", "chain", "*"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(filepath.Dir(chain[0]), "stray"), nil, 0o600))
	must(t, os.Remove(filepath.Join(chain[2], bundle.Status)))
	var unread *action.UnreadError
	was := read(t, w.root)
	if _, err = w.undo(c, true); !errors.As(err, &unread) || unread.Commit != c || unread.Err.RunDir != chain[2] {
		t.Errorf("%v", err)
	}
	w.same(was, "after the refusal")
	store := w.snapshots()
	all, err := store.List(w.root)
	must(t, err)
	for _, h := range all {
		if h.Action == c {
			snap, err := store.Find(h.ID)
			must(t, err)
			done, err := w.restore(snap)
			if err != nil || len(done.Commits) > 0 {
				t.Errorf("%+v, %v", done, err)
			}
		}
	}
	must(t, store.Close())
	for _, name := range artifacts { // of the second commit, that the third one's took the place of
		delete(before, name)
	}
	w.same(before, "without the third")
	must(t, os.Remove(filepath.Join(chain[0], bundle.Status)))
	if got, err := w.undo(b, false); err != nil || len(got.Commits) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := w.undo(a, false); err == nil {
		t.Error("a commit whose savepoint is damaged is undone")
	}
}

// TestUndoBesideLaterDamage: what stands in the place of a later savepoint and cannot be read
// stops nothing. What the commit before it has created goes, and what the later one may have
// created stays: that is not of the commit, or has another content than the commit gave it.
func TestUndoBesideLaterDamage(t *testing.T) {
	for _, later := range []bool{false, true} {
		for name, spoil := range map[string]func(string) error{
			"damaged": func(dir string) error { return os.Remove(filepath.Join(dir, bundle.Status)) },
			"junk": func(dir string) error {
				return errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "junk"), nil, 0o600))
			},
		} {
			t.Run(fmt.Sprint(name, " later ", later), func(t *testing.T) {
				w := newFixture(t)
				a := w.mustCommit(map[string]string{"new/a": "a", "new/b": "b", "own/c": "c", "own/same": "same", "d": "d"})
				w.remove("own/c")
				w.remove("own/same")
				b := w.commitAgain(map[string]string{"new/x/later": "", "own/c": "again", "own/same": "same"})
				w.write("new/b", "edited")
				chain, err := filepath.Glob(filepath.Join(w.base, "state", "savepoints", "*", "chain", "*"))
				must(t, err)
				must(t, spoil(chain[1]))
				was := read(t, w.root)
				in := w.enter()
				seen, err := action.ForeseeUndo(context.Background(), in.Root, action.What{Commit: a, Later: later, Reason: "asked for"})
				in.leave()
				must(t, err)
				got, err := w.undo(a, later)
				must(t, err)
				if now := w.paths(); now != "RESTORE_MANIFEST.json RESTORE_REPORT.json new new/b new/x new/x/later own own/c own/same" {
					t.Errorf("there is %q", now)
				}
				if len(got.Commits) != 1 || got.Files != 2 || !slices.Equal(got.Unread, []string{b}) || len(got.Changed) != 0 || len(w.chain()) != 0 {
					t.Errorf("%+v, chain %q", got, w.chain())
				}
				if diff := cmp.Diff([]any{seen.Files, seen.Left, seen.Unread, seen.Changes}, []any{got.Files, got.Left, got.Unread, got.Changes}); diff != "" {
					t.Errorf("foreseen (-), done (+):\n%s", diff)
				}
				_, err = w.restore(got.Done.Snapshot)
				must(t, err)
				w.same(was, "brought back")
			})
		}
	}
}

// TestUndoWithoutSnapshot: without the snapshot of a commit it is unknown what the commit made.
// Nothing is changed.
func TestUndoWithoutSnapshot(t *testing.T) {
	w := newFixture(t)
	id := w.mustCommit(map[string]string{"new/a": "a"})
	w.take()
	store := w.snapshots()
	_, err := store.Prune(context.Background(), snapshot.Policy{KeepWithin: 1, Now: time.Now().Add(time.Hour)}, nil)
	must(t, errors.Join(err, store.Close()))
	was := read(t, w.root)
	if got, err := w.undo(id, false); !errors.Is(err, action.ErrNoSnapshot) || !strings.Contains(fmt.Sprint(err), id) || got != nil {
		t.Errorf("%+v, %v", got, err)
	}
	w.same(was, "after the refusal")
}

// TestUndoMeetsRemoval: a file that is removed during the undo, before its turn, was to be
// removed anyway.
func TestUndoMeetsRemoval(t *testing.T) {
	for _, call := range []wedge{{op: "make directory", path: "new"}, {op: "rename", path: "RESTORE_MANIFEST.json"}, {op: "rename", path: "f"}, {op: "rename", path: "new"}} {
		t.Run(call.op+" "+call.path, func(t *testing.T) {
			w := newFixture(t)
			id := w.mustCommit(map[string]string{"f": "", "new/b/c": "c"})
			in := w.enter()
			call.do = func() { w.remove("f"); w.remove("new") }
			in.whenStaging(call.call)
			got, err := action.Undo(context.Background(), in.Root, action.What{Commit: id, Reason: "asked for"})
			in.leave()
			if err != nil || got == nil || !call.done {
				t.Errorf("%+v, %v", got, err)
			}
			if got := w.paths(); got != "" {
				t.Errorf("left: %q", got)
			}
			if _, open := w.log(); open > 0 || len(w.chain()) != 0 {
				t.Errorf("%d open", open)
			}
		})
	}
}

// A wedge does something when a call is made: the one with this name, and then of
// these the first that is about this path.
type wedge struct {
	op, path string
	do       func()
	done     bool
}

func (w *wedge) call(op, path string, f func() error) error {
	if op == w.op && filepath.Base(path) == w.path && !w.done {
		w.done = true
		w.do()
	}
	return f()
}

// TestUndoMeetsOtherProcess: what appears or changes while a commit is undone does not stop that. A
// directory with something new in it stays, and is named; what had changed in the snapshot's
// place is kept, and named.
func TestUndoMeetsOtherProcess(t *testing.T) {
	write := func(path, text string) func(w *fixture) { return func(w *fixture) { w.write(path, text) } }
	for name, c := range map[string]struct {
		op, path string
		do       func(w *fixture)
		stays    string // what stands in the root then
		kept     string // content of new/b/c that is kept; "" for none
	}{
		"after the plan":      {"", "", write("new/mine", ""), "new new/mine", ""},
		"deep after the plan": {"", "", write("new/b/mine", ""), "new new/b new/b/mine", ""},
		"after the snapshot":  {"make directory", "new", write("new/mine", ""), "new new/mine", ""},
		"while it goes":       {"rename", "c", write("new/b/mine", ""), "new new/b new/b/mine", ""},
		"changed after it":    {"make directory", "new", write("new/b/c", "mine"), "", "mine"},
		"changed as it goes":  {"rename", "c", write("new/b/c", "mine"), "", "mine"},
		"mode after it":       {"make directory", "new", func(w *fixture) { must(w.t, os.Chmod(w.at("new/b/c"), 0o600)) }, "", "c"},
		"replaced after it":   {"make directory", "new", func(w *fixture) { w.remove("new/b/c"); w.write("new/b/c", "new/b/c") }, "", "new/b/c"},
		"gone after it":       {"make directory", "new", func(w *fixture) { w.remove("new/b") }, "", ""},
		"a directory of it":   {"rename", "c", func(w *fixture) { w.remove("new/b/c"); w.write("new/b/c/d", "") }, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			id := w.mustCommit(map[string]string{"f": "", "new/b/c": "c"})
			in := w.enter()
			wedge := &wedge{op: c.op, path: c.path, do: func() { c.do(w) }}
			if c.op == "" {
				w.began = wedge.do
			} else {
				in.whenStaging(wedge.call)
			}
			got, err := action.Undo(context.Background(), in.Root, action.What{Commit: id, Reason: "asked for"})
			in.leave()
			if err != nil || c.op != "" && !wedge.done {
				t.Fatalf("%v, %v", err, wedge.done)
			}
			if (c.stays != "") != (len(got.Left) > 0) {
				t.Errorf("left are %v", got.Left)
			}
			if name == "a directory of it" {
				if len(got.Done.Kept) != 1 {
					t.Fatalf("kept are %v", got.Done.Kept)
				}
				_, err := os.Lstat(w.at(got.Done.Kept[0].At + "/d"))
				must(t, err)
			} else if (c.kept != "") != (len(got.Done.Kept) == 1) {
				t.Errorf("kept are %v", got.Done.Kept)
			}
			for _, k := range got.Done.Kept {
				if text, err := os.ReadFile(w.at(k.At)); c.kept != "" && (string(text) != c.kept || k.Path.String() != "new/b/c" || err != nil) {
					t.Errorf("kept is %q of %q, %v", text, k.Path, err)
				}
				w.remove(strings.Split(k.At, "/")[0])
			}
			if there := w.paths(); there != c.stays {
				t.Errorf("then there is %q", there)
			}
			w.enter().leave()
			if _, open := w.log(); open > 0 || len(w.chain()) != 0 {
				t.Errorf("%d open, %d commits", open, len(w.chain()))
			}
		})
	}
}

// TestDisturbedTryIsLogged: each try of a rollback that is disturbed takes a snapshot of its
// own, and the log knows all of them.
func TestDisturbedTryIsLogged(t *testing.T) {
	w := newFixture(t)
	w.mkdir("d")
	w.mustCommit(map[string]string{"d/f": "f", "g": "g"})
	taken := w.take()
	w.write("d/f", "changed")
	in := w.enter()
	moved := &wedge{op: "stat", path: "f", do: func() {
		must(t, os.Rename(w.at("d"), w.at("elsewhere")))
		w.mkdir("d")
	}}
	in.whenStaging(moved.call)
	_, err := action.Restore(context.Background(), in.Root, taken, action.How{Type: audit.Session, Reason: "asked for"})
	in.leave()
	must(t, err)
	all, _, err := w.snapshots().Survey("")
	must(t, err)
	ids := w.loggedSnapshots()
	for _, snap := range all {
		if !ids[snap.ID] {
			t.Errorf("the log does not know snapshot %d of %d", snap.Sequence, len(all))
		}
	}
	if len(all) < 4 { // before the commit, after it, and of two tries
		t.Errorf("%d snapshots: nothing was disturbed", len(all))
	}
}

// TestEverySnapshotIsLogged: a command that was killed between its snapshot and the entry in the log
// leaves one that the log does not know. Whatever takes the next one logs it, also where it had
// entered the root before.
func TestEverySnapshotIsLogged(t *testing.T) {
	for name, next := range map[string]func(w *fixture, in *inside, taken *snapshot.Snapshot) error{
		"a snapshot": func(_ *fixture, in *inside, _ *snapshot.Snapshot) error {
			_, err := in.Snapshot(context.Background(), snapshot.Manual, "")
			return err
		},
		"a restore": func(_ *fixture, in *inside, taken *snapshot.Snapshot) error {
			_, err := action.Restore(context.Background(), in.Root, taken, action.How{Type: audit.Session, Reason: "asked for"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			taken := w.take()
			w.write("f", "changed")
			in := w.enter()
			w.snapshotBefore("of one that is killed", "f")
			must(t, next(w, in, taken))
			in.leave()
			store := w.snapshots()
			defer store.Close()
			all, err := store.List(w.root)
			must(t, err)
			logged := w.loggedSnapshots()
			for _, snap := range all {
				if !logged[snap.ID] {
					t.Errorf("the log does not know snapshot %d of %d", snap.Sequence, len(all))
				}
			}
		})
	}
}

// loggedSnapshots are those that the log knows.
func (w *fixture) loggedSnapshots() map[string]bool {
	w.t.Helper()
	state := w.state()
	defer state.Close()
	f, err := state.AuditLog()
	must(w.t, err)
	log := audit.New(f)
	defer log.Close()
	ids := map[string]bool{}
	_, err = log.Read(func(e audit.Entry) error {
		ids[e.Snapshot] = true
		return nil
	})
	must(w.t, err)
	return ids
}
