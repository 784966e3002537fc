package staging

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

// before does something before the first call of a name.
func before(call string, do func()) hook {
	done := false
	return func(op, path string, f func() error) error {
		if !done && op+" "+path == call {
			done = true
			do()
		}
		return f()
	}
}

// rival puts a file of its own at a path, over what is there.
func (f *resetFixture) rival(path string) func() {
	return func() {
		f.t.Helper()
		temp := filepath.Join(f.above, "rival")
		must(f.t, os.WriteFile(temp, []byte("rival"), 0o600))
		must(f.t, os.RemoveAll(f.at(path)))
		must(f.t, os.Rename(temp, f.at(path)))
	}
}

func (f *resetFixture) isRival(path string) {
	f.t.Helper()
	if b, err := os.ReadFile(filepath.Join(f.above, path)); err != nil || string(b) != "rival" {
		f.t.Errorf("%q: the rival's is %q, %v", path, b, err)
	}
}

var errUnsettled = errors.New("unsettled")

// unsettled lets the reset fail at its end, when do has been done.
func (f *resetFixture) unsettled(do func()) {
	f.e.settled = func() error {
		do()
		return errUnsettled
	}
}

func (f *resetFixture) recoverLogged(w *witness, mode Mode) (out []Outcome, err error) {
	f.t.Helper()
	err = f.session(nil, func(l *session) error {
		l.log = w
		out, err = l.recover(context.Background(), mode)
		return err
	})
	return out, err
}

// TestResetConflicts: where the directories of the names are not as the caller saw them, that is
// found before anything is written.
func TestResetConflicts(t *testing.T) {
	for name, c := range map[string]struct {
		change func(f *resetFixture)
		path   string
	}{
		"no parent":         {func(f *resetFixture) { must(f.t, os.Rename(f.at("g"), f.at("k"))) }, "g/h"},
		"parent is a file":  {func(f *resetFixture) { must(f.t, os.RemoveAll(f.at("g"))); plant(f.t, f.root(), "g") }, "g/h"},
		"no staying one":    {func(f *resetFixture) { f.e.dirs[0].Path = mustParse(f.t, "none") }, "none"},
		"a file that stays": {func(f *resetFixture) { f.e.dirs[0].Path = mustParse(f.t, "keep") }, "keep"},
	} {
		t.Run(name, func(t *testing.T) {
			f := mixedReset(t, filepath.Join(t.TempDir(), "x"))
			c.change(f)
			f.times["root"] = true
			w := &witness{}
			err := f.runLogged(func(op, path string, do func() error) error {
				if op != "stat" && op != "open directory" && op != "open lock" {
					t.Errorf("%s %q", op, path)
				}
				return do()
			}, w)
			if e := wantStep(t, err, StepConflict, c.path); e.Attempt != "" {
				t.Error(e.Attempt)
			}
			w.check(t)
			f.is(f.before, "before")
		})
	}
}

func TestResetRejects(t *testing.T) {
	good := func() reset {
		f := mixedReset(t, filepath.Join(t.TempDir(), "x"))
		return f.e
	}
	for name, spoil := range map[string]func(e *reset){
		"no kind":           func(e *reset) { e.Kind = "" },
		"a commit":          func(e *reset) { e.Kind = KindCommit },
		"kind in words":     func(e *reset) { e.Kind = "roll back" },
		"nothing":           func(e *reset) { e.Swaps, e.dirs = nil, nil },
		"twice":             func(e *reset) { e.Swaps = append(e.Swaps, e.Swaps[0]) },
		"beneath another":   func(e *reset) { e.Swaps = append(e.Swaps, Swap{Path: mustParse(t, "b/tree/more"), New: Tree{}}) },
		"no path":           func(e *reset) { e.Swaps[0].Path = pathsafe.Path{} },
		"no swap":           func(e *reset) { e.Swaps[3].New = nil },
		"empty file":        func(e *reset) { e.Swaps[0].Empty = true },
		"mode":              func(e *reset) { e.dirs[0].Mode = 0o10000 },
		"directory goes":    func(e *reset) { e.dirs[0].Path = mustParse(t, "g/h") },
		"directory is gone": func(e *reset) { e.dirs[0].Path = mustParse(t, "b/tree/y") },
		"directory twice":   func(e *reset) { e.dirs = append(e.dirs, e.dirs[0]) },
		"an artifact":       func(e *reset) { e.Swaps[3].New = &Artifact{} },
		"no UUID":           func(e *reset) { e.Attempt = "1" },
		"what stays goes":   func(e *reset) { e.Swaps[0].New = &Metadata{} },
		"a whole directory": func(e *reset) {
			e.Swaps[slices.IndexFunc(e.Swaps, func(s Swap) bool { return s.Empty })].Empty = false
		},
		"metadata first": func(e *reset) {
			e.Swaps = slices.Insert(e.Swaps, 0, Swap{Path: e.dirs[0].Path, New: &e.dirs[0].Metadata})
			e.dirs = nil
		},
	} {
		e := good()
		change := e.change()
		must(t, change.validate())
		spoil(&e)
		var failed *Error
		change = e.change()
		if err := change.validate(); !errors.As(err, &failed) || failed.Step != StepBegin {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestResetLog: an attempt is known before anything of it is there, and known
// to be complete while its journal still is.
func TestResetLog(t *testing.T) {
	for _, c := range resetCases {
		f := c.make(t, filepath.Join(t.TempDir(), "x"))
		f.before = f.see(f.above)
		w := &witness{
			began: func(string) error {
				f.is(f.before, "before")
				return nil
			},
			completed: func(string) error {
				if journals, err := filepath.Glob(filepath.Join(f.above, "root", resetPrefix+"*", committedName)); len(journals) != 1 {
					t.Error(journals, err)
				}
				return errUnsettled
			},
		}
		must(t, f.runLogged(nil, w))
		w.completed = nil
		if out, err := f.recoverLogged(w, Automatic); err != nil || len(out) != 1 || out[0].Result != Completed {
			t.Error(out, err)
		}
		w.check(t, "began rollback", "completed rollback", "completed rollback")
		f.is(f.after(), "asked for")

		f = c.make(t, filepath.Join(t.TempDir(), "y"))
		w = &witness{began: func(string) error { return errUnsettled }}
		if e := wantStep(t, f.runLogged(nil, w), StepBegin, ""); e.Attempt != "" {
			t.Error(e)
		}
		f.is(f.before, "before")
	}
}

// TestResetWithoutExchange: a file system that cannot swap two names.
func TestResetWithoutExchange(t *testing.T) {
	refuse := func(op, path string, do func() error) error {
		if op == "exchange" {
			return errors.ErrUnsupported
		}
		return do()
	}
	f := mixedReset(t, filepath.Join(t.TempDir(), "x"))
	must(t, f.run(refuse))
	f.is(f.after(), "asked for")
	f = mixedReset(t, filepath.Join(t.TempDir(), "x"))
	f.unsettled(func() {})
	if e := failure(t, f.run(refuse)); e.Rollback != nil {
		t.Error(e)
	}
	f.is(f.before, "before")
}

// TestResetUndoneBeneathMount: an undo by root goes on beneath a mount over a directory of a name
// that was swapped.
func TestResetUndoneBeneathMount(t *testing.T) {
	f := newResetFixture(t, filepath.Join(t.TempDir(), "x"), "a/one", "b/two")
	f.swap("a/one", true)
	f.swap("b/two", true)
	over, swapped := f.at("a"), 0
	mountsOver := func(op, path string, do func() error) error {
		if op != "exchange" {
			return do()
		}
		if swapped++; swapped == 2 {
			must(t, unix.Mount("tmpfs", over, "tmpfs", 0, ""))
			return unix.EIO
		}
		return do()
	}
	err := f.run(mountsOver)
	must(t, unix.Unmount(over, unix.MNT_DETACH))
	if e := failure(t, err); e.Rollback != nil {
		t.Error(e)
	}
	f.is(f.before, "before")
}

// TestResetOnOverlay: overlay gives a file the device of its layer, and its directory
// another one. Both are on one mount, and the file can be exchanged.
func TestResetOnOverlay(t *testing.T) {
	lower, upper, point := mountTmpfs(t, ""), mountTmpfs(t, ""), t.TempDir()
	plant(t, upper, "up/", "work/")
	must(t, unix.Mount("overlay", point, "overlay", 0, "lowerdir="+lower+",upperdir="+upper+"/up,workdir="+upper+"/work"))
	defer func() { must(t, unix.Unmount(point, unix.MNT_DETACH)) }()
	plant(t, point, "g")
	root := openRoot(t, point)
	top, err := root.Stat()
	must(t, err)
	old, err := root.Lstat("g")
	must(t, err)
	if old.ID.Dev == top.ID.Dev {
		t.Skip("this overlay has one device for all")
	}
	l, err := enter(t.Context(), root, testKey, &sysHook{})
	must(t, err)
	defer l.Close()
	must(t, l.reset(t.Context(), reset{
		Change: Change{Kind: "rollback", Swaps: []Swap{{Path: mustParse(t, "g"), Old: &old, New: Tree{}}}},
		stage:  func(_ context.Context, dir *pathsafe.Dir) error { return dir.WriteFile("0", []byte("new"), 0o600) },
	}))
	if got, err := os.ReadFile(filepath.Join(point, "g")); string(got) != "new" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestResetHostileTree: a tree that was made, and is removed again, may be deep, closed, full of
// strange names and links that lead out.
func TestResetHostileTree(t *testing.T) {
	f := newResetFixture(t, filepath.Join(t.TempDir(), "x"), "a/keep")
	f.swap("a/t", true)
	f.e.stage = func(_ context.Context, dir *pathsafe.Dir) error {
		at := fmt.Sprintf("/proc/self/fd/%d", dir.Fd())
		plant(t, at, "0/closed/f", "0/l -> ../../beside", "0/out -> /etc", "0/back\\slash/f", "0/new\nline", "0/\xff/\xfe")
		must(t, unix.Mkfifo(filepath.Join(at, "0/fifo"), 0o600))
		deep := filepath.Join(at, "0")
		for range 12 {
			deep = filepath.Join(deep, strings.Repeat("d/", 40))
			must(t, os.MkdirAll(deep, 0o700))
		}
		must(t, os.WriteFile(filepath.Join(deep, "f"), nil, 0o600))
		return nil
	}
	f.unsettled(func() {})
	most, others := 0, descriptors(t)
	e := failure(t, f.run(func(op, _ string, do func() error) error {
		if op == "unlink" {
			most = max(most, descriptors(t)-others)
		}
		return do()
	}))
	if e.Rollback != nil || !errors.Is(e, errUnsettled) {
		t.Error(e)
	}
	f.is(f.before, "before")
	if most == 0 || most > 150 {
		t.Errorf("%d descriptors at a time", most)
	}
}
