package tree_test

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/spectrumfs/spectrum/test/tree"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// plant makes one thing of each kind, and returns what package os has of each.
func plant(t *testing.T, root string) map[string]fs.FileMode {
	t.Helper()
	at := func(name string) string { return filepath.Join(root, name) }
	must(t, os.MkdirAll(at("dir/sub"), 0o755))
	must(t, os.Mkdir(at("dir.too"), 0o700)) // sorts before what is in dir, as a string
	must(t, os.WriteFile(at("dir/sub/file"), []byte("content"), 0o640))
	must(t, os.WriteFile(at("tool"), nil, 0o755))
	must(t, os.Chmod(at("tool"), 0o755|fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky))
	must(t, os.Symlink("dir/sub", at("link")))
	must(t, os.Symlink("nowhere", at("dangling")))
	must(t, unix.Mkfifo(at("fifo"), 0o600))
	must(t, unix.Mknod(at("socket"), unix.S_IFSOCK|0o644, 0))
	modes := map[string]fs.FileMode{}
	must(t, filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		must(t, err)
		name, err := filepath.Rel(root, path)
		must(t, err)
		info, err := e.Info()
		modes[name] = info.Mode()
		return err
	}))
	return modes
}

func TestWalk(t *testing.T) {
	root := t.TempDir()
	want := plant(t, root)
	modes, contents, order := map[string]fs.FileMode{}, map[string]string{}, []string{}
	must(t, tree.Walk(root, func(path string, n *tree.Node, err error) error {
		must(t, err)
		modes[path], order = n.FileMode(), append(order, path)
		again, err := tree.Look(filepath.Join(root, path))
		must(t, err)
		if again.Ino != n.Ino || again.FileMode() != n.FileMode() || n.IsDir() != n.FileMode().IsDir() {
			t.Errorf("%s: %+v and %+v", path, n, again)
		}
		content, err := n.Content()
		if other, err := again.Content(); other != content || err != nil {
			t.Errorf("%s: %q and %q, %v", path, content, other, err)
		}
		if content != "" {
			contents[path] = content
		}
		return err
	}))
	if !maps.Equal(modes, want) {
		t.Errorf("%v, want %v", modes, want)
	}
	if wanted := map[string]string{"dir/sub/file": "content", "link": "dir/sub", "dangling": "nowhere"}; !maps.Equal(contents, wanted) {
		t.Errorf("%q, want %q", contents, wanted)
	}
	if wanted := []string{".", "dangling", "dir", "dir/sub", "dir/sub/file", "dir.too", "fifo", "link", "socket", "tool"}; !slices.Equal(order, wanted) {
		t.Errorf("%q, want %q", order, wanted)
	}
}

// What is not a directory is all that there is. A link in the place of the root is not
// followed, and one with a slash behind it is.
func TestWalkOfOne(t *testing.T) {
	root := t.TempDir()
	modes := plant(t, root)
	walked := func(path string) (n int, mode fs.FileMode, err error) {
		return n, mode, tree.Walk(path, func(_ string, node *tree.Node, err error) error {
			if n++; n == 1 {
				mode = node.FileMode()
			}
			return err
		})
	}
	for _, name := range []string{"link", "dangling", "tool", "fifo", "socket"} {
		if n, mode, err := walked(filepath.Join(root, name)); n != 1 || mode != modes[name] || err != nil {
			t.Errorf("%s: %d things, %v, %v", name, n, mode, err)
		}
	}
	if n, mode, err := walked(filepath.Join(root, "link") + "/"); n != 2 || mode != modes["dir/sub"] || err != nil {
		t.Errorf("%d things, %v, %v", n, mode, err)
	}
	for _, name := range []string{"none", "dangling/", "tool/"} {
		if n, _, err := walked(root + "/" + name); n != 0 || err == nil {
			t.Errorf("%s: %d things, %v", name, n, err)
		}
	}
}

// What visit returns ends the walk, or leaves out a directory.
func TestWalkEnds(t *testing.T) {
	root := t.TempDir()
	plant(t, root)
	stop := errors.New("enough")
	for _, c := range []struct {
		at   string
		with error
		want string
		err  error
	}{
		{"dir", fs.SkipDir, ". dangling dir dir.too fifo link socket tool", nil},
		{".", fs.SkipDir, ".", nil},
		{"dir/sub/file", stop, ". dangling dir dir/sub dir/sub/file", stop},
		{".", stop, ".", stop},
	} {
		var seen []string
		err := tree.Walk(root, func(path string, _ *tree.Node, _ error) error {
			if seen = append(seen, path); path == c.at {
				return c.with
			}
			return nil
		})
		if got := strings.Join(seen, " "); got != c.want || err != c.err {
			t.Errorf("%v at %s: %s, %v", c.with, c.at, got, err)
		}
	}
}

// A path may be longer than one call takes.
func TestLongPath(t *testing.T) {
	root := t.TempDir()
	fd, err := unix.Open(root, unix.O_PATH, 0)
	must(t, err)
	name := strings.Repeat("n", 255)
	for range 20 {
		must(t, unix.Mkdirat(fd, name, 0o755))
		next, err := unix.Openat(fd, name, unix.O_PATH, 0)
		must(t, errors.Join(err, unix.Close(fd)))
		fd = next
	}
	must(t, unix.Symlinkat("far away", fd, "link"))
	must(t, unix.Close(fd))
	last := ""
	must(t, tree.Walk(root, func(path string, n *tree.Node, err error) error {
		must(t, err)
		if n.Kind() == unix.S_IFLNK {
			last, err = n.Content()
		}
		return err
	}))
	if last != "far away" {
		t.Errorf("the last link leads to %q", last)
	}
}
