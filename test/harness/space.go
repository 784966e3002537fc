package harness

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// spaceTaker is a file that takes blocks, inodeTakers a directory of files that take
// inodes.
func (v *Volume) spaceTaker() string  { return filepath.Join(v.Path, "takes space") }
func (v *Volume) inodeTakers() string { return filepath.Join(v.Path, "take inodes") }

// PrepareFill makes the places of what takes space and inodes, so that they are there
// before anything is measured.
func (v *Volume) PrepareFill(t testing.TB) {
	t.Helper()
	Must(t, os.Mkdir(v.inodeTakers(), 0o700))
	Must(t, os.WriteFile(v.spaceTaker(), nil, 0o600))
}

// Free returns the free space once all pending work of the file system has ended.
func (v *Volume) Free(t testing.TB) Usage {
	t.Helper()
	f, err := os.Open(v.Path)
	Must(t, err)
	defer f.Close()
	_ = unix.Syncfs(int(f.Fd())) // it may report the failure of an earlier write
	var st unix.Statfs_t
	Must(t, unix.Fstatfs(int(f.Fd()), &st))
	return Usage{int64(st.Bfree) * st.Bsize, int64(st.Ffree)}
}

// DemandFree fails unless as much is free as before, in the end: some file systems
// count freed blocks late.
func (v *Volume) DemandFree(t testing.TB, before Usage) {
	t.Helper()
	near := func(a, b, slack int64) bool { return max(a-b, b-a) <= slack }
	Eventually(t, fmt.Sprintf("%s has %+v free again", v.Name, before), func() bool {
		now := v.Free(t)
		return near(now.Bytes, before.Bytes, v.Slack.Bytes) && near(now.Inodes, before.Inodes, v.Slack.Inodes)
	})
}

// LeaveBytes fills the volume until no block is left, and then gives so many bytes
// back.
func (v *Volume) LeaveBytes(t testing.TB, bytes int64) {
	t.Helper()
	f, err := os.OpenFile(v.spaceTaker(), os.O_WRONLY|os.O_CREATE, 0o600)
	Must(t, err)
	defer f.Close()
	st, err := f.Stat()
	Must(t, err)
	size := st.Size()
	for piece := int64(8 << 20); piece >= 1<<10; {
		err := unix.Fallocate(int(f.Fd()), 0, size, piece)
		switch {
		case err == nil:
			size += piece
		case errors.Is(err, unix.ENOSPC):
			piece /= 2
		case !errors.Is(err, unix.EINTR):
			t.Fatal(err)
		}
	}
	Must(t, f.Truncate(max(size-bytes, 0)))
	Must(t, f.Sync())
}

// LeaveInodes uses inodes up until there is none, and then gives some back.
func (v *Volume) LeaveInodes(t testing.TB, inodes int) {
	t.Helper()
	var made []string
	for i := 0; ; i++ {
		name := filepath.Join(v.inodeTakers(), fmt.Sprint(i))
		f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if errors.Is(err, unix.ENOSPC) {
			break
		}
		Must(t, err)
		Must(t, f.Close())
		made = append(made, name)
	}
	if len(made) < inodes {
		t.Fatalf("%s has %d inodes for %d", v.Name, len(made), inodes)
	}
	for _, name := range made[len(made)-inodes:] {
		Must(t, os.Remove(name))
	}
}

// Release gives all blocks and inodes back.
func (v *Volume) Release(t testing.TB) {
	t.Helper()
	Must(t, os.Truncate(v.spaceTaker(), 0))
	entries, err := os.ReadDir(v.inodeTakers())
	if !errors.Is(err, os.ErrNotExist) {
		Must(t, err)
	}
	for _, e := range entries {
		Must(t, os.Remove(filepath.Join(v.inodeTakers(), e.Name())))
	}
}
