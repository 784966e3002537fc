package rival

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
	"golang.org/x/sys/unix"
)

// lockHolder reads from the kernel which process has the lock of a root, 0 if none.
func lockHolder(t *testing.T, dir string) int {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(filepath.Join(dir, harness.Lock), &st); err != nil {
		return 0
	}
	text, err := os.ReadFile("/proc/locks")
	harness.Must(t, err)
	for line := range strings.Lines(string(text)) {
		field := strings.Fields(line)
		if len(field) > 5 && field[1] == "FLOCK" && strings.HasSuffix(field[5], fmt.Sprintf(":%d", st.Ino)) {
			pid, err := strconv.Atoi(field[4])
			harness.Must(t, err)
			return pid
		}
	}
	return 0
}

// wantClosedOnExec requires that no descriptor of the root, or of its lock, is inherited by what
// the process starts.
func wantClosedOnExec(t *testing.T, pid int, root string) {
	t.Helper()
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	harness.Must(t, err)
	found := 0
	for _, fd := range fds {
		to, err := os.Readlink(fd)
		harness.Must(t, err)
		if to != root && to != filepath.Join(root, harness.Lock) {
			continue
		}
		found++
		n, err := strconv.Atoi(filepath.Base(fd))
		harness.Must(t, err)
		info, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%d", pid, n))
		harness.Must(t, err)
		var flags int
		for line := range strings.Lines(string(info)) {
			_, _ = fmt.Sscanf(line, "flags: %o", &flags)
		}
		if flags&unix.O_CLOEXEC == 0 {
			t.Errorf("descriptor %d, %q, is inherited", n, to)
		}
	}
	if found == 0 {
		t.Errorf("process %d has no descriptor of %q", pid, root)
	}
}

// TestLockAfterKill kills a commit at its calls: the lock is free at once.
func TestLockAfterKill(t *testing.T) {
	t.Parallel()
	p := harness.New(t, outputs())
	var sum harness.Tally
	inWindows(t, sample.Every(t, 31), func(n int) int {
		a := newAttempt(t, p, fmt.Sprint(n))
		r := a.Commit(t, &sysfault.Plan{N: n, Match: a.names, Kill: true, Before: func(sysfault.Call) {
			if lockHolder(t, a.Root) != 0 {
				sum.Add("under the lock")
			}
		}})
		if r.Fault.Fired == 0 {
			return 0
		}
		sum.Add("killed")
		if err := a.Unlocked(); err != nil {
			t.Error(err)
		}
		if r := a.Recover(t, nil); r.Status != 0 {
			t.Error(r)
		}
		if a.failed(t, fmt.Sprintf("killed before call %d", n), r) {
			return 0
		}
		return n
	})
	sum.Demand(t, "under the lock")
}
