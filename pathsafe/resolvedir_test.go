package pathsafe

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestResolveDir: ".." leads out of what a link led to, as for the kernel.
func TestResolveDir(t *testing.T) {
	dir, err := ResolveDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(dir+"/a/b", 0o755), os.Symlink("a/b", dir+"/link"), os.WriteFile(dir+"/file", nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir + "/a")
	for path, want := range map[string]string{
		".": dir + "/a", "..": dir, "b/.": dir + "/a/b", "../link": dir + "/a/b", "../link/..": dir + "/a",
		dir + "/link/../..": dir, "/": "/", "": dir + "/a",
	} {
		if got, err := ResolveDir(path); got != want || err != nil {
			t.Errorf("%q: %q, %v, want %q", path, got, err, want)
		}
	}
	for path, want := range map[string]error{"none": fs.ErrNotExist, "none/..": fs.ErrNotExist, "../file": unix.ENOTDIR, "../file/.": unix.ENOTDIR} {
		if got, err := ResolveDir(path); got != "" || !errors.Is(err, want) {
			t.Errorf("%q: %q, %v, want %v", path, got, err, want)
		}
	}
}

// TestOpenDirAcross enters another mount, which OpenDir does not, but no link.
func TestOpenDirAcross(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount")
	}
	path := t.TempDir()
	if err := errors.Join(os.Mkdir(path+"/sub", 0o755), os.Mkdir(path+"/other", 0o755), os.Symlink("sub", path+"/link"), unix.Mount("none", path+"/other", "tmpfs", 0, "")); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Unmount(path+"/other", unix.MNT_DETACH) }()
	d, err := OpenRoot(path)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, name := range []string{"sub", "other"} {
		sub, err := d.OpenDirAcross(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if sub.Name() != path+"/"+name {
			t.Errorf("%s has the name %q", name, sub.Name())
		}
		if err := sub.Mkdir("new", 0o755); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(path + "/" + name + "/new"); err != nil {
			t.Error(err)
		}
		sub.Close()
	}
	if sub, err := d.OpenDir("other"); !errors.Is(err, ErrCrossesMount) {
		t.Errorf("OpenDir: %v, %v", sub, err)
	}
	for _, name := range []string{"link", "..", ".", "a/b", "", "none"} {
		if sub, err := d.OpenDirAcross(name); err == nil {
			t.Errorf("%q: %v", name, sub.Name())
		}
	}
}
