package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
