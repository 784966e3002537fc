package disk

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/spectrumfs/spectrum/test/harness"
)

// A volume is a file system of its own, with a ballast that takes space away.
type volume struct {
	kind    string
	path    string // its mount point
	ballast string // a file that takes blocks
	pebbles string // a directory of files that take inodes
	slack   usage  // by how much its counts may differ though nothing is left
}

// usage is what a file system says is free, in bytes and inodes.
type usage struct{ bytes, inodes int64 }

// mkfs says how each kind is made: the size of its image, and the command.
var mkfs = map[string]struct {
	size  int64
	argv  []string
	slack usage
}{
	"ext4":      {32 << 20, []string{"mkfs.ext4", "-q", "-F", "-b", "4096", "-m", "0", "-E", "lazy_itable_init=0"}, usage{}},
	"ext4-1k":   {16 << 20, []string{"mkfs.ext4", "-q", "-F", "-b", "1024", "-m", "0"}, usage{}},
	"ext4-few":  {16 << 20, []string{"mkfs.ext4", "-q", "-F", "-b", "4096", "-m", "0", "-N", "192"}, usage{}},
	"xfs":       {300 << 20, []string{"mkfs.xfs", "-q", "-f"}, usage{256 << 10, 1 << 40}},
	"btrfs":     {128 << 20, []string{"mkfs.btrfs", "-q", "-f"}, usage{2 << 20, 1 << 40}},
	"tmpfs":     {0, nil, usage{}},
	"tmpfs-few": {0, nil, usage{}},
}

// newVolume makes and mounts a file system of this kind.
func newVolume(t *testing.T, kind string) *volume {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	how, ok := mkfs[kind]
	if !ok {
		t.Fatalf("no file system %q", kind)
	}
	dir := t.TempDir()
	v := &volume{kind: kind, path: filepath.Join(dir, "mnt"), slack: how.slack}
	harness.Must(t, os.Mkdir(v.path, 0o755))
	switch kind {
	case "tmpfs":
		v.mount(t, "-t", "tmpfs", "-o", "size=16m", "tmpfs")
	case "tmpfs-few":
		v.mount(t, "-t", "tmpfs", "-o", "size=16m,nr_inodes=200", "tmpfs")
	default:
		image := filepath.Join(dir, "image")
		harness.Must(t, os.WriteFile(image, nil, 0o600))
		harness.Must(t, os.Truncate(image, how.size))
		run(t, append(how.argv, image)...)
		v.mount(t, "-o", "loop", image)
	}
	v.prepare(t)
	return v
}

// prepare makes the places of what takes space and inodes.
func (v *volume) prepare(t *testing.T) {
	t.Helper()
	v.ballast, v.pebbles = filepath.Join(v.path, "ballast"), filepath.Join(v.path, "pebbles")
	harness.Must(t, os.Mkdir(v.pebbles, 0o700))
	harness.Must(t, os.WriteFile(v.ballast, nil, 0o600))
}

func (v *volume) mount(t *testing.T, args ...string) {
	t.Helper()
	run(t, append(append([]string{"mount"}, args...), v.path)...)
	t.Cleanup(func() { unmount(t, v.path) })
}

// unmount ends a mount; the kernel may need a moment to let go of it.
func unmount(t *testing.T, path string) {
	t.Helper()
	var err error
	for range 100 {
		if err = unix.Unmount(path, 0); err == nil || errors.Is(err, unix.EINVAL) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("unmounting %q: %v", path, err)
}

// free is what is free after everything that is under way has ended.
func (v *volume) free(t *testing.T) usage {
	t.Helper()
	f, err := os.Open(v.path)
	harness.Must(t, err)
	defer f.Close()
	_ = unix.Syncfs(int(f.Fd())) // it may tell of somebody else's write that failed
	var st unix.Statfs_t
	harness.Must(t, unix.Fstatfs(int(f.Fd()), &st))
	return usage{int64(st.Bfree) * st.Bsize, int64(st.Ffree)}
}

// wantFree fails unless as much is free as before. The file system is given
// some time: some count freed blocks late.
func (v *volume) wantFree(t *testing.T, before usage) {
	t.Helper()
	var now usage
	for range 100 {
		now = v.free(t)
		if near(now.bytes, before.bytes, v.slack.bytes) && near(now.inodes, before.inodes, v.slack.inodes) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("%s: %d bytes and %d inodes were free, now %d and %d", v.kind, before.bytes, before.inodes, now.bytes, now.inodes)
}

func near(a, b, slack int64) bool { return max(a-b, b-a) <= slack }

// leaveBytes fills the volume until there is no block left, and then gives so
// many bytes back.
func (v *volume) leaveBytes(t *testing.T, bytes int64) {
	t.Helper()
	f, err := os.OpenFile(v.ballast, os.O_WRONLY, 0)
	harness.Must(t, err)
	defer f.Close()
	st, err := f.Stat()
	harness.Must(t, err)
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
	harness.Must(t, f.Truncate(max(size-bytes, 0)))
	harness.Must(t, f.Sync())
}

// leaveInodes uses inodes up until there is none, and then gives some back.
func (v *volume) leaveInodes(t *testing.T, inodes int) {
	t.Helper()
	var made []string
	for i := 0; ; i++ {
		name := filepath.Join(v.pebbles, fmt.Sprint(i))
		f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if errors.Is(err, unix.ENOSPC) {
			break
		}
		harness.Must(t, err)
		harness.Must(t, f.Close())
		made = append(made, name)
	}
	if len(made) < inodes {
		t.Fatalf("%s has %d inodes for %d", v.kind, len(made), inodes)
	}
	for _, name := range made[len(made)-inodes:] {
		harness.Must(t, os.Remove(name))
	}
}

// release gives all blocks and inodes back.
func (v *volume) release(t *testing.T) {
	t.Helper()
	harness.Must(t, os.Truncate(v.ballast, 0))
	entries, err := os.ReadDir(v.pebbles)
	harness.Must(t, err)
	for _, e := range entries {
		harness.Must(t, os.Remove(filepath.Join(v.pebbles, e.Name())))
	}
}

// run runs a tool of the system that has to succeed.
func run(t *testing.T, argv ...string) {
	t.Helper()
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v: %s", argv, err, out)
	}
}
