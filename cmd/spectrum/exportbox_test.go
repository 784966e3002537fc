package main

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/test/harness"
	"golang.org/x/sys/unix"
)

// TestBoxIsEmptied: what is left in a box is removed however deep it is, with a few
// descriptors, whatever its names and modes are.
func TestBoxIsEmptied(t *testing.T) {
	const depth = 700
	top := t.TempDir()
	at, err := pathsafe.OpenRoot(top)
	check(t, err)
	dir := at
	for i := range depth {
		for _, name := range []string{"a", boxPrefix + strconv.Itoa(i+1)} {
			check(t, dir.Mkdir(name, 0o755))
		}
		harness.Must(t, unix.Symlinkat("a", dir.Fd(), "link"))
		deeper, err := dir.OpenDir("a")
		check(t, err)
		if dir != at {
			check(t, dir.Chmod(0o111))
			check(t, dir.Close())
		}
		dir = deeper
	}
	check(t, dir.Close())
	var old unix.Rlimit
	check(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &old))
	open, err := os.ReadDir("/proc/self/fd")
	check(t, err)
	check(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(len(open) + 20), Max: old.Max}))
	err = removeAllIn(at)
	check(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &old))
	check(t, err)
	check(t, at.Close())
	if left, err := filepath.Glob(top + "/*"); err != nil || len(left) > 0 {
		t.Errorf("%q is left, %v", left, err)
	}
}
