package undo

import (
	"encoding/json"

	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/spectrumfs/spectrum/test/harness"
)

// files is a run with targets in the root, in a directory that exists already, in
// new ones that can go again, and in one that cannot.
func files() harness.Files {
	return harness.Files{
		"top.txt": "top\n", "out/a.txt": "alpha\n", "out/deep/long.bin": strings.Repeat("long", 50_000),
		"new/sub/b.txt": "beta\n", "new/c.txt": "gamma\n", "whole/deep/d.txt": "delta\n", "whole/e": "",
		"out/same.txt": "the same\n",
	}
}

// A command is what is tried, and the fixture that it is tried in.
type command struct {
	name    string
	stands  bool                           // the commit stands when it is done
	damaged bool                           // something in the store is, before
	mount   bool                           // the root is a mount point
	bound   bool                           // and shows itself; else it is a file system of its own
	prepare func(t testing.TB, w *fixture) // makes the root, by the commands of the program
	after   func(w *fixture) harness.Tree  // what it makes of the root; nil: it changes nothing there
}

// A fixture is a root with a finished commit, what happened to it since, foreign
// things and snapshots, and a state directory of its own.
type fixture struct {
	command *command
	ground  harness.Ground
	dir     string // all of it; the root is above/root, the state directory is state
	site    *harness.Site

	args       []string        // the command
	commit     string          // id of the commit
	savepoint  string          // of it
	target     string          // id of the snapshot that is restored
	old        harness.Tree    // what it has
	chains     [3][]string     // ids of the savepoints that stand, in each state
	snapshots  map[string]bool // ids of those that must be there
	stay       map[string]bool // of those that are there when the command is done
	log        int             // entries of the audit log
	aboveNames []string
}

// A place is where a fixture is made: dir holds all of it, and the program knows state
// and above/root.
type place struct {
	dir, state, above string
	ground            harness.Ground
}

func in(dir string) place {
	return place{dir: dir, state: filepath.Join(dir, "state"), above: filepath.Join(dir, "above")}
}

// newFixture makes a fixture, and keeps it for every trial. What it mounts goes with the
// mount that it is in.
func newFixture(t testing.TB, at place, a *command) *fixture {
	t.Helper()
	own := *projectOf(t, at.ground.User)
	own.State = at.state
	w := &fixture{command: a, ground: at.ground, dir: at.dir, site: &harness.Site{Project: &own, Root: filepath.Join(at.above, "root")}}
	harness.Must(t, os.MkdirAll(w.site.Root, 0o755))
	harness.Must(t, os.Mkdir(own.State, 0o700))
	switch {
	case a.bound:
		harness.Must(t, unix.Mount(w.site.Root, w.site.Root, "", unix.MS_BIND, ""))
	case a.mount:
		at.ground.Format.MountOn(t, at.dir, w.site.Root)
	}
	harness.Must(t, os.WriteFile(filepath.Join(at.above, "beside"), []byte("not yours"), 0o600))
	w.site = own.Site(t, w.site.Root)
	w.fit(t)
	w.give(t)
	a.prepare(t, w)
	w.give(t)
	w.save(t)
	return w
}

// give makes an ordinary user the owner of all, if he runs the program.
func (w *fixture) give(t testing.TB) {
	t.Helper()
	if user := w.site.Project.User; user != 0 {
		harness.GiveAll(t, w.above(), user)
		harness.GiveAll(t, w.site.Project.State, user)
	}
}

// fit gives the root owners and times that are not those of today.
func (w *fixture) fit(t testing.TB) {
	t.Helper()
	_ = os.Chown(w.path("beside/deep.txt"), 12, 34) // only root can; an ordinary user owns all
	harness.Must(t, os.Chmod(w.path("beside/deep.txt"), 0o604))
	when := time.Unix(1_500_000_000, 123_456_789)
	harness.Must(t, os.Chtimes(w.path("foreign.txt"), when, when))
	harness.Must(t, os.Chtimes(w.path("beside/empty"), when, when))
}

func (w *fixture) path(name string) string { return filepath.Join(w.site.Root, name) }

func (w *fixture) above() string { return filepath.Dir(w.site.Root) }

// run runs a command that must succeed, and reads its answer.
func (w *fixture) run(t testing.TB, into any, args ...string) {
	t.Helper()
	r := w.site.Project.Must(t, args...)
	if into != nil {
		harness.Must(t, json.Unmarshal([]byte(r.Stdout), into))
	}
}

// commitIt commits the run.
func (w *fixture) commitIt(t testing.TB) {
	t.Helper()
	w.give(t)
	if r := w.site.Commit(t, nil); r.Status != 0 {
		t.Fatal(r)
	}
	var list struct {
		Savepoints []struct{ ID, Attempt string } `json:"savepoints"`
	}
	w.run(t, &list, "savepoint", "list", "--json", w.site.Root)
	w.savepoint, w.commit = list.Savepoints[0].ID, list.Savepoints[0].Attempt
}

// clear takes away what looks like an attempt: of a root with such a thing no
// snapshot is taken.
func (w *fixture) clear(t testing.TB) {
	t.Helper()
	harness.Must(t, os.RemoveAll(w.path(harness.ForeignStaging)))
}

func (w *fixture) take(t testing.TB) string {
	t.Helper()
	w.give(t)
	var taken struct{ ID string }
	w.run(t, &taken, "snapshot", "take", "--json", w.site.Root)
	return taken.ID
}

// goOn is what people did since the commit: they changed what it made and what was
// there, removed, made, and replaced.
func (w *fixture) goOn(t testing.TB) {
	t.Helper()
	harness.Must(t, os.WriteFile(w.path("out/a.txt"), []byte("changed since\n"), 0o600))
	harness.Must(t, os.WriteFile(w.path("new/sub/todo.txt"), []byte("ask Ada\n"), 0o640))
	harness.Must(t, os.Remove(w.path("new/c.txt")))
	harness.Must(t, os.WriteFile(w.path("foreign.txt"), []byte("went on\n"), 0o644))
	harness.Must(t, os.Symlink("../out", w.path("beside/out")))
	harness.Must(t, os.Mkdir(w.path("later"), 0o711))
	harness.Must(t, os.WriteFile(w.path("later/own"), []byte(strings.Repeat("own work ", 9000)), 0o600))
	harness.Must(t, os.Chmod(w.path("beside"), 0o700))
	harness.Must(t, os.Remove(w.path("beside/fifo")))
	harness.Must(t, os.Mkdir(w.path("beside/fifo"), 0o755))
	w.give(t)
}

// picture is what is in the root.
func (w *fixture) picture(t testing.TB) harness.Tree {
	t.Helper()
	return harness.MustTake(t, w.site.Root)
}

// anew is a picture of the same things made again: their inodes are others.
func anew(tree harness.Tree) harness.Tree {
	made := maps.Clone(tree)
	for name, thing := range made {
		thing.Inode = 0
		made[name] = thing
	}
	return made
}

// without is a picture without what the commit made. Links of the kept ones are not
// concerned.
func (w *fixture) without(tree harness.Tree) harness.Tree {
	left := maps.Clone(tree)
	for _, name := range w.site.Project.Targets() {
		delete(left, name)
	}
	for _, name := range []string{"whole", "whole/deep"} {
		delete(left, name)
	}
	return left
}

// save keeps the fixture for the trials.
func (w *fixture) save(t testing.TB) {
	t.Helper()
	harness.CopyAll(t, w.site.Root, filepath.Join(w.dir, "saved root"))
	harness.CopyAll(t, w.site.Project.State, filepath.Join(w.dir, "saved state"))
	w.aboveNames = names(t, w.above())
	w.chains[harness.Before] = w.chain(t)
	w.chains[harness.After] = []string{}
	if w.command.stands {
		w.chains[harness.After] = []string{w.savepoint}
	}
	w.snapshots = map[string]bool{}
	for _, s := range w.list(t) {
		w.snapshots[s.ID] = true
	}
	w.log = len(w.auditLog(t))
}

// reset brings the fixture back.
func (w *fixture) reset(t testing.TB) {
	t.Helper()
	state := w.site.Project.State
	empty(t, state)
	if w.command.mount {
		empty(t, w.site.Root)
	} else {
		empty(t, w.above())
		harness.Must(t, os.Mkdir(w.site.Root, 0o755))
		harness.Must(t, os.WriteFile(filepath.Join(w.above(), "beside"), []byte("not yours"), 0o600))
	}
	harness.CopyAll(t, filepath.Join(w.dir, "saved root"), w.site.Root)
	harness.CopyAll(t, filepath.Join(w.dir, "saved state"), state)
	w.look(t)
}

// look takes the root as it is now for that before the trial.
func (w *fixture) look(t testing.TB) {
	t.Helper()
	w.site.Before = w.picture(t)
	for name, thing := range w.site.Before {
		if thing.Mode.IsDir() && w.ground.Format.Kind == harness.Overlay.Kind { // it comes back as another one there
			thing.Inode = 0
			w.site.Before[name] = thing
		}
	}
	w.site.After = w.site.Before
	if w.command.after != nil {
		w.site.After = w.command.after(w)
	}
}

func empty(t testing.TB, dir string) {
	t.Helper()
	for _, name := range names(t, dir) {
		harness.Must(t, os.RemoveAll(filepath.Join(dir, name)))
	}
}

func names(t testing.TB, dir string) []string {
	t.Helper()
	all, err := os.ReadDir(dir)
	harness.Must(t, err)
	list := make([]string, len(all))
	for i, e := range all {
		list[i] = e.Name()
	}
	return list
}

// The commands. The chain of savepoints is what it is to be after each.
func rollback() *command {
	return &command{name: "rollback", prepare: func(t testing.TB, w *fixture) {
		w.commitIt(t)
		w.goOn(t)
		w.args = []string{"rollback", "--json", w.commit}
	}, after: func(w *fixture) harness.Tree { return w.without(w.site.Before) }}
}

// replaced undoes a commit that replaced files, and left one as it was. One of them was edited since,
// and one was removed.
func replaced() *command {
	return &command{name: "replaced", prepare: func(t testing.TB, w *fixture) {
		w.standing(t)
		w.commitIt(t)
		w.goOn(t)
		harness.Must(t, os.Remove(w.path("top.txt")))
		w.give(t)
		w.args = []string{"rollback", "--json", w.commit}
	}, after: func(w *fixture) harness.Tree {
		after := w.without(w.site.Before)
		after["out/same.txt"] = w.site.Before["out/same.txt"]
		for _, name := range []string{"top.txt", "out/a.txt", "out/deep/long.bin"} {
			after[name] = w.old[name]
		}
		return after
	}}
}

// changed undoes a commit of a change set that replaced a file and removed three. Something new is at
// the name of one of these since.
func changed() *command {
	return &command{name: "changed", prepare: func(t testing.TB, w *fixture) {
		p := w.site.Project
		p.Replaces = []string{"top.txt"}
		base := harness.Old("top.txt", "gone.txt", "out/gone.txt", "beside/gone.bin")
		for i, name := range base.Names() {
			harness.Must(t, os.WriteFile(w.path(name), []byte(base[name]), 0o604))
			when := time.Unix(1_400_000_000+int64(i), 123)
			harness.Must(t, os.Chtimes(w.path(name), when, when))
		}
		p.SealChanges(t, "changes-"+filepath.Base(w.dir), base)
		w.give(t)
		w.old = anew(w.picture(t))
		w.commitIt(t)
		w.goOn(t)
		harness.Must(t, os.WriteFile(w.path("out/gone.txt"), []byte("again\n"), 0o600))
		w.give(t)
		w.args = []string{"rollback", "--json", w.commit}
	}, after: func(w *fixture) harness.Tree {
		after := w.without(w.site.Before)
		for _, name := range append(w.site.Project.Removes, "top.txt") {
			after[name] = w.old[name]
		}
		return after
	}}
}

// standing makes files that a commit replaces, and one that it leaves as it is.
func (w *fixture) standing(t testing.TB) {
	t.Helper()
	p := w.site.Project
	p.Replaces, p.Identical = []string{"top.txt", "out/a.txt", "out/deep/long.bin"}, []string{"out/same.txt"}
	harness.Must(t, os.WriteFile(w.path("top.txt"), []byte("old top\n"), 0o640))
	harness.Must(t, os.WriteFile(w.path("out/a.txt"), []byte("old alpha\n"), 0o755))
	harness.Must(t, os.WriteFile(w.path("out/deep/long.bin"), []byte(strings.Repeat("old", 50_000)), 0o604))
	harness.Must(t, os.WriteFile(w.path("out/same.txt"), []byte(files()["out/same.txt"]), 0o644))
	source, err := os.Stat(p.Source("out/same.txt"))
	harness.Must(t, err)
	harness.Must(t, os.Chmod(w.path("out/same.txt"), source.Mode()))
	for i, name := range append(p.Replaces, p.Identical...) {
		when := time.Unix(1_400_000_000+int64(i), 123)
		harness.Must(t, os.Chtimes(w.path(name), when, when))
	}
	w.give(t)
	w.old = anew(w.picture(t))
}

// whole restores a snapshot from before the commit.
func whole() *command {
	return &command{name: "whole", prepare: func(t testing.TB, w *fixture) {
		w.clear(t)
		w.target, w.old = w.take(t), anew(w.picture(t))
		w.commitIt(t)
		w.goOn(t)
		w.args = []string{"snapshot", "restore", "--json", w.target}
	}, after: func(w *fixture) harness.Tree { return w.old }}
}

// byName restores a snapshot from when the commit stood, in a root that is a mount point.
func byName() *command {
	a := whole()
	a.name, a.mount, a.stands = "mount point", true, true
	a.prepare = func(t testing.TB, w *fixture) {
		w.clear(t)
		w.commitIt(t)
		w.target, w.old = w.take(t), anew(w.picture(t))
		w.goOn(t)
		w.run(t, nil, "rollback", "--json", w.commit)
		w.args = []string{"snapshot", "restore", "--json", w.target}
	}
	return a
}

// bound is byName in a root that is a bind mount.
func bound() *command {
	a := byName()
	a.name, a.bound = "mount point, bound", true
	return a
}

// emergency goes back to the snapshot that a person has taken before the commit.
func emergency() *command {
	a := whole()
	prepare := a.prepare
	a.name = "emergency"
	a.prepare = func(t testing.TB, w *fixture) {
		prepare(t, w)
		w.args = []string{"rollback", "--emergency", "--json", w.site.Root}
	}
	return a
}

// some restores paths of a snapshot from when the commit stood: a file, a directory of which
// something went and to which something came, and a FIFO where a directory is now.
func some() *command {
	paths := []string{"out/a.txt", "new", "beside/fifo"}
	return &command{name: "paths", stands: true, prepare: func(t testing.TB, w *fixture) {
		w.clear(t)
		w.commitIt(t)
		w.target, w.old = w.take(t), anew(w.picture(t))
		w.goOn(t)
		w.args = append([]string{"snapshot", "restore", "--json", w.target}, paths...)
	}, after: func(w *fixture) harness.Tree {
		after := maps.Clone(w.site.Before)
		for _, path := range paths {
			maps.DeleteFunc(after, func(name string, _ harness.Thing) bool { return harness.Inside(name, path) })
			for name, thing := range w.old {
				if harness.Inside(name, path) {
					after[name] = thing
				}
			}
		}
		return after
	}}
}

// part takes a rollback back: only the names of the commit change.
func part() *command {
	return &command{name: "part", stands: true, prepare: func(t testing.TB, w *fixture) {
		w.commitIt(t)
		w.goOn(t)
		w.old = anew(w.picture(t))
		var done struct{ Snapshot string }
		w.run(t, &done, "rollback", "--json", w.commit)
		w.target = done.Snapshot
		w.args = []string{"snapshot", "restore", "--json", w.target}
	}, after: func(w *fixture) harness.Tree {
		// What the rollback did not touch stays the very same.
		after := maps.Clone(w.old)
		for name, thing := range w.site.Before {
			after[name] = thing
		}
		return after
	}}
}
