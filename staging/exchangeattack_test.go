package staging

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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
func (f *fair) rival(path string) func() {
	return func() {
		f.t.Helper()
		temp := filepath.Join(f.above, "rival")
		must(f.t, os.WriteFile(temp, []byte("rival"), 0o600))
		must(f.t, os.RemoveAll(f.at(path)))
		must(f.t, os.Rename(temp, f.at(path)))
	}
}

func (f *fair) isRival(path string) {
	f.t.Helper()
	if b, err := os.ReadFile(filepath.Join(f.above, path)); err != nil || string(b) != "rival" {
		f.t.Errorf("%q: the rival's is %q, %v", path, b, err)
	}
}

var errUnsettled = errors.New("unsettled")

// unsettled lets the exchange fail at its end, when do has been done.
func (f *fair) unsettled(do func()) {
	f.e.settled = func(context.Context, *pathsafe.Dir) error {
		do()
		return errUnsettled
	}
}

// others are all but the paths of a sight.
func (s sight) others(paths ...string) sight {
	rest := sight{}
	for name, what := range s {
		if !slices.Contains(paths, name) {
			rest[name] = what
		}
	}
	return rest
}

func (f *fair) othersAre(want sight, paths ...string) {
	f.t.Helper()
	if d := want.others(paths...).diff(f.see(f.above).others(paths...)); d != "" {
		f.t.Error(d)
	}
}

// TestExchangeRivals: what others put in the way while an exchange is under way,
// and that is not where something has to come back, is put back where it was,
// and all else is as it was.
func TestExchangeRivals(t *testing.T) {
	for name, c := range map[string]struct {
		make func(t testing.TB, above string) *fair
		call string
		path string // of the rival
		want error
	}{
		"old replaced before it goes":        {rollbackFair, "rename one", "a/b/c/one", errOther},
		"old replaced by another kind":       {rollbackFair, "rename link", "link", errOther},
		"emptied directory is used again":    {rollbackFair, "rename c", "a/b/c/late", errNotEmpty},
		"old replaced before it is replaced": {mixedFair, "exchange file", "a/file", errOther},
		"a tree replaced":                    {mixedFair, "exchange tree", "b/tree", errOther},
		"the name is taken":                  {mixedFair, "rename 3", "a/new", unix.EEXIST},
		"empty one is used":                  {mixedFair, "exchange e", "e/late", errNotEmpty},
	} {
		t.Run(name, func(t *testing.T) {
			f := c.make(t, filepath.Join(t.TempDir(), "x"))
			err := f.run(before(c.call, f.rival(c.path)))
			if e := failure(t, err); e.Rollback != nil || !errors.Is(err, c.want) || e.Attempt == "" {
				t.Errorf("%v", err)
			}
			at := filepath.Join("root", c.path)
			f.isRival(at)
			want := f.before.others()
			for p := range want {
				if strings.HasPrefix(p, at+"/") {
					delete(want, p) // the rival removed it
				}
			}
			f.othersAre(want, at, "root")
			if out, err := f.recover(Automatic, nil); err != nil || len(out) > 0 {
				t.Error(out, err)
			}
		})
	}
}

// TestExchangeWrittenTo: a file that is written to between the look and the move
// is not what was to go.
func TestExchangeWrittenTo(t *testing.T) {
	f := rollbackFair(t, filepath.Join(t.TempDir(), "x"))
	err := f.run(before("rename two", func() { must(t, appendTo(f.at("a/b/two"), "more")) }))
	if e := failure(t, err); e.Rollback != nil || !errors.Is(err, errOther) || e.Path != "a/b/two" {
		t.Error(err)
	}
	f.othersAre(f.before, "root/a/b/two", "root")
	if b, err := os.ReadFile(f.at("a/b/two")); err != nil || string(b) != "foreign a/b/twomore" {
		t.Error(string(b), err)
	}
}

// TestExchangeNoWayBack: where something else stands in the way of an undo, or
// what was put there was changed, nothing is lost: the root is halted until
// somebody has looked, and then everything can be seen.
func TestExchangeNoWayBack(t *testing.T) {
	for name, c := range map[string]struct {
		make func(t testing.TB, above string) *fair
		path string // of the rival
		keep string // what is in the way of a rest, below what was kept; "" where it stays at its name
		text string
	}{
		"the name of a file":      {rollbackFair, "a/b", "old/2", "foreign a/b/two"},
		"a file for a file":       {mixedFair, "a/file", "old/0", "foreign a/file"},
		"a file for a tree":       {mixedFair, "c/full", "old/5/f", "foreign c/full/f"},
		"something in a new tree": {mixedFair, "b/new/sub/theirs", "", "rival"},
	} {
		t.Run(name, func(t *testing.T) {
			f := c.make(t, filepath.Join(t.TempDir(), "x"))
			f.unsettled(f.rival(c.path))
			err := f.run(nil)
			e := failure(t, err)
			if e.Rollback == nil || !errors.Is(err, errUnsettled) {
				t.Fatalf("%v", err)
			}
			var halt *HaltError
			if _, err := f.recover(Automatic, nil); !errors.As(err, &halt) || !errors.Is(err, ErrHalted) || halt.Attempt != e.Attempt {
				t.Errorf("not halted: %v", err)
			}
			if _, err := f.recover(Person, nil); !errors.As(err, &halt) || errors.Is(err, ErrHalted) || halt.Kind != "rollback" {
				t.Errorf("a person's recovery: %v", err)
			}
			w := &witness{}
			out, err := f.recoverLogged(w, Acknowledged)
			if err != nil || len(out) != 1 || out[0].Result != Released || out[0].Kind != "rollback" || out[0].Attempt != e.Attempt {
				t.Fatal(out, err)
			}
			w.check(t, "released rollback")
			where := filepath.Join(f.root(), keptPrefix+e.Attempt)
			if !strings.Contains(out[0].Left.Error(), keptPrefix+e.Attempt) {
				t.Error(out[0].Left)
			}
			left := filepath.Join(where, c.keep)
			if c.keep == "" {
				left = f.at(c.path)
			}
			if b, err := os.ReadFile(left); err != nil || string(b) != c.text {
				t.Errorf("%q, %v", b, err)
			}
			if out, err := f.recover(Automatic, nil); err != nil || len(out) > 0 {
				t.Error(out, err)
			}
		})
	}
}

func (f *fair) recoverLogged(w *witness, mode Mode) (out []Outcome, err error) {
	f.t.Helper()
	err = f.session(nil, func(l *session) error {
		l.log = w
		out, err = l.recover(context.Background(), mode)
		return err
	})
	return out, err
}

// TestExchangeRivalsOfUndo: what somebody puts in the place of a new thing just
// when that is taken back stays where it was put.
func TestExchangeRivalsOfUndo(t *testing.T) {
	for call, path := range map[string]string{"exchange 0": "a/file", "rename new": "b/new"} {
		f := mixedFair(t, filepath.Join(t.TempDir(), "x"))
		var hook hook
		f.unsettled(func() { hook = before(call, f.rival(path)) })
		err := f.run(func(op, p string, do func() error) error {
			if hook != nil {
				return hook(op, p, do)
			}
			return do()
		})
		if e := failure(t, err); e.Rollback == nil || !errors.Is(e.Rollback, errNoWayBack) {
			t.Errorf("%s: %v", call, err)
		}
		f.isRival(filepath.Join("root", path))
	}
}

// TestExchangeConflicts: what is not as the caller saw it is found before
// anything is written.
func TestExchangeConflicts(t *testing.T) {
	for name, c := range map[string]struct {
		change func(f *fair)
		path   string
	}{
		"written to":        {func(f *fair) { must(f.t, appendTo(f.at("a/file"), "x")) }, "a/file"},
		"touched":           {func(f *fair) { must(f.t, os.Chtimes(f.at("a/file"), time.Now(), time.Now())) }, "a/file"},
		"another file":      {func(f *fair) { must(f.t, rewrite(f.at("a/file"))) }, "a/file"},
		"gone":              {func(f *fair) { must(f.t, os.Remove(f.at("a/link"))) }, "a/link"},
		"taken":             {func(f *fair) { plant(f.t, f.root(), "b/new") }, "b/new"},
		"no parent":         {func(f *fair) { must(f.t, os.Rename(f.at("g"), f.at("k"))) }, "g/h"},
		"parent is a file":  {func(f *fair) { must(f.t, os.RemoveAll(f.at("g"))); plant(f.t, f.root(), "g") }, "g/h"},
		"no staying one":    {func(f *fair) { f.e.dirs[0].Path = mustParse(f.t, "none") }, "none"},
		"a file that stays": {func(f *fair) { f.e.dirs[0].Path = mustParse(f.t, "keep") }, "keep"},
	} {
		t.Run(name, func(t *testing.T) {
			f := mixedFair(t, filepath.Join(t.TempDir(), "x"))
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

func TestExchangeRefuses(t *testing.T) {
	good := func() exchange {
		f := mixedFair(t, filepath.Join(t.TempDir(), "x"))
		return f.e
	}
	for name, spoil := range map[string]func(e *exchange){
		"no kind":           func(e *exchange) { e.Kind = "" },
		"a commit":          func(e *exchange) { e.Kind = KindCommit },
		"kind in words":     func(e *exchange) { e.Kind = "roll back" },
		"nothing":           func(e *exchange) { e.Swaps, e.dirs = nil, nil },
		"twice":             func(e *exchange) { e.Swaps = append(e.Swaps, e.Swaps[0]) },
		"beneath another":   func(e *exchange) { e.Swaps = append(e.Swaps, Swap{Path: mustParse(t, "b/tree/more"), New: Tree{}}) },
		"no path":           func(e *exchange) { e.Swaps[0].Path = pathsafe.Path{} },
		"no swap":           func(e *exchange) { e.Swaps[3].New = nil },
		"empty file":        func(e *exchange) { e.Swaps[0].Empty = true },
		"mode":              func(e *exchange) { e.dirs[0].Mode = 0o10000 },
		"directory goes":    func(e *exchange) { e.dirs[0].Path = mustParse(t, "g/h") },
		"directory is gone": func(e *exchange) { e.dirs[0].Path = mustParse(t, "b/tree/y") },
		"directory twice":   func(e *exchange) { e.dirs = append(e.dirs, e.dirs[0]) },
		"an artifact":       func(e *exchange) { e.Swaps[3].New = &Artifact{} },
		"no UUID":           func(e *exchange) { e.Attempt = "1" },
		"what stays goes":   func(e *exchange) { e.Swaps[0].New = &Metadata{} },
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

// TestExchangeLog: an attempt is known before anything of it is there, and known
// to be complete while its journal still is.
func TestExchangeLog(t *testing.T) {
	for _, c := range fairs {
		f := c.make(t, filepath.Join(t.TempDir(), "x"))
		f.before = f.see(f.above)
		w := &witness{
			began: func(string) error {
				f.is(f.before, "before")
				return nil
			},
			completed: func(string) error {
				if journals, err := filepath.Glob(filepath.Join(f.above, "root", exchangePrefix+"*", committedName)); len(journals) != 1 {
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

// TestExchangeWithoutExchange: a file system that cannot swap two names.
func TestExchangeWithoutExchange(t *testing.T) {
	refuse := func(op, path string, do func() error) error {
		if op == "exchange" {
			return errors.ErrUnsupported
		}
		return do()
	}
	f := mixedFair(t, filepath.Join(t.TempDir(), "x"))
	must(t, f.run(refuse))
	f.is(f.after(), "asked for")
	f = mixedFair(t, filepath.Join(t.TempDir(), "x"))
	f.unsettled(func() {})
	if e := failure(t, f.run(refuse)); e.Rollback != nil {
		t.Error(e)
	}
	f.is(f.before, "before")
}

// TestExchangeOnOverlay: overlay gives a file the device of its layer, and its directory
// another one. Both are on one mount, and the file can be exchanged.
func TestExchangeOnOverlay(t *testing.T) {
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
	must(t, l.exchange(t.Context(), exchange{
		Change: Change{Kind: "rollback", Swaps: []Swap{{Path: mustParse(t, "g"), Old: &old, New: Tree{}}}},
		stage:  func(_ context.Context, dir *pathsafe.Dir) error { return dir.WriteFile("0", []byte("new"), 0o600) },
	}))
	if got, err := os.ReadFile(filepath.Join(point, "g")); string(got) != "new" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestExchangeHostileTree: what goes may be deep, closed, full of strange names
// and links that lead out.
func TestExchangeHostileTree(t *testing.T) {
	f := newFair(t, filepath.Join(t.TempDir(), "x"), "t/closed/f", "t/l -> ../../beside", "t/out -> /etc", "t/back\\slash/f", "t/new\nline", "t/\xff/\xfe")
	must(t, unix.Mkfifo(f.at("t/fifo"), 0o600))
	f.before = f.see(f.above)
	must(t, os.Chmod(f.at("t/closed"), 0))
	deep := f.at("t")
	for range 12 {
		deep = filepath.Join(deep, strings.Repeat("d/", 40))
		must(t, os.MkdirAll(deep, 0o700))
	}
	must(t, os.WriteFile(filepath.Join(deep, "f"), nil, 0o600))
	f.swap("t", false)
	most := 0
	must(t, f.run(func(op, _ string, do func() error) error {
		if op == "unlink" {
			most = max(most, descriptors(t))
		}
		return do()
	}))
	f.is(f.after(), "asked for")
	if most > 150 {
		t.Errorf("%d descriptors at a time", most)
	}
}
