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

// TestMeta makes links and a FIFO, and sets their metadata by handle: what the
// link leads to stays as it is.
func TestMeta(t *testing.T) {
	top := t.TempDir()
	d := openDir(t, top, chooseWalker())
	target := filepath.Join(top, "target")
	if err := os.WriteFile(target, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	before, err := d.Lstat("target")
	if err != nil {
		t.Fatal(err)
	}
	long := time.Unix(-5, 7)
	for _, err := range []error{d.Symlink(target, "link"), d.Mkfifo("fifo", 0o600), d.Mkdir("dir", 0o700)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if got, err := d.Readlink("link"); got != target || err != nil {
		t.Errorf("link to %q, %v", got, err)
	}
	if got, err := d.Readlink("target"); got != "" || !errors.Is(err, unix.EINVAL) {
		t.Errorf("target of a file: %q, %v", got, err)
	}
	for _, name := range []string{"link", "fifo", "dir"} {
		node, err := d.Pin(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(node.Chown(uint32(os.Geteuid()), uint32(os.Getegid())), node.SetModTime(long)); err != nil {
			t.Error(err)
		}
		if name != "link" {
			if err := node.Chmod(0o2750); err != nil {
				t.Error(err)
			}
		}
		st, err := node.Stat()
		if err != nil || !st.ModTime.Equal(long) || name != "link" && st.Perm != 0o2750 {
			t.Errorf("%q: %v, %v", name, st, err)
		}
		if all, err := node.Xattrs(); err != nil || len(all) > 1 {
			t.Errorf("%q: attributes %v, %v", name, all, err)
		}
		if err := node.Close(); err != nil {
			t.Error(err)
		}
	}
	if after, err := d.Lstat("target"); err != nil || !after.ChangeTime.Equal(before.ChangeTime) {
		t.Errorf("the target of the link was touched: %v, %v", after, err)
	}
}

func TestXattrs(t *testing.T) {
	d := openDir(t, t.TempDir(), chooseWalker())
	f, err := d.Create("f", 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	node := FileNode(f)
	big := Xattr{"user.b", string(make([]byte, 900))} // more than the first try has room for
	for _, x := range []Xattr{big, {"user.a", ""}} {
		if err := node.SetXattr(x); errors.Is(err, errors.ErrUnsupported) {
			t.Skip("no extended attributes here")
		} else if err != nil {
			t.Fatal(err)
		}
	}
	pinned, err := d.Pin("f")
	if err != nil {
		t.Fatal(err)
	}
	defer pinned.Close()
	for _, node := range []*Node{node, pinned} {
		all, err := node.Xattrs()
		if err != nil || len(all) < 2 || all[len(all)-2].Name != "user.a" || all[len(all)-1] != big {
			t.Errorf("attributes %v, %v", all, err)
		}
	}
	if err := errors.Join(pinned.RemoveXattr("user.b"), pinned.RemoveXattr("user.b")); err != nil {
		t.Error(err)
	}
}

func TestLinkNameAndExchange(t *testing.T) {
	d := openDir(t, t.TempDir(), chooseWalker())
	for _, name := range []string{"a", "b"} {
		if err := d.Symlink("to "+name, name); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(d.LinkName("a", d, "c"), d.RenameExchange("a", d, "b")); err != nil {
		t.Fatal(err)
	}
	if err := d.LinkName("a", d, "b"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a taken name: %v", err)
	}
	if err := d.RenameExchange("a", d, "gone"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing name: %v", err)
	}
	for name, want := range map[string]string{"a": "to b", "b": "to a", "c": "to a"} {
		if got, err := d.Readlink(name); got != want || err != nil {
			t.Errorf("%q leads %q, %v", name, got, err)
		}
	}
}

func TestSharedLock(t *testing.T) {
	top := t.TempDir()
	a, b := openDir(t, top, chooseWalker()), openDir(t, top, chooseWalker())
	if err := errors.Join(a.TryLockShared(), b.TryLockShared()); err != nil {
		t.Fatal(err)
	}
	if err := a.TryLock(); !errors.Is(err, ErrLocked) {
		t.Errorf("alone beside another: %v", err)
	}
	b.Close()
	if err := a.TryLock(); err != nil {
		t.Errorf("alone: %v", err)
	}
}

// TestMetaNames: functions that work on a single name reject a path.
func TestMetaNames(t *testing.T) {
	d := openDir(t, t.TempDir(), chooseWalker())
	for _, name := range []string{"", ".", "..", "a/b", "../x", "x\x00"} {
		_, pinned := d.Pin(name)
		_, read := d.Readlink(name)
		for i, err := range []error{pinned, read, d.Symlink("t", name), d.Mkfifo(name, 0), d.LinkName(name, d, "n"), d.LinkName("n", d, name),
			d.RenameExchange(name, d, "n"), d.RenameExchange("n", d, name)} {
			var form *FormError
			if !errors.As(err, &form) {
				t.Errorf("%d: %q: %v", i, name, err)
			}
		}
	}
}
