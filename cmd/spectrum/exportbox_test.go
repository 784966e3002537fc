package main

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

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

// TestLeftBoxes: a new box removes those that killed processes left beside it, and nothing that may be
// anything else: a box of a living process, one that is new, a directory with another name or mode, and
// one that another user can have renamed.
func TestLeftBoxes(t *testing.T) {
	const name = boxPrefix + "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
	for what, one := range map[string]struct {
		name          string
		perm, topPerm os.FileMode
		age           time.Duration
		locked, gone  bool
	}{
		"left":       {name, 0o700, 0o755, time.Hour, false, true},
		"sticky":     {name, 0o700, 0o777 | os.ModeSticky, time.Hour, false, true},
		"living":     {name, 0o700, 0o755, time.Hour, true, false},
		"new":        {name, 0o700, 0o755, -time.Hour, false, false},
		"other name": {boxPrefix + "mine", 0o700, 0o755, time.Hour, false, false},
		"other mode": {name, 0o755, 0o755, time.Hour, false, false},
		"renamed":    {name, 0o700, 0o777, time.Hour, false, false},
	} {
		top := t.TempDir()
		at := filepath.Join(top, one.name)
		check(t, os.MkdirAll(at+"/0/deep", 0o755))
		check(t, os.WriteFile(at+"/0/deep/file", nil, 0o644))
		check(t, os.Chmod(at, one.perm))
		check(t, os.Chmod(top, one.topPerm))
		check(t, os.Chtimes(at, time.Time{}, time.Now().Add(-one.age)))
		held, err := pathsafe.OpenRoot(at)
		check(t, err)
		if one.locked {
			check(t, held.TryLock())
		}
		b, err := newBox(top)
		check(t, err)
		check(t, b.make())
		_, err = os.Lstat(at + "/0/deep/file")
		if gone := os.IsNotExist(err); gone != one.gone {
			t.Errorf("%s: gone is %v: %v", what, gone, err)
		}
		// The box of this process is locked.
		other, err := pathsafe.OpenRoot(b.place())
		check(t, err)
		if err := other.TryLock(); !errors.Is(err, pathsafe.ErrLocked) {
			t.Errorf("%s: the new box: %v", what, err)
		}
		check(t, other.Close())
		check(t, b.close())
		check(t, held.Close())
	}
}
