package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// Freeze stops a process with SIGSTOP, and returns when each of its threads has stopped:
// the signal returns before, and a thread that still runs may take one more request. Who
// sent that request waits for the answer even when he is killed.
func Freeze(t testing.TB, pid int) {
	t.Helper()
	Must(t, syscall.Kill(pid, syscall.SIGSTOP))
	Eventually(t, "the process is stopped", func() bool {
		stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		return err == nil && len(stats) > 0 && !slices.ContainsFunc(stats, func(path string) bool {
			raw, err := os.ReadFile(path)
			_, state, ok := strings.Cut(string(raw), ") ") // the name of the program may have anything before
			return err != nil || !ok || !strings.HasPrefix(state, "T")
		})
	})
}
