package verify_test

import (
	"os"
	"strings"
	"testing"
	"unsafe"

	"github.com/spectrumfs/spectrum/test/harness"
	"golang.org/x/sys/unix"
)

// opens records opens of a file. A handle without read access (O_PATH) does not count.
type opens struct {
	fd   int
	path string
}

// watchOpens watches what path names, not what a link leads to.
func watchOpens(t testing.TB, path string) opens {
	t.Helper()
	return watch(t, path, unix.IN_OPEN|unix.IN_ACCESS)
}

// watch watches what path names for these events.
func watch(t testing.TB, path string, events uint32) opens {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	must(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	_, err = unix.InotifyAddWatch(fd, path, events|unix.IN_DONT_FOLLOW)
	must(t, err)
	return opens{fd, path}
}

// count returns how often the file was opened or read until now. Opening a file in a directory does
// not count for the directory.
func (o opens) count(t testing.TB) int {
	t.Helper()
	buf := make([]byte, 64<<10)
	n, err := unix.Read(o.fd, buf)
	if err == unix.EAGAIN {
		return 0
	}
	must(t, err)
	events := 0
	for off := 0; off < n; {
		event := (*unix.InotifyEvent)(unsafe.Pointer(&buf[off]))
		if event.Len == 0 {
			events++
		}
		off += unix.SizeofInotifyEvent + int(event.Len)
	}
	return events
}

func (o opens) none(t testing.TB) {
	t.Helper()
	if n := o.count(t); n > 0 {
		t.Errorf("%s was opened or read (%d events)", o.path, n)
	}
}

// TestWatchSeesOpens is the negative control.
func TestWatchSeesOpens(t *testing.T) {
	dir := t.TempDir()
	must(t, harness.FIFO(dir+"/fifo"))
	must(t, writeFile(dir+"/file", "x"))
	for _, name := range []string{"/fifo", "/file", ""} {
		opened := watchOpens(t, dir+name)
		opened.none(t)
		f, err := os.OpenFile(dir+name, os.O_RDONLY|unix.O_NONBLOCK, 0)
		must(t, err)
		f.Close()
		if opened.count(t) == 0 {
			t.Errorf("%q was opened, and that was not noticed", name)
		}
		fd, err := unix.Open(dir+name, unix.O_PATH, 0)
		must(t, err)
		unix.Close(fd)
		if n := opened.count(t); n > 0 {
			t.Errorf("%q: a handle that cannot read counts (%d)", strings.TrimPrefix(name, "/"), n)
		}
	}
}
