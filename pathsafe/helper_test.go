package pathsafe

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"golang.org/x/sys/unix"
)

var walkers = []struct {
	name string
	w    walker
}{
	{"openat2", kernelWalker{}},
	{"components", componentWalker{}},
}

// eachWalker runs f with both ways to walk; the machine must have openat2.
func eachWalker(t *testing.T, f func(t *testing.T, w walker)) {
	t.Helper()
	if chooseWalker() != (kernelWalker{}) {
		t.Fatal("openat2 does not work here: half of the tests would test nothing")
	}
	for _, c := range walkers {
		t.Run(c.name, func(t *testing.T) { f(t, c.w) })
	}
}

func openDir(t testing.TB, path string, w walker) *Dir {
	t.Helper()
	d, err := OpenRoot(path)
	if err != nil {
		t.Fatal(err)
	}
	d.w = w
	t.Cleanup(func() { _ = d.Close() }) // some tests close it themselves
	return d
}

func mustParse(t testing.TB, s string) Path {
	t.Helper()
	p, err := Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var must = harness.Must

// plant makes a tree: "a/b/" is a directory, "l -> x" a link, "p|" a FIFO, anything else a file
// with its own name as content.
func plant(t testing.TB, root string, entries ...string) {
	t.Helper()
	for _, e := range entries {
		name, target, link := strings.Cut(e, " -> ")
		full := filepath.Join(root, strings.TrimRight(name, "/|"))
		must(t, os.MkdirAll(filepath.Dir(full), 0o755))
		switch {
		case link:
			must(t, os.Symlink(target, full))
		case strings.HasSuffix(name, "/"):
			must(t, os.MkdirAll(full, 0o755))
		case strings.HasSuffix(name, "|"):
			must(t, unix.Mkfifo(full, 0o644))
		default:
			must(t, os.WriteFile(full, []byte(name), 0o644))
		}
	}
}

// reason turns an error into the word the callers decide on.
func reason(err error) string {
	for _, r := range []struct {
		is   error
		word string
	}{
		{nil, "ok"}, {ErrEscape, "escape"}, {ErrSymlink, "symlink"}, {ErrNotRegular, "not regular"},
		{ErrCrossesMount, "mount"}, {ErrTooLong, "too long"}, {ErrLocked, "locked"},
		{ErrTraversal, "traversal"}, {ErrNullByte, "null"}, {fs.ErrNotExist, "missing"}, {fs.ErrExist, "exists"},
	} {
		if errors.Is(err, r.is) {
			return r.word
		}
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return unix.ErrnoName(errno)
	}
	return err.Error()
}

func readAll(t testing.TB, f *os.File) string {
	t.Helper()
	defer f.Close()
	b, err := io.ReadAll(f)
	must(t, err)
	return string(b)
}

// asNobody runs f without root's power over files. The user id for file access
// is the thread's.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	must(t, unix.Setfsuid(65534))
	f()
	must(t, unix.Setfsuid(0))
}

// opens counts how often the inode behind path is opened for I/O from now on.
func opens(t *testing.T, path string) func() int {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	must(t, err)
	t.Cleanup(func() { must(t, unix.Close(fd)) })
	_, err = unix.InotifyAddWatch(fd, path, unix.IN_OPEN|unix.IN_DONT_FOLLOW)
	must(t, err)
	return func() int {
		buf := make([]byte, 64*1024)
		n, err := unix.Read(fd, buf)
		if err == unix.EAGAIN {
			return 0
		}
		must(t, err)
		return n / unix.SizeofInotifyEvent
	}
}
