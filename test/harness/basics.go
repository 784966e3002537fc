package harness

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/test/blocklog"
)

// Must ends the test on an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Eventually waits until a condition holds. A test that waits longer than Patience
// fails.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	if !Await(Patience, holds) {
		t.Fatalf("waited %v in vain until %s", Patience, what)
	}
}

// Await waits until a condition holds, and reports whether it did within this time.
func Await(patience time.Duration, holds func() bool) bool {
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// IsClosed reports whether a channel that nothing is sent on was closed.
func IsClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// MemoryDir returns a new directory, which is removed when the test ends. It is a tmpfs
// of its own, where the test may mount one; to leave it busy is an error.
func MemoryDir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if mountMemory(dir) {
		t.Cleanup(func() {
			if err := blocklog.Unmount(dir); err != nil {
				t.Error(err)
			}
		})
	}
	return dir
}

// ShortDir returns a temporary directory with a short path, for sockets, whose paths may have
// 107 bytes: in /tmp where TMPDIR is long.
func ShortDir(t testing.TB) string {
	t.Helper()
	parent := os.TempDir()
	if len(parent) > 48 {
		parent = "/tmp"
	}
	dir, err := os.MkdirTemp(parent, "s")
	Must(t, err)
	t.Cleanup(func() { Must(t, os.RemoveAll(dir)) })
	return dir
}

// Mount mounts a file system until the test ends. Where the target does not exist it makes a
// directory.
func Mount(t testing.TB, source, target, kind string, flags uintptr, options string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	if _, err := os.Lstat(target); errors.Is(err, fs.ErrNotExist) {
		Must(t, os.MkdirAll(target, 0o755))
	}
	Must(t, syscall.Mount(source, target, kind, flags, options))
	t.Cleanup(func() {
		if err := syscall.Unmount(target, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount %q: %v", target, err)
		}
	})
}

// DeadMount mounts what a killed FUSE server leaves.
func DeadMount(t testing.TB, target string) {
	t.Helper()
	fuse, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	Must(t, err)
	defer fuse.Close()
	Mount(t, "dead", target, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fuse.Fd()))
	Must(t, fuse.Close())
	if _, err := os.Stat(target); !errors.Is(err, syscall.ENOTCONN) {
		t.Fatalf("the mount is not dead: %v", err)
	}
}
