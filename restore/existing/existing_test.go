package existing_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/existing"
	"golang.org/x/sys/unix"
)

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func parse(t testing.TB, path string) pathsafe.Path {
	t.Helper()
	p, err := pathsafe.Parse(path)
	must(t, err)
	return p
}

// place is a restore root in which something of each kind stands.
func place(t *testing.T) *pathsafe.Dir {
	t.Helper()
	top, outside := t.TempDir(), t.TempDir()
	at := func(name string) string { return filepath.Join(top, name) }
	write := func(name, content string) error { return os.WriteFile(name, []byte(content), 0o644) }
	must(t, unix.Mknod(at("socket"), unix.S_IFSOCK|0o600, 0),
		os.MkdirAll(at("dir/deep"), 0o755), write(at("dir/deep/file"), "deep"), write(at("file"), "content"), write(at("empty"), ""),
		write(filepath.Join(outside, "x"), "secret"),
		unix.Mkfifo(at("fifo"), 0o644), unix.Mknod(at("device"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 5))),
		os.Symlink("file", at("link")), os.Symlink("dir", at("beneath")), os.Symlink(outside, at("out")),
		os.Symlink("nowhere", at("dangling")), os.Symlink("loop", at("loop")), os.Symlink("../"+filepath.Base(top)+"/dir", at("back")),
	)
	root, err := pathsafe.OpenRoot(top)
	must(t, err)
	t.Cleanup(func() { root.Close() })
	return root
}

// TestPlaces holds what is said of each path against what was put there. A device
// (zero has no end) or a FIFO that is opened would not come back.
func TestPlaces(t *testing.T) {
	tests := []struct {
		path    string
		content string // of the regular file
		absent  bool
		in, is  string // the obstacle; "" for none
	}{
		{path: "file", content: "content", in: "file", is: "a regular file"},
		{path: "empty", in: "empty", is: "a regular file"},
		{path: "dir/deep/file", content: "deep", in: "dir/deep/file", is: "a regular file"},
		{path: "beneath/deep/file", content: "deep", in: "beneath/deep/file", is: "a regular file"}, // a link that stays beneath the root is followed
		{path: "none", absent: true},
		{path: "none/x", absent: true},
		{path: "dir/none", absent: true},
		{path: "beneath/none/x", absent: true},
		{path: "dir", in: "dir", is: "a directory"},
		{path: "fifo", in: "fifo", is: "a FIFO"},
		{path: "socket", in: "socket", is: "a socket"},
		{path: "device", in: "device", is: "a device"},
		{path: "link", in: "link", is: "a symbolic link"},
		{path: "dangling", in: "dangling", is: "a symbolic link"},
		{path: "loop", in: "loop", is: "a symbolic link"},
		{path: "out", in: "out", is: "a symbolic link"},
		{path: "out/x", in: "out", is: "a symbolic link"},
		{path: "back/deep/file", in: "back", is: "a symbolic link"},
		{path: "loop/x", in: "loop", is: "a symbolic link"},
		{path: "dangling/x", absent: true, in: "dangling", is: "a symbolic link"},
		{path: "link/x", absent: true, in: "link", is: "a symbolic link"},
		{path: "file/x/y", absent: true, in: "file", is: "a regular file"},
		{path: "fifo/x", absent: true, in: "fifo", is: "a FIFO"},
		{path: "device/x", absent: true, in: "device", is: "a device"},
	}
	root := place(t)
	var paths []pathsafe.Path
	for _, test := range tests {
		paths = append(paths, parse(t, test.path))
	}
	files, err := existing.Read(t.Context(), root, paths, nil)
	must(t, err)
	for i, test := range tests {
		f := files[i]
		regular := test.is == "a regular file" && test.in == test.path
		switch {
		case f.Absent() != test.absent:
			t.Errorf("%q is absent: %v (%v)", test.path, f.Absent(), f.Refused)
		case regular && (f.Refused != nil || f.Size != int64(len(test.content)) || f.Digest != sha256.Sum256([]byte(test.content))):
			t.Errorf("%q: %+v", test.path, f)
		case !regular && (f.Refused == nil || f.Size != 0 || f.Digest != [32]byte{}):
			t.Errorf("%q was read: %+v", test.path, f)
		}
		found, err := existing.Find(root, paths[i])
		if want := (existing.Obstacle{Path: test.in, Kind: test.is}); err != nil || found != want {
			t.Errorf("%q: found %+v, %v; want %+v", test.path, found, err, want)
		}
	}
}

// TestOtherMounts: what is mounted beneath a root is not looked into.
func TestOtherMounts(t *testing.T) {
	root := place(t)
	at := filepath.Join(root.Name(), "dir")
	if err := unix.Mount("none", at, "tmpfs", 0, ""); err != nil {
		t.Skip("mounting takes root:", err)
	}
	t.Cleanup(func() { must(t, unix.Unmount(at, 0)) })
	must(t, os.WriteFile(filepath.Join(at, "x"), nil, 0o644))
	for _, path := range []string{"dir", "dir/x", "dir/none"} {
		files, err := existing.Read(t.Context(), root, []pathsafe.Path{parse(t, path)}, nil)
		must(t, err)
		found, err := existing.Find(root, parse(t, path))
		if files[0].Refused == nil || err != nil || found != (existing.Obstacle{Path: "dir", Kind: "another mount or subvolume"}) {
			t.Errorf("%q: %+v, %+v, %v", path, files[0], found, err)
		}
	}
}

// TestReadCounts every byte, one call at a time, and gives files in the order of
// the paths.
func TestReadCounts(t *testing.T) {
	top := t.TempDir()
	var paths []pathsafe.Path
	var want int64
	for i := range 300 {
		name := fmt.Sprintf("%03d", (i*7)%300)
		content := bytes.Repeat([]byte{byte(i)}, i*100)
		must(t, os.WriteFile(filepath.Join(top, name), content, 0o644))
		paths, want = append(paths, parse(t, name)), want+int64(len(content))
	}
	root, err := pathsafe.OpenRoot(top)
	must(t, err)
	defer root.Close()
	var got int64
	files, err := existing.Read(t.Context(), root, paths, func(n int64) { got += n })
	if err != nil || got != want {
		t.Errorf("%d bytes, not %d; %v", got, want, err)
	}
	for i, f := range files {
		if f.Size != int64(i*100) {
			t.Errorf("file %d: %+v", i, f)
		}
	}
}

// TestErrors: what cannot be looked at is an error, and then there is nothing else.
func TestErrors(t *testing.T) {
	root := place(t)
	long := parse(t, strings.Repeat("x", pathsafe.MaxName+1))
	ended, end := context.WithCancel(t.Context())
	end()
	closed, err := root.Reopen()
	must(t, err)
	must(t, closed.Close())
	file, deep := parse(t, "file"), parse(t, "dir/deep/file")
	for name, read := range map[string]func() ([]existing.File, error){
		"too long": func() ([]existing.File, error) {
			return existing.Read(t.Context(), root, []pathsafe.Path{file, long}, nil)
		},
		"ended":  func() ([]existing.File, error) { return existing.Read(ended, root, []pathsafe.Path{file}, nil) },
		"closed": func() ([]existing.File, error) { return existing.Read(t.Context(), closed, []pathsafe.Path{deep}, nil) },
	} {
		if files, err := read(); err == nil || files != nil {
			t.Errorf("%s: %+v, %v", name, files, err)
		}
	}
	for _, find := range []struct {
		root *pathsafe.Dir
		path pathsafe.Path
	}{{root, long}, {root, parse(t, "dir/"+long.String())}, {closed, file}} {
		if found, err := existing.Find(find.root, find.path); err == nil || found != (existing.Obstacle{}) {
			t.Errorf("%q: %+v, %v", find.path, found, err)
		}
	}
}
