package pathsafe

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/test/sysfault"
)

const lockEnv = "PATHSAFE_TEST_LOCK"

// TestLockInterrupted: a lock whose flock a signal interrupts is taken by the next call. On a local
// file system the kernel never interrupts one that does not wait, so EINTR is injected.
func TestLockInterrupted(t *testing.T) {
	if dir := os.Getenv(lockEnv); dir != "" {
		d, err := OpenRoot(dir)
		must(t, err)
		defer d.Close()
		must(t, d.TryLock())
		must(t, d.TryLockShared())
		return
	}
	if runtime.GOARCH != "amd64" {
		t.Skip("system calls are injected on amd64 only")
	}
	dir := t.TempDir()
	for n := 1; n <= 2; n++ {
		r, err := sysfault.Run(t.Context(), sysfault.Plan{
			N: n, Errno: syscall.EINTR, Only: []string{"flock"}, Match: func(c sysfault.Call) bool { return c.Path == dir },
			Env: []string{lockEnv + "=" + dir, "GORACE=atexit_sleep_ms=0"},
		}, os.Args[0], "-test.run=^TestLockInterrupted$")
		must(t, err)
		if out := fmt.Sprintf("%s%s", r.Stdout, r.Stderr); r.Fired != 1 || r.Status != 0 || !strings.Contains(out, "PASS") {
			t.Errorf("flock %d: acted on %d calls, status %d: %s", n, r.Fired, r.Status, out)
		}
	}
}
