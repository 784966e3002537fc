package action_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"golang.org/x/sys/unix"
)

// socket makes a socket in the root.
func (w *fixture) socket(path string) {
	w.t.Helper()
	must(w.t, os.MkdirAll(filepath.Dir(w.at(path)), 0o755))
	must(w.t, unix.Mknod(w.at(path), unix.S_IFSOCK|0o600, 0)) // bind takes no long paths
}

// thereAndBack restores a snapshot of the forest was, and then the snapshot before that, of
// the forest changed, which it returns.
func (w *fixture) thereAndBack(taken *snapshot.Snapshot, was, changed forest) *snapshot.Snapshot {
	w.t.Helper()
	done, err := w.restore(taken)
	must(w.t, err)
	w.same(was, "after the restore")
	_, err = w.restore(done.Done.Snapshot)
	must(w.t, err)
	w.same(changed, "after the restore of that before it")
	return done.Done.Snapshot
}

// TestRestoreBesideUnkept: what no snapshot can hold stays where it is, and all the rest
// is restored. A directory that should go stays with it, and is named.
func TestRestoreBesideUnkept(t *testing.T) {
	w := newFixture(t)
	w.write("f", "f")
	w.write("d/g", "g")
	w.socket("old sock")
	w.mkdir("mnt")
	taken := w.take()
	w.write("f", "other")
	w.write("d/g", "longer")
	w.socket("d/sock")
	w.write("new/sub/h", "h")
	w.socket("new/sub/sock")
	w.write("new/i", "i")
	if unix.Mount("none", w.at("mnt"), "tmpfs", 0, "") == nil {
		defer func() { must(t, unix.Unmount(w.at("mnt"), 0)) }()
		w.write("mnt/theirs", "")
	}
	sockets := w.inodes("old sock", "d/sock", "new/sub/sock")
	done, err := w.restore(taken)
	must(t, err)
	left := ""
	for _, l := range done.Left {
		left += l.Path + ": " + l.Why + "\n"
	}
	if want := "d/sock: it is a socket or a device\nnew: it holds \"new/sub/sock\": it is a socket or a device\nnew/sub/sock: it is a socket or a device\n"; left != want {
		t.Errorf("left %q, want %q", left, want)
	}
	if got := w.inodes("old sock", "d/sock", "new/sub/sock"); fmt.Sprint(got) != fmt.Sprint(sockets) {
		t.Errorf("the sockets are %v, were %v", got, sockets)
	}
	if got := strings.ReplaceAll(w.paths(), " mnt/theirs", ""); got != "d d/g d/sock f mnt new new/sub new/sub/sock old sock" {
		t.Errorf("there is %q", got)
	}
	if f, err := os.ReadFile(w.at("f")); string(f) != "f" {
		t.Errorf("%q, %v", f, err)
	}
	_, err = w.restore(done.Done.Snapshot)
	must(t, err)
	if i, err := os.ReadFile(w.at("new/i")); string(i) != "i" {
		t.Errorf("%q, %v", i, err)
	}
}

// TestRestoreOverUnkept: such a thing is not displaced by what was there before: it stays, and
// is named, and all the rest comes back.
func TestRestoreOverUnkept(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *fixture)
		names  string
	}{
		"a file":                 {func(w *fixture) { w.remove("f"); w.socket("f") }, "f"},
		"a directory":            {func(w *fixture) { w.remove("d"); w.socket("d") }, "d"},
		"a directory for a file": {func(w *fixture) { w.remove("f"); w.socket("f/sub/sock") }, "f"},
		"a mount": {func(w *fixture) {
			if unix.Mount("none", w.at("d"), "tmpfs", 0, "") != nil {
				w.remove("d")
				w.socket("d")
				return
			}
			w.t.Cleanup(func() { must(w.t, unix.Unmount(w.at("d"), 0)) })
		}, "d"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.write("f", "f")
			w.write("d/g", "g")
			w.write("z", "z")
			taken := w.take()
			w.write("z", "other")
			c.change(w)
			before := w.inodes(c.names)
			done, err := w.restore(taken)
			must(t, err)
			if len(done.Left) != 1 || done.Left[0].Path != c.names {
				t.Errorf("left %+v, want %q", done.Left, c.names)
			}
			if now := w.inodes(c.names); fmt.Sprint(now) != fmt.Sprint(before) {
				t.Errorf("%q is %v, was %v", c.names, now, before)
			}
			if z, err := os.ReadFile(w.at("z")); string(z) != "z" {
				t.Errorf("%q, %v", z, err)
			}
		})
	}
}

// TestRestoreLinks: names of one file are names of one file again, and those that were
// not are not; whatever else of them is the same.
func TestRestoreLinks(t *testing.T) {
	link := func(from, to string) func(w *fixture) {
		return func(w *fixture) { w.remove(to); must(w.t, os.Link(w.at(from), w.at(to))) }
	}
	apart := func(name string) func(w *fixture) {
		return func(w *fixture) {
			raw, err := os.ReadFile(w.at(name))
			must(w.t, err)
			st, err := os.Stat(w.at(name))
			must(w.t, err)
			w.remove(name)
			w.write(name, string(raw))
			must(w.t, os.Chtimes(w.at(name), st.ModTime(), st.ModTime()))
		}
	}
	for name, change := range map[string]func(w *fixture){
		"one differs":           func(w *fixture) { w.remove("d/b"); w.write("d/b", "other") },
		"one is gone":           func(w *fixture) { w.remove("e") },
		"one is apart":          apart("d/b"),
		"the first is apart":    apart("a"),
		"all differ":            func(w *fixture) { must(w.t, os.Truncate(w.at("a"), 9)) },
		"one more":              link("a", "d/more"),
		"another joins":         link("a", "x"),
		"two are joined":        link("x", "y"),
		"its directory is gone": func(w *fixture) { w.remove("e") },
		"only the mode":         func(w *fixture) { must(w.t, os.Chmod(w.at("d/b"), 0o600)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.write("a", "same")
			w.write("x", "same")
			w.mkdir("d")
			w.mkdir("e/deep")
			must(t, os.Link(w.at("a"), w.at("d/b")))
			must(t, os.Link(w.at("a"), w.at("e/deep/c")))
			w.write("y", "same")
			for _, name := range []string{"a", "x", "y"} {
				must(t, os.Chtimes(w.at(name), unixTime(9), unixTime(9)))
			}
			was := read(t, w.root)
			taken := w.take()
			change(w)
			changed := read(t, w.root)
			w.thereAndBack(taken, was, changed)
		})
	}
}

// TestRestoreStrangeNames: names that no output can have are restored like others, at the
// top and beneath.
func TestRestoreStrangeNames(t *testing.T) {
	w := newFixture(t)
	names := []string{`back\slash`, `d\/f\x2d`, "line\nfeed", "\xff", " ", `\`, "d/.spectrum06_staging_x"}
	for _, name := range names {
		w.write(name, "was")
	}
	was := read(t, w.root)
	taken := w.take()
	for i, name := range names {
		w.remove(name)
		if i%2 == 0 {
			w.write(name, "other")
		}
	}
	w.write(`new\`, "")
	changed := read(t, w.root)
	w.thereAndBack(taken, was, changed)
}

// A writer works in a root while others restore it: it appends to files, makes some and
// removes some, and knows what it has written.
type writer struct {
	w        *fixture
	round, n int
	wrote    map[string]string // by the path
}

// work is one turn. The logs that it appends to are among what the restore swaps.
func (wr *writer) work() {
	w := wr.w
	wr.n++
	put := func(path, text string) {
		f, err := os.OpenFile(w.at(path), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
		must(w.t, err)
		_, err = f.WriteString(text)
		must(w.t, errors.Join(err, f.Close()))
		wr.wrote[path] += text
	}
	for _, dir := range []string{"", "busy/", "busy/deep/"} {
		put(dir+"log", fmt.Sprintf("line %d\n", wr.n))
		if wr.n%100 != 5 { // those of this restore are what the next one takes away
			continue
		}
		put(fmt.Sprintf("%snew %d-%d", dir, wr.round, wr.n), "mine")
		name := fmt.Sprintf("%stemporary %d", dir, wr.n)
		put(name, "for a moment")
		must(w.t, os.Remove(w.at(name)))
		delete(wr.wrote, name)
	}
}

// TestRestoreBesideWriter: others may work in the root all the time, also at the names that are
// swapped, from before the root is looked at until the end: each restore is done, and nothing of
// theirs is lost: every line is in the root, in the snapshot before, or in what is kept. One of
// them only makes names and removes them again.
func TestRestoreBesideWriter(t *testing.T) {
	formats := []harness.Format{harness.Tmpfs, harness.Ext4, harness.XFS, harness.Btrfs, harness.Overlay}
	for _, format := range sample.Pick(t, 2, formats) {
		t.Run(format.Name, func(t *testing.T) {
			w := fixtureIn(t, harness.MountedVolume(t, format).Path)
			for i := range sample.Of(4, 20, 100) {
				w.besideWriter(i)
			}
		})
	}
}

func (w *fixture) besideWriter(round int) {
	t := w.t
	t.Helper()
	w.write("swapped", "was")
	w.write("busy/swapped", "was")
	w.write("busy/deep/log", "")
	w.write("busy/log", "")
	w.write("log", "")
	taken := w.take()
	w.write("swapped", fmt.Sprint("other ", round))
	w.remove("busy/swapped")
	w.write("busy/gone/file", "goes")

	stop, ready := make(chan struct{}), sync.WaitGroup{}
	ready.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			name := w.at(fmt.Sprintf("busy/flash %d", n))
			if err := errors.Join(os.Symlink("nowhere", name), os.Remove(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Error(err)
				return
			}
		}
	})
	wr := &writer{w: w, round: round, wrote: map[string]string{}}
	in := w.enter()
	var mu sync.Mutex
	in.whenStaging(func(_, _ string, do func() error) error {
		mu.Lock()
		wr.work()
		mu.Unlock()
		return do()
	})
	done, err := action.Restore(context.Background(), in.Root, taken, action.How{Type: audit.Session, Reason: "asked for"})
	in.leave()
	close(stop)
	ready.Wait()
	if err != nil {
		t.Fatalf("round %d: %v", round, err)
	}
	aside := filepath.Join(t.TempDir(), "aside")
	out, err := pathsafe.OpenRoot(filepath.Dir(aside))
	must(t, err)
	store := w.snapshots()
	must(t, store.WriteHeld(t.Context(), done.Done.Snapshot, out, "aside"))
	must(t, errors.Join(store.Close(), out.Close()))
	for path, wrote := range wr.wrote {
		places := []string{w.at(path), filepath.Join(aside, path)}
		for _, k := range done.Done.Kept {
			if k.Path.String() == path {
				places = append(places, w.at(k.At))
			}
		}
		var there string
		for _, place := range places {
			text, _ := os.ReadFile(place)
			there += string(text)
		}
		for line := range strings.Lines(wrote) {
			if !strings.Contains(there, line) {
				t.Fatalf("round %d: %q of %q is nowhere in %q", round, line, path, places)
			}
		}
	}
	for _, k := range done.Done.Kept { // it comes since, like any other name
		w.remove(strings.Split(k.At, "/")[0])
	}
	for path, want := range map[string]string{"swapped": "was", "busy/swapped": "was"} {
		if got, err := os.ReadFile(w.at(path)); string(got) != want {
			t.Errorf("round %d: %q has %q, %v", round, path, got, err)
		}
	}
	if _, err := os.Lstat(w.at("busy/gone")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("round %d: %v", round, err)
	}
	if wr.n < 10 || done.Done.Snapshot == nil {
		t.Errorf("round %d: the writer had %d turns", round, wr.n)
	}
	if kinds, open := w.log(); open > 0 {
		t.Errorf("round %d: %q, %d open", round, kinds, open)
	}
}

// TestRestoreReadOnlyDirs: the owner of directories that he may not write has them
// restored, without root's rights: what is in them, and themselves. Wherever that dies, all
// is as it was before or as it should be, with the modes.
func TestRestoreReadOnlyDirs(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to be another user")
	}
	base := t.TempDir()
	harness.LetOthersIn(t, base)
	w := fixtureIn(t, base)
	harness.GiveToNobody(t, base)
	harness.WithoutRights(t, func() {
		modes := func(mode os.FileMode, names ...string) {
			for _, name := range names {
				must(t, os.Chmod(w.at(name), mode))
			}
		}
		w.write("ro/f", "was")
		w.write("ro/sub/g", "was")
		w.write("gone/deep/x", "comes back")
		w.write("tree/y", "comes back for a file")
		w.write("file", "comes back for a tree")
		modes(0o555, "ro/sub", "ro", "gone/deep", "gone", "tree")
		was, taken := read(t, w.root), w.take()
		modes(0o755, "ro/sub", "ro", "gone/deep", "gone", "tree")
		w.write("ro/f", "other")
		w.write("ro/sub/more", "new")
		w.remove("gone")
		w.remove("tree")
		w.remove("file")
		w.write("tree", "a file")
		w.write("file/z", "in a tree")
		w.write("new/deep/n", "goes")
		modes(0o500, "ro/sub", "ro", "file", "new/deep", "new")
		changed := read(t, w.root)
		before := w.thereAndBack(taken, was, changed)

		every := sample.Of(40, 13, 3)
		stride, ends := sample.Stride{First: 1 + sample.Rand(t).IntN(every), Every: every}, map[bool]int{}
		for i := 0; !t.Failed(); i++ {
			w.kill = &simulatedKill{left: stride.At(i)}
			in, err := w.tryToEnter(staging.Automatic)
			must(t, err)
			_, err = action.Restore(context.Background(), in.Root, taken, action.How{Type: audit.Session, Reason: "asked for"})
			in.leave()
			died := w.kill.happened()
			w.kill = nil
			w.enter().leave()
			restored := len(cmp.Diff(was.print(), read(t, w.root).print())) == 0
			if !restored {
				w.same(changed, fmt.Sprintf("dead at call %d: %v", stride.At(i), err))
			} else {
				_, err := w.restore(before)
				must(t, err)
			}
			if ends[restored]++; !died {
				break
			}
		}
		if ends[true] == 0 || ends[false] == 0 {
			t.Errorf("restored or not: %v", ends)
		}
	})
}

// TestRestoreMeetsOtherProcess: what changes at a name that is swapped does not stop the restore: it
// is kept in its last content, and named. A directory that was to go and has something new in it
// stays, and is named. Only where the directory of a name was moved away when something was put
// into it already, the root is halted; before that the restore begins again.
func TestRestoreMeetsOtherProcess(t *testing.T) {
	write := func(path, text string) func(w *fixture) { return func(w *fixture) { w.write(path, text) } }
	for name, c := range map[string]struct {
		do    func(w *fixture)
		kept  string // path of what is kept, and its content
		stays string
		late  string // the same, where it happens when the other names were swapped
	}{
		"changed":               {do: write("f", "theirs"), kept: "f theirs"},
		"replaced":              {do: func(w *fixture) { w.remove("f"); w.write("f", "theirs") }, kept: "f theirs"},
		"gone":                  {do: func(w *fixture) { w.remove("f") }},
		"taken":                 {do: write("gone", "theirs"), kept: "gone theirs"},
		"taken by a directory":  {do: write("gone/file", "theirs"), kept: "gone/file theirs"},
		"changed where it goes": {do: write("came/g", "theirs"), kept: "came/g theirs", late: " came came/g"},
		"new where it goes":     {do: write("came/theirs", ""), stays: " came came/theirs", late: " came came/theirs"},
		"the way to it":         {do: func(w *fixture) { must(w.t, os.Rename(w.at("d"), w.at("e"))); w.mkdir("d") }},
	} {
		for _, call := range []wedge{{op: "make directory", path: "new"}, {op: "exchange", path: "f"}} {
			t.Run(name+", before "+call.op, func(t *testing.T) {
				w := newFixture(t)
				w.write("f", "was")
				w.write("gone", "was")
				w.write("d/deep", "was")
				taken := w.take()
				w.write("f", "now")
				w.remove("gone")
				w.write("came/g", "now")
				w.remove("d/deep")
				in := w.enter()
				call.do = func() { c.do(w) }
				in.whenStaging(call.call)
				done, err := action.Restore(context.Background(), in.Root, taken, action.How{Type: audit.Session, Reason: "asked for"})
				in.leave()
				late := call.op == "exchange"
				if late && name == "the way to it" { // what was put there is somewhere else
					var failed *staging.Error
					if !errors.As(err, &failed) || failed.Rollback == nil {
						t.Errorf("%+v, %v", done, err)
					}
					return
				}
				if err != nil || !call.done {
					t.Fatalf("%v, %v", err, call.done)
				}
				stays := c.stays
				if late && c.late != "" {
					stays, c.kept = c.late, ""
				}
				kept := ""
				for _, k := range done.Done.Kept {
					at, path := k.At, k.Path.String()
					if _, err := os.Lstat(w.at(at + "/file")); err == nil {
						at, path = at+"/file", path+"/file"
					}
					text, err := os.ReadFile(w.at(at))
					must(t, err)
					kept = path + " " + string(text)
					w.remove(strings.Split(k.At, "/")[0])
				}
				if kept != c.kept && !(late && strings.HasPrefix(name, "taken") && kept == "") {
					t.Errorf("kept is %q", kept)
				}
				if got := w.paths(); got != strings.TrimSpace(stays+" d d/deep f gone") {
					t.Errorf("then there is %q", got)
				}
				if _, open := w.log(); open > 0 {
					t.Errorf("%d open", open)
				}
			})
		}
	}
}
