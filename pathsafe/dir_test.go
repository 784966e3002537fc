package pathsafe

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"golang.org/x/sys/unix"
)

// nameOps are all operations on a single component.
var nameOps = map[string]func(d *Dir, name string) error{
	"OpenDir": func(d *Dir, name string) error { _, err := d.OpenDir(name); return err },
	"Mkdir":   func(d *Dir, name string) error { return d.Mkdir(name, 0o755) },
	"Create":  func(d *Dir, name string) error { _, err := d.Create(name, 0o644); return err },
	"Open":    func(d *Dir, name string) error { _, _, err := d.Open(name); return err },
	"Lstat":   func(d *Dir, name string) error { _, err := d.Lstat(name); return err },
	"Unlink":  func(d *Dir, name string) error { return d.Unlink(name) },
	"Rmdir":   func(d *Dir, name string) error { return d.Rmdir(name) },
	"rename from": func(d *Dir, name string) error {
		return d.RenameNoReplace(name, d, "new")
	},
	"rename to": func(d *Dir, name string) error { return d.RenameNoReplace("old", d, name) },
	"Link": func(d *Dir, name string) error {
		f, err := d.CreateUnnamed(0o600)
		if err != nil {
			return err
		}
		defer f.Close()
		return d.Link(f, name)
	},
}

func TestNamesAreSingleComponents(t *testing.T) {
	eachWalker(t, func(t *testing.T, w walker) {
		base := t.TempDir()
		plant(t, base, "root/old", "root/sub/x", "x")
		d := openDir(t, filepath.Join(base, "root"), w)
		for op, f := range nameOps {
			for name, want := range map[string]error{
				"": ErrTraversal, ".": ErrTraversal, "..": ErrTraversal, "../x": ErrTraversal, "sub/x": ErrTraversal,
				"sub/": ErrTraversal, "/etc": ErrTraversal, "a\x00": ErrNullByte, strings.Repeat("n", 256): ErrTooLong,
			} {
				if err := f(d, name); !errors.Is(err, want) {
					t.Errorf("%s(%.20q): %v, want %v", op, name, err, want)
				}
			}
		}
		names, err := d.Names()
		if err != nil || !slices.Equal(names, []string{"old", "sub"}) {
			t.Errorf("the directory changed: %q, %v", names, err)
		}
	})
}

// The zero handle and a closed one reach nothing, least of all the working
// directory or standard input.
func TestClosedHandles(t *testing.T) {
	closed, err := OpenRoot(t.TempDir())
	must(t, err)
	must(t, closed.Close())
	p := mustParse(t, "a/b")
	for _, d := range []*Dir{{}, closed} {
		for op, f := range nameOps {
			if f(d, "x") == nil {
				t.Errorf("%s worked on a closed handle", op)
			}
		}
		_, openErr := d.StatPath(p, NoLinks)
		_, surveyErr := d.Survey(p)
		_, parentErr := d.OpenParent(p, 1)
		_, selfErr := d.OpenParent(p, 0)
		_, statErr := d.Stat()
		_, namesErr := d.Names()
		walkErr := d.Walk(context.Background(), func(string, Stat) error { return nil })
		for i, err := range []error{openErr, surveyErr, parentErr, selfErr, statErr, namesErr, walkErr,
			d.Sync(), d.SyncFS(), d.TryLock(), d.Writable()} {
			if err == nil {
				t.Errorf("operation %d worked on a closed handle", i)
			}
		}
	}
}

func TestZeroPathIsRejected(t *testing.T) {
	d := openDir(t, t.TempDir(), chooseWalker())
	_, _, openErr := d.OpenRegular(Path{}, NoLinks)
	_, statErr := d.StatPath(Path{}, NoLinks)
	_, surveyErr := d.Survey(Path{})
	_, parentErr := d.OpenParent(Path{}, 1)
	for i, err := range []error{openErr, statErr, surveyErr, parentErr} {
		if err == nil {
			t.Errorf("operation %d took the zero path", i)
		}
	}
	if _, err := d.OpenParent(mustParse(t, "a"), 2); err == nil {
		t.Error("OpenParent took more components than there are")
	}
}

func TestNothingIsOverwritten(t *testing.T) {
	eachWalker(t, func(t *testing.T, w walker) {
		root := t.TempDir()
		plant(t, root, "file", "empty/", "dir/x", "link -> file", "dangling -> nowhere", "fifo|", "new", "newdir/f")
		d := openDir(t, root, w)
		unnamed, err := d.CreateUnnamed(0o600)
		must(t, err)
		defer unnamed.Close()
		for _, name := range []string{"file", "empty", "dir", "link", "dangling", "fifo"} {
			before, err := d.Lstat(name)
			must(t, err)
			_, createErr := d.Create(name, 0o644)
			for i, err := range []error{d.RenameNoReplace("new", d, name), d.RenameNoReplace("newdir", d, name),
				d.Link(unnamed, name), d.Mkdir(name, 0o755), createErr} {
				if !errors.Is(err, fs.ErrExist) {
					t.Errorf("operation %d on %q: %v, want ErrExist", i, name, err)
				}
			}
			after, err := d.Lstat(name)
			if err != nil || after != before {
				t.Errorf("%q changed: %+v, %+v, %v", name, before, after, err)
			}
		}
		if _, err := os.Lstat(filepath.Join(root, "nowhere")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("something was made through the dangling link: %v", err)
		}
	})
}

func TestRenameKeepsTheInode(t *testing.T) {
	root := t.TempDir()
	plant(t, root, "stage/tree/f", "to/")
	d := openDir(t, root, chooseWalker())
	stage, err := d.OpenDir("stage")
	must(t, err)
	defer stage.Close()
	to, err := d.OpenDir("to")
	must(t, err)
	defer to.Close()
	before, err := stage.Lstat("tree")
	must(t, err)
	must(t, stage.RenameNoReplace("tree", to, "moved"))
	after, err := to.Lstat("moved")
	if err != nil || after.ID != before.ID || after.BirthTime != before.BirthTime || after.BirthTime.IsZero() {
		t.Errorf("%+v became %+v, %v", before, after, err)
	}
}

func TestUnnamedFile(t *testing.T) {
	root := t.TempDir()
	d := openDir(t, root, chooseWalker())
	f, err := d.CreateUnnamed(0o600)
	must(t, err)
	defer f.Close()
	_, err = f.WriteString("whole")
	must(t, err)
	if names, err := d.Names(); err != nil || len(names) != 0 {
		t.Fatalf("the unnamed file has a name: %q, %v", names, err)
	}
	must(t, d.Link(f, "named"))
	if b, err := os.ReadFile(filepath.Join(root, "named")); err != nil || string(b) != "whole" {
		t.Errorf("read %q, %v", b, err)
	}
	queues := filepath.Join(t.TempDir(), "mqueue") // a file system without unnamed files
	harness.Mount(t, "none", queues, "mqueue", 0, "")
	if _, err := openDir(t, queues, chooseWalker()).CreateUnnamed(0o600); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("unnamed file in mqueue: %v, want ErrUnsupported", err)
	}
}

func TestOpenDirRejectsLinks(t *testing.T) {
	eachWalker(t, func(t *testing.T, w walker) {
		root := t.TempDir()
		plant(t, root, "d/f", "l -> d", "out -> /etc", "fifo|", "file")
		d := openDir(t, root, w)
		for name, want := range map[string]string{
			"d": "ok", "l": "symlink", "out": "symlink", "fifo": "ENOTDIR", "file": "ENOTDIR", "none": "missing",
		} {
			sub, err := d.OpenDir(name)
			if got := reason(err); got != want {
				t.Errorf("OpenDir(%q): %s, want %s", name, got, want)
			}
			if sub != nil {
				must(t, sub.Close())
			}
		}
	})
}

func TestLock(t *testing.T) {
	root := t.TempDir()
	first, second := openDir(t, root, chooseWalker()), openDir(t, root, chooseWalker())
	must(t, first.TryLock())
	if err := second.TryLock(); !errors.Is(err, ErrLocked) {
		t.Errorf("the second lock: %v", err)
	}
	own, err := first.OpenParent(Path{}, 0)
	must(t, err)
	if err := own.TryLock(); !errors.Is(err, ErrLocked) {
		t.Errorf("a handle of its own shares the lock: %v", err)
	}
	must(t, own.Close())
	if err := second.TryLock(); !errors.Is(err, ErrLocked) {
		t.Errorf("closing another handle gave up the lock: %v", err)
	}
	must(t, first.Close())
	must(t, second.TryLock())
}

func TestNamesTwice(t *testing.T) {
	root := t.TempDir()
	plant(t, root, "b", "a", "a.b", "B", "\xff", ".h")
	d := openDir(t, root, chooseWalker())
	want := []string{".h", "B", "a", "a.b", "b", "\xff"}
	for range 2 {
		if got, err := d.Names(); err != nil || !slices.Equal(got, want) {
			t.Errorf("Names = %q, %v", got, err)
		}
	}
}

func TestSync(t *testing.T) {
	d := openDir(t, t.TempDir(), chooseWalker())
	must(t, d.Sync())
	must(t, d.SyncFS())
}

func TestWritable(t *testing.T) {
	base := t.TempDir()
	plant(t, base, "rw/", "ro/")
	must(t, os.Chmod(filepath.Join(base, "rw"), 0o755))
	ro := filepath.Join(base, "ro")
	harness.Mount(t, filepath.Join(base, "rw"), ro, "", unix.MS_BIND, "")
	must(t, unix.Mount("", ro, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	d := openDir(t, filepath.Join(base, "rw"), chooseWalker())
	must(t, d.Writable())
	if err := openDir(t, ro, chooseWalker()).Writable(); !errors.Is(err, unix.EROFS) {
		t.Errorf("read-only mount: %v", err)
	}
	var err error
	asNobody(t, func() { err = d.Writable() })
	if !errors.Is(err, fs.ErrPermission) {
		t.Errorf("as another user: %v", err)
	}
}

func TestStat(t *testing.T) {
	root := t.TempDir()
	name := filepath.Join(root, "f")
	must(t, os.WriteFile(name, []byte("12345"), 0o600))
	must(t, os.Chown(name, 7, 8))
	must(t, unix.Chmod(name, 0o6751))
	must(t, os.Link(name, filepath.Join(root, "g")))
	fi, err := os.Lstat(name)
	must(t, err)
	st, err := openDir(t, root, chooseWalker()).Lstat("f")
	must(t, err)
	if st.Mode != fi.Mode() || st.Perm != 0o6751 || st.Size != 5 || st.Links != 2 || st.UID != 7 || st.GID != 8 {
		t.Errorf("%+v, but os says %v", st, fi.Mode())
	}
	if !st.ModTime.Equal(fi.ModTime()) || st.BirthTime.IsZero() || st.ChangeTime.IsZero() || st.ID.Mount == 0 {
		t.Errorf("times or mount: %+v", st)
	}
	must(t, os.Mkdir(filepath.Join(root, "sticky"), 0o755))
	must(t, os.Chmod(filepath.Join(root, "sticky"), 0o777|fs.ModeSticky))
	if st, err := openDir(t, filepath.Join(root, "sticky"), chooseWalker()).Stat(); err != nil ||
		st.Mode != fs.ModeDir|fs.ModeSticky|0o777 {
		t.Errorf("sticky directory: %v, %v", st.Mode, err)
	}
}

func TestStatFile(t *testing.T) {
	root := t.TempDir()
	plant(t, root, "f")
	d := openDir(t, root, chooseWalker())
	f, want, err := d.Open("f")
	must(t, err)
	if st, err := StatFile(f); err != nil || st != want {
		t.Errorf("%+v, %v, want %+v", st, err, want)
	}
	must(t, f.Close())
	if st, err := StatFile(f); err == nil || st != (Stat{}) {
		t.Errorf("of a closed file: %+v, %v", st, err)
	}
}

// TestIsOn: a directory must have the mount and the device of the one above it; a file only its
// mount, since overlay reports the device of a layer. If the kernel returns no mount IDs, the
// device decides.
func TestIsOn(t *testing.T) {
	for _, c := range []struct {
		top, is ID
		dir     bool
		file    bool
	}{
		{ID{1, 2, 3}, ID{1, 9, 3}, true, true}, {ID{1, 2, 3}, ID{1, 2, 4}, false, false}, {ID{1, 2, 3}, ID{9, 2, 3}, false, true},
		{ID{1, 2, 0}, ID{1, 9, 0}, true, true}, {ID{1, 2, 0}, ID{9, 2, 0}, false, false}, {ID{1, 2, 3}, ID{9, 2, 0}, false, false},
	} {
		for mode, want := range map[fs.FileMode]bool{fs.ModeDir: c.dir, 0: c.file, fs.ModeSymlink: c.file} {
			if got := (Stat{Mode: mode, ID: c.is}).IsOn(c.top); got != want {
				t.Errorf("%v, %v on %v: %v", mode, c.is, c.top, got)
			}
		}
	}
}
