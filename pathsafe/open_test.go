package pathsafe

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"golang.org/x/sys/unix"
)

// makeFile creates p one component at a time and returns nothing but errors.
func makeFile(t *testing.T, d *Dir, p Path) {
	t.Helper()
	at, names := d, p.Components()
	for _, name := range names[:len(names)-1] {
		if err := at.Mkdir(name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
		next, err := at.OpenDir(name)
		must(t, err)
		defer next.Close()
		at = next
	}
	f, err := at.Create(p.Base(), 0o640)
	must(t, err)
	_, err = f.WriteString(p.String())
	must(t, err)
	must(t, f.Close())
}

// Every legal path of the table is created, opened and read back byte for byte, except those that
// no file system supports.
func TestPathCasesOnDisk(t *testing.T) {
	eachWalker(t, func(t *testing.T, w walker) {
		d := openDir(t, t.TempDir(), w)
		for _, c := range pathCases {
			if c.want != nil {
				continue
			}
			p := mustParse(t, c.path)
			if tooLongCase(c.path) {
				checkTooLong(t, d, p)
				continue
			}
			makeFile(t, d, p)
			f, st, err := d.OpenRegular(p, NoLinks)
			if err != nil {
				t.Errorf("case %d: %v", c.no, err)
				continue
			}
			if got := readAll(t, f); got != c.path || st.Size != int64(len(c.path)) || st.Links != 1 {
				t.Errorf("case %d: %.40q holds %.40q, %+v", c.no, c.path, got, st)
			}
		}
	})
}

func checkTooLong(t *testing.T, d *Dir, p Path) {
	t.Helper()
	_, _, openErr := d.OpenRegular(p, LinksBeneath)
	_, statErr := d.StatPath(p, NoLinks)
	_, surveyErr := d.Survey(p)
	_, parentErr := d.OpenParent(p, len(p.Components()))
	for _, err := range []error{openErr, statErr, surveyErr, parentErr} {
		if !errors.Is(err, ErrTooLong) {
			t.Errorf("%.40q: %v, want ErrTooLong", p, err)
		}
	}
}

func TestSimilarNamesAreDistinct(t *testing.T) {
	eachWalker(t, func(t *testing.T, w walker) {
		root := t.TempDir()
		plant(t, root, "A", "a", "caf\u00e9", "cafe\u0301")
		d := openDir(t, root, w)
		for _, s := range []string{"A", "a", "caf\u00e9", "cafe\u0301"} {
			f, _, err := d.OpenRegular(mustParse(t, s), NoLinks)
			must(t, err)
			if got := readAll(t, f); got != s {
				t.Errorf("%q holds %q", s, got)
			}
		}
	})
}

// linkTree is the ground for linkCases. Its root is called "root".
var linkTree = []string{
	"f", "d/f", "d/e/f", "d/pipe|",
	"in -> d/f", "indir -> d", "d/up -> ../f", "d/e/up -> ../../d/../f", "dot -> .", "here -> d/./e//f",
	"out -> /etc/passwd", "outdir -> /etc", "updir -> ..", "d/upup -> ../../root/f", "back -> ../root/f",
	"dangling -> nowhere", "dangledir -> nowhere/x", "far -> nowhere/../../..", "loop -> loop", "loop1 -> loop2", "loop2 -> loop1",
	"slash -> f/", "slashdot -> f/.", "slashup -> f/..", "dirslash -> d/", "topipe -> d/pipe", "environ -> /proc/self/environ",
	"chain0 -> f", "long -> " + strings.Repeat("n", 300),
}

var linkCases = []struct {
	path            string
	noLinks, links  string // reasons of OpenRegular
	survey          string // reason of Survey, or what it found
	afterOpenParent string // reason of OpenParent with all components
}{
	{"f", "ok", "ok", "exists", "ENOTDIR"},
	{"d", "not regular", "not regular", "exists", "ok"},
	{"d/f", "ok", "ok", "exists", "ENOTDIR"},
	{"d/e/f", "ok", "ok", "exists", "ENOTDIR"},
	{"f/x", "missing", "missing", "exists", "ENOTDIR"},
	{"f/x/y", "missing", "missing", "exists", "ENOTDIR"},
	{"d/pipe", "not regular", "not regular", "exists", "ENOTDIR"},
	{"d/pipe/x", "missing", "missing", "exists", "ENOTDIR"},
	{"n", "missing", "missing", "missing 0", "missing"},
	{"n/x/y", "missing", "missing", "missing 0", "missing"},
	{"d/n", "missing", "missing", "missing 1", "missing"},
	{"d/n/x/y", "missing", "missing", "missing 1", "missing"},
	{"d/e/n/x", "missing", "missing", "missing 2", "missing"},
	{"in", "symlink", "ok", "exists", "ENOTDIR"},
	{"in/x", "symlink", "missing", "exists", "ENOTDIR"},
	{"indir", "symlink", "not regular", "exists", "ok"},
	{"indir/f", "symlink", "ok", "exists", "ENOTDIR"},
	{"indir/n", "symlink", "missing", "missing 1", "missing"},
	{"indir/e/n/x", "symlink", "missing", "missing 2", "missing"},
	{"dot/dot/dot/f", "symlink", "ok", "exists", "ENOTDIR"},
	{"dot", "symlink", "not regular", "exists", "ok"},
	{"dot/n", "symlink", "missing", "missing 1", "missing"},
	{"here", "symlink", "ok", "exists", "ENOTDIR"},
	{"d/up", "symlink", "ok", "exists", "ENOTDIR"},
	{"d/e/up", "symlink", "ok", "exists", "ENOTDIR"},
	{"indir/e/up", "symlink", "ok", "exists", "ENOTDIR"},
	{"out", "symlink", "escape", "escape", "escape"},
	{"outdir/passwd", "symlink", "escape", "escape", "escape"},
	{"outdir/n", "symlink", "escape", "escape", "escape"},
	{"updir", "symlink", "escape", "escape", "escape"},
	{"updir/root/f", "symlink", "escape", "escape", "escape"},
	{"back", "symlink", "escape", "escape", "escape"},
	{"d/upup", "symlink", "escape", "escape", "escape"},
	{"environ", "symlink", "escape", "escape", "escape"},
	{"dangling", "symlink", "missing", "exists", "missing"},
	{"dangling/x", "symlink", "missing", "exists", "missing"},
	{"dangledir/x", "symlink", "missing", "exists", "missing"},
	{"far", "symlink", "missing", "exists", "missing"},
	{"loop", "symlink", "escape", "escape", "escape"},
	{"loop1/x", "symlink", "escape", "escape", "escape"},
	{"slash", "symlink", "missing", "exists", "ENOTDIR"},
	{"slashdot", "symlink", "missing", "exists", "ENOTDIR"},
	{"slashup", "symlink", "missing", "exists", "ENOTDIR"},
	{"dirslash/f", "symlink", "ok", "exists", "ENOTDIR"},
	{"topipe", "symlink", "not regular", "exists", "ENOTDIR"},
	{"long", "symlink", "too long", "too long", "too long"},
	{"chain40", "symlink", "escape", "escape", "escape"},
	{"chain39", "symlink", "ok", "exists", "ENOTDIR"},
}

// plantLinks makes the tree and a chain of links: chain39 is forty deep, the maximum of the kernel.
func plantLinks(t *testing.T) string {
	root := filepath.Join(t.TempDir(), "root")
	plant(t, root, linkTree...)
	for i := 1; i <= 40; i++ {
		plant(t, root, fmt.Sprintf("chain%d -> chain%d", i, i-1))
	}
	plant(t, root, fmt.Sprintf("absolute -> %s/f", root))
	return root
}

func TestLinks(t *testing.T) {
	eachWalker(t, func(t *testing.T, w walker) {
		root := plantLinks(t)
		d := openDir(t, root, w)
		piped := opens(t, filepath.Join(root, "d/pipe"))
		for _, c := range linkCases {
			p := mustParse(t, c.path)
			checkReason(t, d, p, NoLinks, c.noLinks)
			checkReason(t, d, p, LinksBeneath, c.links)
			if got := surveyWord(d, p); got != c.survey {
				t.Errorf("Survey(%q): %s, want %s", p, got, c.survey)
			}
			parent, err := d.OpenParent(p, len(p.Components()))
			if got := reason(err); got != c.afterOpenParent {
				t.Errorf("OpenParent(%q): %s, want %s", p, got, c.afterOpenParent)
			}
			if parent != nil {
				must(t, parent.Close())
			}
		}
		checkReason(t, d, mustParse(t, "absolute"), LinksBeneath, "escape")
		if n := piped(); n != 0 {
			t.Errorf("the FIFO was opened %d times", n)
		}
	})
}

// checkReason opens p, compares the reason, and checks that StatPath returns the same, except for
// the type.
func checkReason(t *testing.T, d *Dir, p Path, links Links, want string) {
	t.Helper()
	f, st, err := d.OpenRegular(p, links)
	if got := reason(err); got != want {
		t.Errorf("OpenRegular(%q, %v): %s, want %s (%v)", p, links, got, want, err)
	}
	if err == nil {
		must(t, f.Close())
	} else if f != nil || st != (Stat{}) {
		t.Errorf("OpenRegular(%q): an error and content", p)
	}
	if want == "not regular" {
		want = "ok"
	}
	st2, err := d.StatPath(p, links)
	if got := reason(err); got != want {
		t.Errorf("StatPath(%q, %v): %s, want %s", p, links, got, want)
	}
	if f != nil && st != st2 {
		t.Errorf("OpenRegular(%q) saw %+v, StatPath %+v", p, st, st2)
	}
	checkOpener(t, d, p, links, st2, want == "ok" && f == nil)
}

// checkOpener requires from an opener the same as from the directory itself, also if the opener has
// the parent open.
func checkOpener(t *testing.T, d *Dir, p Path, links Links, st Stat, special bool) {
	t.Helper()
	var near Opener
	defer near.Close()
	want := st != (Stat{})
	for range 2 {
		got, err := near.StatPath(d, p, links)
		if (err == nil) != want || got != st {
			t.Errorf("Opener.StatPath(%q, %v): %+v, %v, want %+v", p, links, got, err, st)
		}
		f, got, err := near.OpenRegular(d, p, links)
		switch {
		case (err == nil) != (want && !special) || err == nil && got != st:
			t.Errorf("Opener.OpenRegular(%q, %v): %+v, %v, want %+v", p, links, got, err, st)
		case err == nil:
			if held, err := StatFile(f); err != nil || held.ID != st.ID {
				t.Errorf("%q: %+v is open, %v, want %+v", p, held, err, st)
			}
			must(t, f.Close())
		case f != nil || got != (Stat{}):
			t.Errorf("Opener.OpenRegular(%q): an error and content", p)
		}
		must(t, near.Still())
	}
}

func surveyWord(d *Dir, p Path) string {
	site, err := d.Survey(p)
	switch {
	case err != nil:
		return reason(err)
	case site.Exists:
		return "exists"
	}
	return fmt.Sprintf("missing %d", site.Missing)
}

// Nothing but a regular file is ever opened for I/O: inotify would tell.
func TestOnlyRegularFilesAreOpened(t *testing.T) {
	eachWalker(t, func(t *testing.T, w walker) {
		root := t.TempDir()
		plant(t, root, "dir/x", "fifo|", "file")
		must(t, unix.Mknod(filepath.Join(root, "char"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
		must(t, unix.Mknod(filepath.Join(root, "block"), unix.S_IFBLK|0o666, int(unix.Mkdev(7, 99))))
		must(t, unix.Mknod(filepath.Join(root, "sock"), unix.S_IFSOCK|0o644, 0)) // bind takes no long paths
		d := openDir(t, root, w)
		for name, kind := range map[string]fs.FileMode{
			"dir": fs.ModeDir, "fifo": fs.ModeNamedPipe, "char": fs.ModeDevice | fs.ModeCharDevice,
			"block": fs.ModeDevice, "sock": fs.ModeSocket,
		} {
			count := opens(t, filepath.Join(root, name))
			checkReason(t, d, mustParse(t, name), NoLinks, "not regular")
			if _, _, err := d.Open(name); !errors.Is(err, ErrNotRegular) {
				t.Errorf("Open(%q): %v", name, err)
			}
			if st, err := d.Lstat(name); err != nil || st.Mode.Type() != kind {
				t.Errorf("Lstat(%q): %v, %v", name, st.Mode, err)
			}
			if n := count(); n != 0 {
				t.Errorf("%q was opened %d times", name, n)
			}
		}
		// The control: the counter sees an open when there is one.
		count := opens(t, filepath.Join(root, "file"))
		checkReason(t, d, mustParse(t, "file"), NoLinks, "ok")
		if count() == 0 {
			t.Error("the counter does not count")
		}
	})
}

func TestMounts(t *testing.T) {
	eachWalker(t, func(t *testing.T, w walker) {
		root := t.TempDir()
		plant(t, root, "d/f", "link -> m/f", "around -> m/../d/f", "m/", "b/", "d/file")
		harness.Mount(t, "tmpfs", filepath.Join(root, "m"), "tmpfs", 0, "")
		plant(t, root, "m/f", "m/sub/f")
		harness.Mount(t, filepath.Join(root, "d"), filepath.Join(root, "b"), "", unix.MS_BIND, "")
		harness.Mount(t, filepath.Join(root, "d/f"), filepath.Join(root, "d/file"), "", unix.MS_BIND, "")
		d := openDir(t, root, w)
		for _, s := range []string{"m/f", "b/f", "link", "around", "d/file"} {
			checkReason(t, d, mustParse(t, s), LinksBeneath, "mount")
		}
		checkReason(t, d, mustParse(t, "m/f"), NoLinks, "mount")
		for s, want := range map[string]string{
			"m/n": "mount", "b/n/x": "mount", "m": "exists", "d/file": "exists", "d/n": "missing 1",
		} {
			if got := surveyWord(d, mustParse(t, s)); got != want {
				t.Errorf("Survey(%q): %s, want %s", s, got, want)
			}
		}
		checkMountDirs(t, d)
	})
}

// TestSubvolume: to openat2 a subvolume of btrfs is a directory; here it is what a mount
// is.
func TestSubvolume(t *testing.T) {
	root := harness.MountedVolume(t, harness.Btrfs).Path
	plant(t, root, "d/f", "link -> m/f", "around -> m/../d/f", "deep/")
	for _, name := range []string{"m", "deep/m"} {
		harness.Subvolume(t, filepath.Join(root, name))
	}
	plant(t, root, "m/f", "m/sub/f", "m/back -> ../d/f", "deep/m/f")
	d, err := OpenRoot(root)
	must(t, err)
	defer d.Close()
	for _, s := range []string{"m", "m/f", "m/none", "m/sub/f", "link", "around", "m/back", "deep/m/f"} {
		checkReason(t, d, mustParse(t, s), LinksBeneath, "mount")
	}
	checkReason(t, d, mustParse(t, "m/f"), NoLinks, "mount")
	checkReason(t, d, mustParse(t, "d/f"), NoLinks, "ok")
	for s, want := range map[string]string{"m/n": "mount", "m/sub/n": "mount", "m": "exists", "d/n": "missing 1"} {
		if got := surveyWord(d, mustParse(t, s)); got != want {
			t.Errorf("Survey(%q): %s, want %s", s, got, want)
		}
	}
	if _, err := d.OpenDir("m"); !errors.Is(err, ErrCrossesMount) {
		t.Errorf("OpenDir: %v", err)
	}
	deep, err := d.OpenDir("deep")
	must(t, err)
	defer deep.Close()
	checkReason(t, deep, mustParse(t, "m/f"), LinksBeneath, "mount")
	if err := d.ChmodDir("m", 0o700); !errors.Is(err, ErrCrossesMount) {
		t.Errorf("ChmodDir: %v", err)
	}
	var seen []string
	must(t, d.Walk(t.Context(), func(rel string, _ Stat) error {
		seen = append(seen, rel)
		return nil
	}))
	if want := []string{"around", "d", "d/f", "deep", "deep/m", "link", "m"}; !slices.Equal(seen, want) {
		t.Errorf("Walk: %q, want %q", seen, want)
	}
	in, err := OpenRoot(filepath.Join(root, "m"))
	must(t, err)
	defer in.Close()
	checkReason(t, in, mustParse(t, "sub/f"), NoLinks, "ok") // a root may be one
}

func checkMountDirs(t *testing.T, d *Dir) {
	t.Helper()
	for _, name := range []string{"m", "b"} {
		if _, err := d.OpenDir(name); !errors.Is(err, ErrCrossesMount) {
			t.Errorf("OpenDir(%q): %v", name, err)
		}
		if _, err := d.OpenParent(mustParse(t, name+"/x"), 1); !errors.Is(err, ErrCrossesMount) {
			t.Errorf("OpenParent(%q): %v", name, err)
		}
	}
	inside, err := d.Lstat("b")
	must(t, err)
	outside, err := d.Lstat("d")
	must(t, err)
	if inside.ID.Ino != outside.ID.Ino || inside.ID == outside.ID {
		t.Errorf("a bind mount should be the same inode with another ID: %+v, %+v", inside.ID, outside.ID)
	}
}

// A root whose own name is a link, or a bind mount, is a root like any other.
func TestRootThroughLink(t *testing.T) {
	eachWalker(t, func(t *testing.T, w walker) {
		base := t.TempDir()
		plant(t, base, "real/f", "link -> real", "bound/")
		harness.Mount(t, filepath.Join(base, "real"), filepath.Join(base, "bound"), "", unix.MS_BIND, "")
		for _, name := range []string{"link", "bound"} {
			d := openDir(t, filepath.Join(base, name), w)
			checkReason(t, d, mustParse(t, "f"), NoLinks, "ok")
		}
	})
}

func TestOpenRootRejects(t *testing.T) {
	base := t.TempDir()
	plant(t, base, "fifo|", "file")
	for _, c := range []struct{ name, want string }{
		{"fifo", "ENOTDIR"}, {"file", "ENOTDIR"}, {"none", "missing"}, {"file/x", "ENOTDIR"},
	} {
		d, err := OpenRoot(filepath.Join(base, c.name))
		if got := reason(err); got != c.want || d != nil {
			t.Errorf("OpenRoot(%q): %s, want %s", c.name, got, c.want)
		}
	}
	if _, err := OpenRoot(""); err == nil {
		t.Error("OpenRoot of the empty string succeeded")
	}
}

func TestHeldFileSurvivesReplacement(t *testing.T) {
	eachWalker(t, func(t *testing.T, w walker) {
		root := t.TempDir()
		plant(t, root, "f", "g")
		f, st, err := openDir(t, root, w).OpenRegular(mustParse(t, "f"), NoLinks)
		must(t, err)
		must(t, os.Rename(filepath.Join(root, "g"), filepath.Join(root, "f")))
		if got := readAll(t, f); got != "f" {
			t.Errorf("read %q", got)
		}
		after, err := openDir(t, root, w).StatPath(mustParse(t, "f"), NoLinks)
		must(t, err)
		if after.ID == st.ID {
			t.Error("the replacement has the same ID")
		}
	})
}

// What may not be read is rejected for that reason, not as missing.
func TestUnreadable(t *testing.T) {
	eachWalker(t, func(t *testing.T, w walker) {
		root := t.TempDir()
		plant(t, root, "secret", "closed/f")
		must(t, os.Chmod(filepath.Join(root, "secret"), 0))
		must(t, os.Chmod(filepath.Join(root, "closed"), 0o600))
		d := openDir(t, root, w)
		asNobody(t, func() {
			for _, s := range []string{"secret", "closed/f"} {
				_, _, err := d.OpenRegular(mustParse(t, s), NoLinks)
				if !errors.Is(err, fs.ErrPermission) {
					t.Errorf("%q: %v", s, err)
				}
			}
		})
	})
}

// No walk leaves a descriptor behind, whatever it ends in.
func TestNoDescriptorIsLeft(t *testing.T) {
	eachWalker(t, func(t *testing.T, w walker) {
		d := openDir(t, plantLinks(t), w)
		before := len(harness.OpenFiles(t, os.Getpid()))
		for _, c := range linkCases {
			p := mustParse(t, c.path)
			checkReason(t, d, p, NoLinks, c.noLinks)
			checkReason(t, d, p, LinksBeneath, c.links)
			surveyWord(d, p)
		}
		if after := len(harness.OpenFiles(t, os.Getpid())); after != before {
			t.Errorf("%d descriptors before, %d after", before, after)
		}
	})
}

func BenchmarkOpenRegular(b *testing.B) {
	for _, c := range walkers {
		b.Run(c.name, func(b *testing.B) {
			root := b.TempDir()
			plant(b, root, "some/dir/deep/down/file")
			d := openDir(b, root, c.w)
			p := mustParse(b, "some/dir/deep/down/file")
			b.ReportAllocs()
			for b.Loop() {
				f, _, err := d.OpenRegular(p, NoLinks)
				must(b, err)
				must(b, f.Close())
			}
		})
	}
}
