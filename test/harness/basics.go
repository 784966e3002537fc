package harness

import (
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
	for deadline := time.Now().Add(Patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v in vain until %s", Patience, what)
		}
	}
}

// MemoryDir returns a new directory, which is removed when the test ends. It is a tmpfs
// of its own, where the test may mount one; to leave it busy is an error.
func MemoryDir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=0755") == nil {
		t.Cleanup(func() {
			if err := blocklog.Unmount(dir); err != nil {
				t.Error(err)
			}
		})
	}
	return dir
}
