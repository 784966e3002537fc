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
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"golang.org/x/sys/unix"
)

// socket makes a socket in the root.
func (w *world) socket(path string) {
	w.t.Helper()
	must(w.t, os.MkdirAll(filepath.Dir(w.at(path)), 0o755))
	must(w.t, unix.Mknod(w.at(path), unix.S_IFSOCK|0o600, 0)) // bind takes no long paths
}

// thereAndBack restores a snapshot of the forest was, and then the snapshot before that, of
// the forest changed, which it returns.
func (w *world) thereAndBack(taken *snapshot.Snapshot, was, changed forest) *snapshot.Snapshot {
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
	w := newWorld(t)
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
	if want := "d/sock: it is a socket or a device\nnew: it holds \"new/sub/sock\": it is a socket or a device\nnew/sub: it holds \"new/sub/sock\": it is a socket or a device\nnew/sub/sock: it is a socket or a device\n"; left != want {
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
		change func(w *world)
		names  string
	}{
		"a file":                 {func(w *world) { w.remove("f"); w.socket("f") }, "f"},
		"a directory":            {func(w *world) { w.remove("d"); w.socket("d") }, "d"},
		"a directory for a file": {func(w *world) { w.remove("f"); w.socket("f/sub/sock") }, "f"},
		"a mount": {func(w *world) {
			if unix.Mount("none", w.at("d"), "tmpfs", 0, "") != nil {
				w.remove("d")
				w.socket("d")
				return
			}
			w.t.Cleanup(func() { must(w.t, unix.Unmount(w.at("d"), 0)) })
		}, "d"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
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
	link := func(from, to string) func(w *world) {
		return func(w *world) { w.remove(to); must(w.t, os.Link(w.at(from), w.at(to))) }
	}
	apart := func(name string) func(w *world) {
		return func(w *world) {
			raw, err := os.ReadFile(w.at(name))
			must(w.t, err)
			st, err := os.Stat(w.at(name))
			must(w.t, err)
			w.remove(name)
			w.write(name, string(raw))
			must(w.t, os.Chtimes(w.at(name), st.ModTime(), st.ModTime()))
		}
	}
	for name, change := range map[string]func(w *world){
		"one differs":           func(w *world) { w.remove("d/b"); w.write("d/b", "other") },
		"one is gone":           func(w *world) { w.remove("e") },
		"one is apart":          apart("d/b"),
		"the first is apart":    apart("a"),
		"all differ":            func(w *world) { must(w.t, os.Truncate(w.at("a"), 9)) },
		"one more":              link("a", "d/more"),
		"another joins":         link("a", "x"),
		"two are joined":        link("x", "y"),
		"its directory is gone": func(w *world) { w.remove("e") },
		"only the mode":         func(w *world) { must(w.t, os.Chmod(w.at("d/b"), 0o600)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
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
	w := newWorld(t)
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
// removes some, and knows what must be there.
type writer struct {
	w        *world
	round, n int
	kept     map[string]string // what must be there when the restore is done; "" where nothing must be
}

// work is one turn. Nothing that it touches is swapped by the restore that is under way.
func (wr *writer) work() {
	w := wr.w
	wr.n++
	put := func(path, text string) {
		f, err := os.OpenFile(w.at(path), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
		must(w.t, err)
		_, err = f.WriteString(text)
		must(w.t, errors.Join(err, f.Close()))
		wr.kept[path] += text
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
		delete(wr.kept, name)
	}
}

// TestRestoreBesideWriter: others may work in the root all the time, but for the names that
// are swapped: each restore is done, and nothing of theirs is lost. One of them only makes
// names and takes them away again, also while the snapshot before is taken.
func TestRestoreBesideWriter(t *testing.T) {
	formats := []harness.Format{harness.Tmpfs, harness.Ext4, harness.XFS, harness.Btrfs, harness.Overlay}
	for _, format := range sample.Pick(t, 2, formats) {
		t.Run(format.Name, func(t *testing.T) {
			w := worldIn(t, harness.MountedVolume(t, format).Path)
			for i := range sample.Of(4, 20, 100) {
				w.besideWriter(i)
			}
		})
	}
}

func (w *world) besideWriter(round int) {
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
	wr := &writer{w: w, round: round, kept: map[string]string{}}
	in := w.enter()
	must(t, in.Hold(t.Context())) // the writer begins when the restore knows what it swaps
	var fs unix.Statfs_t
	must(t, unix.Statfs(w.root, &fs))
	begun := fs.Type != unix.OVERLAYFS_SUPER_MAGIC // where staging copies up before that
	var mu sync.Mutex
	in.whenStaging(func(op, _ string, do func() error) error {
		mu.Lock()
		if begun = begun || op == "make directory"; begun {
			wr.work()
		}
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
	for path, want := range wr.kept {
		if got, err := os.ReadFile(w.at(path)); string(got) != want {
			t.Errorf("round %d: %q has %q, %v, want %q", round, path, got, err, want)
		}
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
	w := worldIn(t, base)
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
			w.death = &death{left: stride.At(i)}
			in, err := w.tryToEnter(staging.Automatic)
			must(t, err)
			_, err = action.Restore(context.Background(), in.Root, taken, action.How{Type: audit.Session, Reason: "asked for"})
			in.leave()
			died := w.death.dead()
			w.death = nil
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

// TestRestoreMeetsSomebody: what changes at a name that is swapped is found, and everything
// is as it was, with that; also where it is a new file in a directory that goes. What comes
// to a name after that has gone stays. Only where a directory was moved in which something
// was put already, the root is halted.
func TestRestoreMeetsSomebody(t *testing.T) {
	for name, do := range map[string]func(w *world){
		"changed":               func(w *world) { w.write("f", "theirs") },
		"replaced":              func(w *world) { w.remove("f"); w.write("f", "now") },
		"gone":                  func(w *world) { w.remove("f") },
		"taken":                 func(w *world) { w.write("gone", "theirs") },
		"changed where it goes": func(w *world) { w.write("came/g", "theirs") },
		"new where it goes":     func(w *world) { w.write("came/theirs", "") },
		"the way to it":         func(w *world) { must(w.t, os.Rename(w.at("d"), w.at("e"))); w.mkdir("d") },
	} {
		for _, call := range []wedge{{op: "make directory", path: "new"}, {op: "exchange", path: "f"}} {
			t.Run(name+", before "+call.op, func(t *testing.T) {
				w := newWorld(t)
				w.write("f", "was")
				w.write("gone", "was")
				w.write("d/deep", "was")
				taken := w.take()
				w.write("f", "now")
				w.remove("gone")
				w.write("came/g", "now")
				w.remove("d/deep")
				in := w.enter()
				var meant forest
				call.do = func() {
					do(w)
					meant = read(t, w.root)
					meant.drop("came") // it may have been moved by then
				}
				in.whenStaging(call.call)
				done, err := action.Restore(context.Background(), in.Root, taken, action.How{Type: audit.Session, Reason: "asked for"})
				in.leave()
				late := call.op == "exchange"
				if late && strings.Contains(name, "where it goes") { // it has gone, and this came since
					if theirs, open := w.log(); err != nil || open > 0 {
						t.Errorf("%v, %q", err, theirs)
					}
					if got := w.paths(); !strings.HasPrefix(got, "came came/") || !strings.HasSuffix(got, " d d/deep f gone") {
						t.Errorf("there is %q", got)
					}
					return
				}
				if late && name == "the way to it" { // what was put there is somewhere else
					var failed *staging.Error
					if !errors.As(err, &failed) || failed.Rollback == nil {
						t.Errorf("%+v, %v", done, err)
					}
					return
				}
				var failed *staging.Error
				if !errors.As(err, &failed) || failed.Rollback != nil || done != nil || !call.done {
					t.Fatalf("%+v, %v", done, err)
				}
				if _, open := w.log(); open > 0 {
					t.Errorf("%d open", open)
				}
				_, err = w.restore(taken)
				must(t, err)
				if got := w.paths(); got != "d d/deep f gone" && name != "the way to it" {
					t.Errorf("then there is %q", got)
				}
			})
		}
	}
}
