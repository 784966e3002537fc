package pathsafe

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestRenameExchange(t *testing.T) {
	eachWalker(t, func(t *testing.T, w walker) {
		root := t.TempDir()
		plant(t, root, "a/x", "b", "l -> nowhere")
		d := openDir(t, root, w)
		a, err := d.OpenDir("a")
		must(t, err)
		defer a.Close()
		before, err := d.Lstat("b")
		must(t, err)
		must(t, d.RenameExchange("b", a, "x"))
		after, err := a.Lstat("x")
		must(t, err)
		if before.ID != after.ID {
			t.Error("another inode")
		}
		must(t, d.RenameExchange("a", d, "l")) // a directory and a link
		if target, err := os.Readlink(filepath.Join(root, "a")); err != nil || target != "nowhere" {
			t.Error(target, err)
		}
		for _, names := range [][2]string{{"none", "b"}, {"b", "none"}} {
			if err := d.RenameExchange(names[0], d, names[1]); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%q: %v", names, err)
			}
		}
		for _, name := range []string{"", ".", "..", "l/x", "\x00"} {
			var form *FormError
			if err := d.RenameExchange("b", d, name); !errors.As(err, &form) {
				t.Errorf("to %q: %v", name, err)
			}
			if err := d.RenameExchange(name, d, "b"); !errors.As(err, &form) {
				t.Errorf("from %q: %v", name, err)
			}
		}
		if err := d.RenameExchange("l", a, "x"); !errors.Is(err, errors.ErrUnsupported) { // beneath itself: EINVAL too
			t.Error(err)
		}
	})
}

func TestDirMetadata(t *testing.T) {
	root := t.TempDir()
	d := openDir(t, root, chooseWalker())
	when := time.Unix(-5, 7)
	var was unix.Stat_t
	must(t, unix.Lstat(root, &was))
	must(t, d.SetModTime(when))
	must(t, d.Chmod(0o2711))
	st, err := d.Stat()
	must(t, err)
	var is unix.Stat_t
	must(t, unix.Lstat(root, &is))
	if !st.ModTime.Equal(when) || st.Perm != 0o2711 || was.Atim != is.Atim {
		t.Errorf("%v, %o, %v and %v", st.ModTime, st.Perm, was.Atim, is.Atim)
	}
	must(t, d.Close())
	if err := errors.Join(d.Chmod(0o700), d.SetModTime(when)); !errors.Is(err, fs.ErrClosed) {
		t.Error(err)
	}
}

// TestChmodDir: only a directory, through no link.
func TestChmodDir(t *testing.T) {
	eachWalker(t, func(t *testing.T, w walker) {
		root := t.TempDir()
		plant(t, root, "closed/", "f", "l -> closed", "p|")
		d := openDir(t, root, w)
		must(t, os.Chmod(filepath.Join(root, "closed"), 0))
		must(t, d.ChmodDir("closed", 0o700))
		st, err := d.Lstat("closed")
		must(t, err)
		if st.Perm != 0o700 {
			t.Errorf("%o", st.Perm)
		}
		for name, want := range map[string]error{"f": unix.ENOTDIR, "p": unix.ENOTDIR, "l": ErrSymlink, "none": fs.ErrNotExist, "closed/x": ErrTraversal} {
			if err := d.ChmodDir(name, 0o777); !errors.Is(err, want) {
				t.Errorf("%q: %v", name, err)
			}
		}
		for _, name := range []string{"closed", "f"} {
			if st, err := d.Lstat(name); err != nil || st.Perm == 0o777 {
				t.Errorf("%q: %o %v", name, st.Perm, err)
			}
		}
	})
}
