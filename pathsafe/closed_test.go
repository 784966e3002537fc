package pathsafe

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestClosedHandleDoesNothing: a closed handle does nothing. It never falls back to a path, and on
// the error every other result is zero.
func TestClosedHandleDoesNothing(t *testing.T) {
	dir := t.TempDir()
	root, err := OpenRoot(dir)
	must(t, err)
	must(t, os.WriteFile(dir+"/f", nil, 0o644))
	must(t, os.Mkdir(dir+"/d", 0o755))
	f, err := os.Open(dir + "/f")
	must(t, err)
	defer f.Close()
	must(t, root.Close())
	for name, call := range map[string]func() error{
		"FileSystem": func() error { magic, err := root.FileSystem(); return nothing(magic == 0, err) },
		"Names":      func() error { names, err := root.Names(); return nothing(names == nil, err) },
		"Rmdir":      func() error { return root.Rmdir("d") },
		"Unlink":     func() error { return root.Unlink("f") },
		"Link":       func() error { return root.Link(f, "new") },
		"Unnamed":    func() error { f, err := root.CreateUnnamed(0o644); return nothing(f == nil, err) },
		"WriteFile":  func() error { return root.WriteFile("new", nil, 0o644) },
		"Rename":     func() error { return root.RenameNoReplace("f", root, "new") },
		"Walk": func() error {
			return root.Walk(t.Context(), func(string, Stat) error { return errors.New("it walks") })
		},
	} {
		if err := call(); !errors.Is(err, fs.ErrClosed) && !errors.Is(err, unix.EBADF) {
			t.Errorf("%s: %v", name, err)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 {
		t.Errorf("%v, %v", left, err)
	}
}

// nothing is the error, unless a result came with it.
func nothing(none bool, err error) error {
	if err != nil && !none {
		return errors.New("a result came with the error")
	}
	return err
}

// TestClosedFile: a file that cannot be given a name gets none.
func TestClosedFile(t *testing.T) {
	dir := t.TempDir()
	root, err := OpenRoot(dir)
	must(t, err)
	defer root.Close()
	f, err := root.CreateUnnamed(0o644)
	must(t, err)
	must(t, f.Close())
	if err := root.Link(f, "new"); err == nil {
		t.Error("it was linked")
	}
	if err := root.Rmdir("none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if magic, err := root.FileSystem(); err != nil || magic == 0 {
		t.Errorf("%#x, %v", magic, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// TestGrantWritersNamesItsFile: the error has the path of the file.
func TestGrantWritersNamesItsFile(t *testing.T) {
	dir := t.TempDir()
	root, err := OpenRoot(dir)
	must(t, err)
	f, err := os.Create(dir + "/lock")
	must(t, err)
	defer f.Close()
	must(t, root.Close())
	if err := root.GrantWriters(f); !errors.Is(err, fs.ErrClosed) || !strings.Contains(err.Error(), `"lock"`) {
		t.Error(err)
	}
}
