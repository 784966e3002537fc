package staging

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/test/tree"
	"golang.org/x/sys/unix"
)

// A resetFixture is a root, beneath a directory of its own, and a reset for it.
type resetFixture struct {
	t     testing.TB
	above string // the parent of the root
	e     reset
	times map[string]bool // directories whose time counts, by their path beneath above

	before, staged sight
	lazy           bool // nothing is synced
}

// A sight is what stands beneath a directory: names, inodes, modes, content, and
// the times of all but directories.
type sight map[string]seen

type seen struct {
	mode     uint32
	uid, gid uint32
	note     string // an extended attribute of directories
	ino      uint64
	text     string
}

const attribute = "user.note"

func (f *resetFixture) see(dir string) sight {
	f.t.Helper()
	p := sight{}
	must(f.t, tree.Walk(dir, func(path string, n *tree.Node, err error) error {
		must(f.t, err)
		if !strings.HasPrefix(path, "root/"+LockName) { // it has tests of its own
			p[path] = f.seeOne(n, path)
		}
		return nil
	}))
	return p
}

func (f *resetFixture) seeOne(n *tree.Node, path string) seen {
	f.t.Helper()
	s := seen{mode: n.Mode, uid: n.Uid, gid: n.Gid, ino: n.Ino}
	if n.IsDir() {
		s.note = noteOf(filepath.Join(f.above, path))
	}
	if n.Kind() == unix.S_IFREG || n.IsDir() && f.times[path] {
		s.text = time.Unix(n.Mtim.Unix()).UTC().String()
	}
	content, err := n.Content()
	must(f.t, err)
	if !n.IsDir() {
		s.text += fmt.Sprintf(" %q", content)
	}
	return s
}

// noteOf is the attribute of a directory; "" for none.
func noteOf(path string) string {
	note := make([]byte, 10)
	n, err := unix.Lgetxattr(path, attribute, note)
	if err != nil {
		return ""
	}
	return string(note[:n])
}

func (s sight) diff(now sight) string {
	var out strings.Builder
	for _, path := range slices.Sorted(maps.Keys(s)) {
		if s[path] != now[path] {
			fmt.Fprintf(&out, "%q was %o %v\n\tis %o %v\n", path, s[path].mode, s[path], now[path].mode, now[path])
		}
	}
	for _, path := range slices.Sorted(maps.Keys(now)) {
		if _, ok := s[path]; !ok {
			fmt.Fprintf(&out, "%q is new: %v\n", path, now[path])
		}
	}
	return out.String()
}

// newResetFixture makes a root of entries, as plant does.
func newResetFixture(t testing.TB, above string, entries ...string) *resetFixture {
	t.Helper()
	f := &resetFixture{t: t, above: above, times: map[string]bool{}, e: reset{Change: Change{Kind: "rollback"}}}
	plant(t, above, "beside")
	plant(t, f.root(), entries...)
	f.e.stage = func(_ context.Context, dir *pathsafe.Dir) error { return f.stage(dir) }
	return f
}

func (f *resetFixture) root() string          { return filepath.Join(f.above, "root") }
func (f *resetFixture) at(path string) string { return filepath.Join(f.root(), path) }

// swap adds a swap of what stands at a path now.
func (f *resetFixture) swap(path string, hasNew bool) *Swap {
	f.t.Helper()
	s := Swap{Path: mustParse(f.t, path)}
	if hasNew {
		s.New = Tree{}
	}
	d, err := pathsafe.OpenRoot(filepath.Dir(f.at(path)))
	must(f.t, err)
	defer d.Close()
	if st, err := d.Lstat(filepath.Base(path)); err == nil {
		s.Old = &st
	}
	f.e.Swaps = append(f.e.Swaps, s)
	return &f.e.Swaps[len(f.e.Swaps)-1]
}

// clear adds a swap of an entry, and before it those of all entries in it.
func (f *resetFixture) clear(path string, hasNew bool) *Swap {
	f.t.Helper()
	in, err := os.ReadDir(f.at(path))
	isDir := err == nil && f.kind(path) == unix.S_IFDIR
	for i := 0; isDir && i < len(in); i++ {
		f.clear(filepath.Join(path, in[i].Name()), false)
	}
	s := f.swap(path, hasNew)
	s.Empty = isDir
	return s
}

// kind is the type of the entry at a path; 0 for none.
func (f *resetFixture) kind(path string) uint32 {
	var st unix.Stat_t
	if unix.Lstat(f.at(path), &st) != nil {
		return 0
	}
	return st.Mode & unix.S_IFMT
}

// stays adds a directory that gets a mode, a time, an owner and another attribute in the
// place of the one that it has, as far as that can be.
func (f *resetFixture) stays(path string, mode uint32) {
	f.t.Helper()
	d := dirMeta{Metadata: Metadata{Mode: mode, ModTime: time.Unix(1_111_111_111, 222_222_222), UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}}
	if os.Geteuid() == 0 {
		d.UID, d.GID = 12, 34
	}
	if unix.Setxattr(f.at(path), attribute, []byte("had"), 0) == nil && path != "d" {
		d.Xattrs = []pathsafe.Xattr{{Name: attribute, Value: "gets"}}
	}
	if path != "" {
		d.Path = mustParse(f.t, path)
		f.times["root/"+path] = true
		must(f.t, os.Chtimes(f.at(path), time.Unix(7, 7), time.Unix(7, 7)))
	}
	f.e.dirs = append(f.e.dirs, d)
}

// stage makes the new entries: of every third swap a file, a directory or a link.
func (f *resetFixture) stage(dir *pathsafe.Dir) error {
	at := fmt.Sprintf("/proc/self/fd/%d", dir.Fd())
	for i, s := range f.e.Swaps {
		if s.New == nil {
			continue
		}
		name := filepath.Join(at, strconv.Itoa(i))
		switch {
		case i%3 == 1:
			plant(f.t, at, fmt.Sprintf("%d/sub/dir/", i), fmt.Sprintf("%d/file", i), fmt.Sprintf("%d/sub/other", i))
			must(f.t, os.Chmod(name, 0o751))
		case i%3 == 0:
			must(f.t, os.WriteFile(name, []byte("new "+s.Path.String()), 0o600))
		default:
			must(f.t, os.Symlink("elsewhere", name))
		}
	}
	f.staged = f.see(at + "/.")
	return nil
}

// after is what has to be there when all is done.
func (f *resetFixture) after() sight {
	p := maps.Clone(f.before)
	for i, s := range f.e.Swaps {
		path := strings.Replace("root/"+s.Path.String(), "/to/", "/c/", 1) // a link of the mixed resetFixture
		maps.DeleteFunc(p, func(name string, _ seen) bool { return name == path || strings.HasPrefix(name, path+"/") })
		if s.New != nil {
			from := strconv.Itoa(i)
			for name, what := range f.staged {
				if rest, ok := strings.CutPrefix(name, from); ok && (rest == "" || rest[0] == '/') {
					p[path+rest] = what
				}
			}
		}
	}
	for _, d := range f.e.dirs {
		name := filepath.Join("root", d.Path.String())
		what := p[name]
		what.mode, what.uid, what.gid = what.mode&^0o7777|d.Mode, d.UID, d.GID
		if what.note = ""; len(d.Xattrs) > 0 {
			what.note = d.Xattrs[0].Value
		}
		if f.times[name] {
			what.text = d.ModTime.UTC().String()
		}
		p[name] = what
	}
	return p
}

// A hook of the system calls.
type hook = func(op, path string, f func() error) error

// errKilled is what a call panics with that kills the process.
var errKilled = errors.New("killed")

// killer kills before call n.
func killer(n int) hook {
	calls := 0
	return func(_, _ string, f func() error) error {
		if calls++; calls >= n {
			panic(errKilled)
		}
		return f()
	}
}

// survived runs do; false if it was killed. Locks go with the process.
func survived(do func()) (ok bool) {
	defer func() {
		if r := recover(); r != nil {
			if r != errKilled {
				panic(r)
			}
			ok = false
		}
	}()
	do()
	return true
}

// session runs do in a session of the root.
func (f *resetFixture) session(h hook, do func(l *session) error) error {
	f.t.Helper()
	root, err := pathsafe.OpenRoot(f.root())
	must(f.t, err)
	defer root.Close()
	l, err := enter(context.Background(), root, testKey, hookedBy(f.lazily(h)))
	if err != nil {
		return err
	}
	defer l.Close()
	return do(l)
}

// lazily does not sync: nothing is cut from its power here.
func (f *resetFixture) lazily(h hook) hook {
	return func(op, path string, do func() error) error {
		if f.lazy && strings.HasPrefix(op, "sync") {
			do = func() error { return nil }
		}
		if h == nil {
			return do()
		}
		return h(op, path, do)
	}
}

// run carries the reset out.
func (f *resetFixture) run(h hook) error {
	f.t.Helper()
	return f.runLogged(h, nil)
}

func (f *resetFixture) runLogged(h hook, w *witness) error {
	f.t.Helper()
	if f.before == nil {
		f.before = f.see(f.above)
	}
	return f.session(h, func(l *session) error {
		l.log = w
		return l.reset(context.Background(), f.e)
	})
}

func (f *resetFixture) recover(mode Mode, h hook) (out []Outcome, err error) {
	f.t.Helper()
	err = f.session(h, func(l *session) error {
		out, err = l.recover(context.Background(), mode)
		return err
	})
	return out, err
}

func (f *resetFixture) is(want sight, what string) {
	f.t.Helper()
	if d := want.diff(f.see(f.above)); d != "" {
		f.t.Errorf("not as it was %s:\n%s", what, d)
	}
}

// settle recovers and requires the state before or the state after.
func (f *resetFixture) settle(mode Mode) Result {
	f.t.Helper()
	out, err := f.recover(mode, nil)
	if err != nil || len(out) > 1 {
		f.t.Fatalf("recovered with %v, %v", out, err)
	}
	if again, err := f.recover(Automatic, nil); err != nil || len(again) > 0 {
		f.t.Errorf("the second recovery found %v, %v", again, err)
	}
	now := f.see(f.above)
	isBefore, isAfter := f.before.diff(now), "nothing was staged"
	if f.staged != nil || !slices.ContainsFunc(f.e.Swaps, func(s Swap) bool { return s.New != nil }) {
		isAfter = f.after().diff(now)
	}
	result := Result(0)
	if len(out) == 1 {
		result = out[0].Result
		if out[0].Kind != "rollback" && result != Cleared {
			f.t.Errorf("kind %q", out[0].Kind)
		}
	}
	switch {
	case isBefore == "" && result != Completed:
		return RolledBack
	case isAfter == "" && result != RolledBack:
		return Completed
	}
	f.t.Errorf("%v; neither as before:\n%s\nnor as after:\n%s", out, isBefore, isAfter)
	return 0
}

// resetCases are the fixtures that the sweeps go through.

func rollbackReset(t testing.TB, above string) *resetFixture {
	f := newResetFixture(t, above, "keep", "a/b/c/one", "a/b/two", "a/three", "d/four", "d/stays", "empty/", "link -> keep")
	for _, path := range []string{"a/b/c/one", "a/b/c", "a/b/two", "a/b", "d/four", "link", "empty"} {
		s := f.swap(path, false)
		s.Empty = s.Old.Mode.IsDir()
	}
	f.stays("a", 0o711)
	f.stays("d", 0o2750)
	f.stays("", 0o710)
	f.e.stage = nil
	return f
}

// plainReset is one in which no name is beneath another one.
func plainReset(t testing.TB, above string) *resetFixture {
	f := newResetFixture(t, above, "keep", "a/file", "b/keep", "c/keep", "e/", "g/h/", "i/", "to -> c", "REPORT", "a/OLD")
	f.swap("a/file", true)
	f.swap("b/new", true)
	f.swap("to/more", true)
	f.swap("a/new", true)
	f.swap("g/h", true).Empty = true
	f.swap("e", true).Empty = true
	f.swap("i", false).Empty = true
	f.swap("REPORT", true).Last = true
	f.swap("a/OLD", false).Last = true
	f.swap("b/NEW", true).Last = true
	f.stays("c", 0o700)
	return f
}

func mixedReset(t testing.TB, above string) *resetFixture {
	f := newResetFixture(t, above, "keep", "a/file", "a/link -> file", "b/tree/x", "b/tree/y/z", "c/full/f", "e/", "g/h/", "i/", "to -> c", "REPORT", "a/OLD")
	f.swap("a/file", true)  // a file for a file
	f.swap("a/link", true)  // a directory for a link
	f.swap("to/more", true) // a link, through a link
	f.swap("a/new", true)   // a file
	f.swap("b/new", true)   // a directory
	f.clear("b/tree", true) // a link for a directory
	f.swap("e", true).Empty = true
	f.swap("g/h", true).Empty = true // a directory for a directory
	f.clear("c/full", false)
	f.swap("i", false).Empty = true
	f.swap("REPORT", true).Last = true // of a file that is replaced
	f.swap("a/OLD", false).Last = true // which goes
	f.swap("b/NEW", true).Last = true  // which comes
	f.stays("c", 0o700)
	return f
}

func manyReset(t testing.TB, above string) *resetFixture {
	var names []string
	for i := range few + 2 {
		names = append(names, fmt.Sprintf("d%02d/f", i))
	}
	f := newResetFixture(t, above, names...)
	for _, name := range names {
		f.swap(name, true)
		f.stays(filepath.Dir(name), 0o750)
	}
	return f
}

var resetCases = []struct {
	name string
	make func(t testing.TB, above string) *resetFixture
}{{"rollback", rollbackReset}, {"plain", plainReset}, {"mixed", mixedReset}, {"many", manyReset}}

// resetFixtures makes fresh fixtures of a reset.
type resetFixtures struct {
	t    *testing.T
	base string
	make func(t testing.TB, above string) *resetFixture
	n    int
}

func (g *resetFixtures) fresh() *resetFixture {
	g.t.Helper()
	g.n++
	f := g.make(g.t, filepath.Join(g.base, strconv.Itoa(g.n)))
	f.before = f.see(f.above)
	return f
}

// done forgets a resetFixture.
func (g *resetFixtures) done(f *resetFixture) { _ = os.RemoveAll(f.above) }
