package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/spectrumfs/spectrum/test/tree"
	"golang.org/x/sys/unix"
)

// ReadFile returns what is in a file.
func ReadFile(t testing.TB, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	Must(t, err)
	return string(raw)
}

// FilesIn returns the regular files beneath a directory, by their paths below it.
func FilesIn(t testing.TB, dir string) Files {
	t.Helper()
	found := Files{}
	Must(t, tree.Walk(dir, func(path string, n *tree.Node, err error) error {
		if err == nil && n.Kind() == unix.S_IFREG {
			found[path], err = n.Content()
		}
		return err
	}))
	return found
}

// OpenFiles returns where the descriptors of a process lead, sorted.
func OpenFiles(t testing.TB, pid int) []string {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	fds, err := os.ReadDir(dir)
	Must(t, err)
	var open []string
	for _, fd := range fds {
		if target, err := os.Readlink(filepath.Join(dir, fd.Name())); err == nil { // else closed meanwhile
			open = append(open, target)
		}
	}
	slices.Sort(open)
	return open
}

// SetImmutable sets or clears the flag of a directory or file that stops root too.
func SetImmutable(t testing.TB, name string, on bool) {
	t.Helper()
	const immutable = 0x10 // FS_IMMUTABLE_FL
	f, err := os.Open(name)
	Must(t, err)
	defer f.Close()
	flags, err := unix.IoctlGetInt(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	Must(t, err)
	flags &^= immutable
	if on {
		flags |= immutable
	}
	Must(t, unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags))
}

// CopyAll copies a directory onto another, with everything that stat tells but inodes.
func CopyAll(t testing.TB, from, to string) {
	t.Helper()
	Must(t, os.MkdirAll(to, 0o755))
	if out, err := exec.Command("cp", "-a", from+"/.", to).CombinedOutput(); err != nil {
		t.Fatalf("copy %q: %v: %s", from, err, out)
	}
}

// Flip changes one byte of a file.
func Flip(t testing.TB, path string, off int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	Must(t, err)
	defer func() { Must(t, f.Close()) }()
	b := make([]byte, 1)
	_, err = f.ReadAt(b, off)
	Must(t, err)
	b[0] ^= 1
	_, err = f.WriteAt(b, off)
	Must(t, err)
}

// Exchange exchanges two names again and again until stop is called, which returns how often
// it did. After each, pause is called with how often it did before, if it is not nil.
func Exchange(t testing.TB, a, b string, pause func(swaps int)) (stop func() int) {
	t.Helper()
	quit := make(chan struct{})
	swaps := 0
	var group sync.WaitGroup
	group.Go(func() {
		for !IsClosed(quit) {
			if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil {
				t.Error(err)
				return
			}
			if pause != nil {
				pause(swaps)
			}
			swaps++
		}
	})
	return func() int {
		close(quit)
		group.Wait()
		return swaps
	}
}
