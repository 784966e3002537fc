package harness

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/test/blocklog"
	"github.com/spectrumfs/spectrum/test/sample"
)

// InMemory is the TestMain of a package inside the module that syncs much. Its tests have
// mounts of their own ([blocklog.Main]). In the sample they have their TMPDIR in memory, on
// a tmpfs of their own, where one can be mounted; in a sweep they meet the disk. What they
// leave behind fails the run, but for handles that are open until the process ends.
func InMemory(m *testing.M) int {
	return blocklog.Main(func() int {
		if sample.Now() > sample.Sample {
			return m.Run()
		}
		return inMemory(m)
	})
}

func inMemory(m *testing.M) int {
	return WithMemoryDir(func(dir string) int {
		err := os.Setenv("TMPDIR", dir)
		status := m.Run()
		left, readErr := os.ReadDir(dir)
		if err = errors.Join(err, readErr); err != nil || len(left) > 0 {
			fmt.Fprintf(os.Stderr, "the tests left behind %v in %s: %v\n", left, dir, err)
			return max(status, 1)
		}
		return status
	})
}

// WithMemoryDir runs a function with a new directory, which is on a tmpfs of its own where
// one can be mounted, and removes it then.
func WithMemoryDir(run func(dir string) int) int {
	dir, err := os.MkdirTemp("", "memory")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	mounted := mountMemory(dir)
	status := run(dir)
	if mounted {
		err = syscall.Unmount(dir, syscall.MNT_DETACH)
	}
	if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(status, 1)
	}
	return status
}

// OpenMemoryDir is MemoryDir for a test in whose process handles stay open after it.
func OpenMemoryDir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if mountMemory(dir) {
		t.Cleanup(func() { Must(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	}
	return dir
}

// TempInMemory gives a test a TMPDIR in memory in every tier, where a sync costs nothing.
func TempInMemory(t *testing.T) {
	t.Helper()
	t.Setenv("TMPDIR", OpenMemoryDir(t))
}

func mountMemory(dir string) bool { return syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=0755") == nil }

// Checks makes rapid try so many cases in this test, by the seed of the run, unless
// the command line sets the one or the other.
func Checks(t testing.TB, n int) {
	t.Helper()
	seed := sample.Rand(t).Uint64() | 1 // 0 is a random one
	for name, value := range map[string]string{"rapid.checks": strconv.Itoa(n), "rapid.seed": strconv.FormatUint(seed, 10)} {
		if f := flag.Lookup(name); f.Value.String() == f.DefValue {
			Must(t, flag.Set(name, value))
			t.Cleanup(func() { Must(t, flag.Set(name, f.DefValue)) })
		}
	}
}
