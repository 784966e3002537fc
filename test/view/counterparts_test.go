package view

import (
	"bytes"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/spectrumfs/spectrum/test/harness"
	"golang.org/x/sys/unix"
)

// The counterparts in posix_test.go: what go-fuse's functions test beside
// making things, on a tree that is there already.

// entries reads a directory as the kernel gives it, with offsets.
func entries(t *testing.T, fd int) []fuse.DirEntry {
	t.Helper()
	var all []fuse.DirEntry
	buf := make([]byte, 1000) // several calls
	for {
		n, err := unix.ReadDirent(fd, buf)
		harness.Must(t, err)
		if n == 0 {
			return all
		}
		for rest := buf[:n]; len(rest) > 0; {
			var e fuse.DirEntry
			rest = rest[e.Parse(rest):]
			all = append(all, e)
		}
	}
}

func openFd(t *testing.T, path string, flags int) int {
	t.Helper()
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
	harness.Must(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	return fd
}

// dirSeek goes back to each entry of a directory.
func dirSeek(t *testing.T, w *within) {
	fd := openFd(t, w.Path("many"), unix.O_DIRECTORY)
	all := entries(t, fd)
	if len(all) != 170 {
		t.Fatalf("%d entries", len(all))
	}
	for i := len(all) - 1; i >= 0; i-- {
		to := int64(0)
		if i > 0 {
			to = int64(all[i-1].Off)
		}
		_, err := unix.Seek(fd, to, unix.SEEK_SET)
		harness.Must(t, err)
		if rest := entries(t, fd); !reflect.DeepEqual(rest, all[i:]) {
			t.Errorf("from entry %d on there are %d entries: %v", i, len(rest), rest)
		}
	}
}

func readDirConsistency(t *testing.T, w *within) {
	one, two := openFd(t, w.Path("many"), unix.O_DIRECTORY), openFd(t, w.Path("many"), unix.O_DIRECTORY)
	if a, b := entries(t, one), entries(t, two); !reflect.DeepEqual(a, b) {
		t.Errorf("%v, then %v", a, b)
	}
}

// readDirBasic finds all that is there, and nothing else.
func readDirBasic(t *testing.T, w *within) {
	var want []string
	for name := range w.files {
		if rest, ok := strings.CutPrefix(name, "many/"); ok {
			want = append(want, rest)
		}
	}
	slices.Sort(want)
	for range 3 {
		dir, err := os.Open(w.Path("many"))
		harness.Must(t, err)
		got, err := dir.Readdirnames(-1)
		harness.Must(t, err)
		harness.Must(t, dir.Close())
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func directIO(t *testing.T, w *within) {
	size := int(w.files["file"])
	buf := make([]byte, 256<<10)
	n, err := unix.Read(openFd(t, w.Path("file"), unix.O_DIRECT), buf)
	if err != nil || !bytes.Equal(buf[:n], content("file", 0, size)) {
		t.Errorf("%d bytes, %v", n, err)
	}
}

func fileBasic(t *testing.T, w *within) {
	for _, name := range []string{"file", "down/sub/file", "empty"} {
		got, err := os.ReadFile(w.Path(name))
		if err != nil || !bytes.Equal(got, content(name, 0, int(w.files[name]))) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		var is, source unix.Stat_t
		harness.Must(t, unix.Fstat(openFd(t, w.Path(name), 0), &is))
		harness.Must(t, unix.Stat(w.project.Source(name), &source))
		if is.Size != source.Size || is.Mode != source.Mode&^0o222 || is.Mtim != source.Mtim || is.Nlink != 1 {
			t.Errorf("%s: %+v, the source is %+v", name, is, source)
		}
	}
}

// fileLarge reads past the end, and from the middle.
func fileLarge(t *testing.T, w *within) {
	size := int(w.files["file"])
	f, err := os.Open(w.Path("file"))
	harness.Must(t, err)
	defer f.Close()
	buf := make([]byte, size+1000)
	if n, err := fill(f, buf, 0); err != nil || !bytes.Equal(buf[:n], content("file", 0, size)) {
		t.Errorf("%d bytes, %v", n, err)
	}
	buf = make([]byte, 64<<10+5)
	if n, err := f.ReadAt(buf, 4096+7); err != nil || !bytes.Equal(buf[:n], content("file", 4096+7, len(buf))) {
		t.Errorf("from the middle: %d bytes, %v", n, err)
	}
	for _, off := range []int64{int64(size), int64(size) + 1, 1 << 40, 1 << 62} {
		if n, err := unix.Pread(int(f.Fd()), buf, off); n != 0 || err != nil {
			t.Errorf("at %d: %d bytes, %v", off, n, err)
		}
	}
}

// fdLeak: neither this process nor the server has more open than before.
func fdLeak(t *testing.T, w *within) {
	count := func(pid int) int {
		fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		harness.Must(t, err)
		return len(fds)
	}
	read := func() {
		if _, err := os.ReadFile(w.Path("file")); err != nil {
			t.Error(err)
		}
	}
	read() // the source may stay open
	ours, servers := count(os.Getpid()), count(w.Server.Pid)
	for range 1000 {
		read()
	}
	if now := count(os.Getpid()); now > ours+5 {
		t.Errorf("this process had %d descriptors, and has %d", ours, now)
	}
	if now := count(w.Server.Pid); now > servers+5 {
		t.Errorf("the server had %d descriptors, and has %d", servers, now)
	}
}

// fstatInAnyOrder: stat by handle is that by name, also when many are open.
func fstatInAnyOrder(t *testing.T, w *within) {
	type open struct {
		fd     int
		byName unix.Stat_t
	}
	var all []open
	for name := range w.files {
		o := open{fd: openFd(t, w.Path(name), 0)}
		harness.Must(t, unix.Stat(w.Path(name), &o.byName))
		all = append(all, o)
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, o := range all {
		var st unix.Stat_t
		harness.Must(t, unix.Fstat(o.fd, &st))
		if st != o.byName {
			t.Errorf("%+v, by name %+v", st, o.byName)
		}
	}
}

func lseekHole(t *testing.T, w *within) {
	size := w.files["file"]
	fd := openFd(t, w.Path("file"), 0)
	if off, err := unix.Seek(fd, size/2, unix.SEEK_HOLE); err != nil || off != size {
		t.Errorf("the hole after %d is at %d of %d, %v", size/2, off, size, err)
	}
	if off, err := unix.Seek(fd, size/2, unix.SEEK_DATA); err != nil || off != size/2 {
		t.Errorf("the data after %d is at %d, %v", size/2, off, err)
	}
}

func lseekPastTheEnd(t *testing.T, w *within) {
	fd, size := openFd(t, w.Path("file"), 0), w.files["file"]
	for _, whence := range []int{unix.SEEK_DATA, unix.SEEK_HOLE} {
		for _, off := range []int64{size, size + 1, 1 << 40} {
			if got, err := unix.Seek(fd, off, whence); err != unix.ENXIO {
				t.Errorf("seek %d, whence %d: %d, %v", off, whence, got, err)
			}
		}
	}
}

func openAt(t *testing.T, w *within) {
	dir := openFd(t, w.Path("down"), unix.O_DIRECTORY)
	fd, err := unix.Openat(dir, "sub/file", unix.O_RDONLY, 0)
	harness.Must(t, err)
	defer unix.Close(fd)
	buf := make([]byte, 5000)
	if n, err := unix.Read(fd, buf); err != nil || !bytes.Equal(buf[:n], content("down/sub/file", 0, 4097)) {
		t.Errorf("%d bytes, %v", n, err)
	}
	if fd, err := unix.Openat(dir, "new", unix.O_CREAT|unix.O_RDONLY, 0o600); err != unix.EROFS {
		t.Errorf("descriptor %d, %v", fd, err)
	}
	how := unix.OpenHow{Flags: unix.O_PATH, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
	path, err := unix.Openat2(dir, "sub", &how)
	harness.Must(t, err)
	harness.Must(t, unix.Close(path))
}

func parallelOpen(t *testing.T, w *within) {
	want := content("file", 0, int(w.files["file"]))
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if got, err := os.ReadFile(w.Path("file")); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	}
	all.Wait()
}

// locks: a reader may lock against writers, in all three ways, and others see
// it; a lock to write needs a file that is open to be written.
func locks(t *testing.T, w *within) {
	one, two := openFd(t, w.Path("file"), 0), openFd(t, w.Path("file"), 0)
	for _, cmd := range []int{unix.F_SETLK, unix.F_SETLKW, unix.F_OFD_SETLK} {
		harness.Must(t, unix.FcntlFlock(uintptr(one), cmd, &unix.Flock_t{Type: unix.F_RDLCK}))
		harness.Must(t, unix.FcntlFlock(uintptr(two), cmd, &unix.Flock_t{Type: unix.F_RDLCK}))
		if err := unix.FcntlFlock(uintptr(one), cmd, &unix.Flock_t{Type: unix.F_WRLCK}); err != unix.EBADF {
			t.Errorf("a lock to write: %v", err)
		}
	}
	seen := unix.Flock_t{Type: unix.F_WRLCK}
	harness.Must(t, unix.FcntlFlock(uintptr(openFd(t, w.Path("file"), 0)), unix.F_OFD_GETLK, &seen))
	if seen.Type != unix.F_RDLCK {
		t.Errorf("who asks for the lock sees %+v", seen)
	}
}

// locksOfOthers: flock shuts others out, whatever the file was opened for.
func locksOfOthers(t *testing.T, w *within) {
	one, two := openFd(t, w.Path("file"), 0), openFd(t, w.Path("file"), 0)
	harness.Must(t, unix.Flock(one, unix.LOCK_EX|unix.LOCK_NB))
	if err := unix.Flock(two, unix.LOCK_SH|unix.LOCK_NB); err != unix.EAGAIN {
		t.Errorf("the second lock: %v", err)
	}
	harness.Must(t, unix.Flock(one, unix.LOCK_UN))
	harness.Must(t, unix.Flock(two, unix.LOCK_SH|unix.LOCK_NB))
}

// xattr: an attribute that is not there is not there, and what is listed can be
// read; what changes one is in TestReadOnly.
func xattr(t *testing.T, w *within) {
	for _, name := range []string{"file", "down", "."} {
		path := filepath.Join(w.Dir, name)
		buf := make([]byte, 64<<10)
		if n, err := unix.Getxattr(path, "user.xattrtest", buf); err != unix.ENODATA {
			t.Errorf("%s: %d bytes, %v", name, n, err)
		}
		n, err := unix.Listxattr(path, buf)
		harness.Must(t, err)
		for attr := range strings.SplitSeq(strings.TrimRight(string(buf[:n]), "\x00"), "\x00") {
			if attr == "" {
				continue
			}
			if n, err := unix.Getxattr(path, attr, make([]byte, 64<<10)); err != nil || n == 0 {
				t.Errorf("%s: %s is listed and has %d bytes, %v", name, attr, n, err)
			}
		}
	}
}
