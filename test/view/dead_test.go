package view

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"golang.org/x/sys/unix"
)

// large is a tree that takes many requests to read.
func large() sizes { return sizes{"a": 1 << 20, "b": 3<<20 + 1, "c/d": 2 << 20, "c/e": 4097} }

// readersAtOnce are the threads of a child whose server will go away.
const readersAtOnce = 20

// endless are readers that read until something fails.
func endless(v *harness.View, files sizes, hold bool) orders {
	return orders{View: v.Dir, Expect: expectation{Sizes: files}, Threads: readersAtOnce, Hold: hold}
}

// ends requires every reader to have ended with one of these errors.
func ends(t *testing.T, sum tally, readers int, allowed ...syscall.Errno) {
	t.Helper()
	n := 0
	for text, times := range sum.Ends {
		n += times
		if !slices.ContainsFunc(allowed, func(e syscall.Errno) bool { return e.Error() == text }) {
			t.Errorf("%d readers ended with %q", times, text)
		}
	}
	if n != readers {
		t.Errorf("%d of %d readers ended with an error: %v", n, readers, sum.Ends)
	}
}

// TestKillWhileReading kills the server under its readers. They get an error,
// the mount stays dead for all to see, until it is removed by umount.
func TestKillWhileReading(t *testing.T) {
	files := large()
	p := harness.New(t, files.files())
	dir := t.TempDir()
	kills := sample.Of(4, 60, 300)
	for i := range kills {
		v := p.MountOn(t, dir, harness.Mounting{})
		o := endless(v, files, i%2 == 0)
		c := startReaders(t, o)
		c.begin()
		harness.Must(t, v.Server.Kill())
		sum := c.finish()
		c.gone()
		ends(t, sum, o.Threads, unix.ENOTCONN, unix.ECONNABORTED, unix.EIO)
		v.Wait(t)
		wantDead(t, p, v)
		unmount(t, p, dir)
		if v.Mounted(t) {
			t.Fatal("umount leaves a dead view")
		}
	}
	v := p.MountOn(t, dir, harness.Mounting{})
	readAll(t, orders{View: v.Dir, Expect: expectation{Sizes: files}, Threads: 5, Reads: 5})
	t.Logf("%d servers killed under %d readers each", kills, readersAtOnce)
}

// wantDead requires a mount point to be visibly dead, and closed to others.
func wantDead(t *testing.T, p *harness.Project, v *harness.View) {
	t.Helper()
	var st unix.Statfs_t
	if err := unix.Statfs(v.Dir, &st); err != unix.ENOTCONN || !v.Mounted(t) {
		t.Errorf("mounted %v, statfs: %v", v.Mounted(t), err)
	}
	before := mounts(t, v.Dir)
	r := p.Run(t, nil, "mount", p.Runs[0].Dir, v.Dir)
	if r.Status == 0 || !strings.Contains(r.Stderr, "dead") || !strings.Contains(r.Stderr, "spectrum umount") {
		t.Errorf("a mount on a dead view: %v", r)
	}
	if after := mounts(t, v.Dir); after != before {
		t.Errorf("there were %d mounts, and are %d", before, after)
	}
}

// mounts counts what is mounted on a directory, one upon the other.
func mounts(t *testing.T, dir string) int {
	t.Helper()
	table, err := os.ReadFile("/proc/self/mountinfo")
	harness.Must(t, err)
	return strings.Count(string(table), " "+dir+" ")
}

// control is the directory in which the kernel lets this view be watched and
// cut off.
func control(t *testing.T, v *harness.View) string {
	t.Helper()
	all := t.TempDir()
	harness.Must(t, unix.Mount("none", all, "fusectl", 0, ""))
	t.Cleanup(func() { harness.Must(t, unix.Unmount(all, unix.MNT_DETACH)) })
	var st unix.Statx_t
	harness.Must(t, unix.Statx(unix.AT_FDCWD, v.Dir, unix.AT_STATX_DONT_SYNC, 0, &st))
	return filepath.Join(all, fmt.Sprint(st.Dev_minor))
}

// TestCutConnectionEndsServer cuts the connection under the readers: they get an error, the
// server ends by itself, and takes the mount away.
func TestCutConnectionEndsServer(t *testing.T) {
	files := large()
	v := harness.New(t, files.files()).Mount(t, harness.Mounting{})
	abort := filepath.Join(control(t, v), "abort")
	o := endless(v, files, false)
	c := startReaders(t, o)
	c.begin()
	harness.Must(t, os.WriteFile(abort, []byte("1"), 0))
	sum := c.finish()
	// Where the mount is gone before the reader comes again, there is no file.
	ends(t, sum, o.Threads, unix.ENOTCONN, unix.ECONNABORTED, unix.EIO, unix.ENOENT)
	t.Logf("the server ended with status %d", v.Wait(t))
	if v.Mounted(t) {
		t.Error("it is still mounted")
	}
}

// waiting is the number of requests that are not answered.
func waiting(t *testing.T, control string) int {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(control, "waiting"))
	harness.Must(t, err)
	n, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	harness.Must(t, err)
	return n
}

// TestStopped stops a server that is idle: who reads then waits, and can be
// killed; the view can be removed, and a server that goes on can serve. One
// file is closed before that: the kernel waits for the answer to its first
// FLUSH of a mount even when the one who closes is killed.
func TestStopped(t *testing.T) {
	files := large()
	p := harness.New(t, files.files())
	for _, umount := range []bool{false, true} {
		v := p.Mount(t, harness.Mounting{})
		connection := control(t, v)
		output(t, nil, "cat", v.Path("c/e"))
		o := endless(v, files, true)
		c := startReaders(t, o)
		harness.Freeze(t, v.Server.Pid)
		c.tell()
		harness.Eventually(t, "all readers wait", func() bool { return waiting(t, connection) >= 10 })
		harness.Must(t, c.cmd.Process.Kill())
		c.gone()
		if umount {
			unmount(t, p, v.Dir)
			v.Signal(t, unix.SIGCONT)
			if status := v.Wait(t); status != 0 || v.Mounted(t) {
				t.Errorf("unmounted while stopped, the server ends with %d, mounted %v", status, v.Mounted(t))
			}
			continue
		}
		v.Signal(t, unix.SIGCONT)
		readAll(t, orders{View: v.Dir, Expect: expectation{Sizes: files}, Threads: 5, Reads: 5})
	}
}

// TestStoppedUnderLoad stops a server in the middle of its work and kills the readers. It goes
// on, or is killed too: no reader is left in either case.
func TestStoppedUnderLoad(t *testing.T) {
	files := large()
	p := harness.New(t, files.files())
	for _, kill := range []bool{false, true} {
		v := p.Mount(t, harness.Mounting{})
		killed, waits := startReaders(t, endless(v, files, false)), startReaders(t, endless(v, files, true))
		killed.begin()
		waits.begin()
		harness.Freeze(t, v.Server.Pid)
		harness.Must(t, killed.cmd.Process.Kill())
		if kill {
			harness.Must(t, v.Server.Kill())
			v.Wait(t)
			ends(t, waits.finish(), readersAtOnce, unix.ENOTCONN, unix.ECONNABORTED, unix.EIO)
			killed.gone()
			wantDead(t, p, v)
			unmount(t, p, v.Dir)
			continue
		}
		v.Signal(t, unix.SIGCONT)
		killed.gone()
		waits.tell()
		if sum := waits.finish(); len(sum.Ends) > 0 {
			t.Errorf("the other readers ended with %v", sum.Ends)
		}
		waits.gone()
	}
}
