package attack

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"golang.org/x/sys/unix"
)

// TestDeepTreeIsShort: another user makes a tree that is deeper than any path. What a command
// reports of it is short, and includes how much more there is.
func TestDeepTreeIsShort(t *testing.T) {
	needRoot(t)
	l := newLodger(t, 0)
	top := filepath.Join(l.root, "u")
	t.Cleanup(func() { harness.Must(t, exec.Command("rm", "-rf", filepath.Join(top, "deep")).Run()) })
	at, err := unix.Open(top, unix.O_PATH|unix.O_CLOEXEC, 0)
	name := "deep"
	for range 5000 {
		harness.Must(t, err)
		harness.Must(t, unix.Mkdirat(at, name, 0o755))
		below, openErr := unix.Openat(at, name, unix.O_PATH|unix.O_CLOEXEC, 0)
		_ = unix.Close(at)
		at, err, name = below, openErr, "d"
	}
	_ = unix.Close(at)
	for _, args := range [][]string{
		{"snapshot", "restore", "--dry-run", l.snapshot}, {"snapshot", "restore", l.snapshot}, {"snapshot", "restore", "--json", l.snapshot}, {"snapshot", "take", l.root},
	} {
		r := l.p.Must(t, args...)
		if n := len(r.Stdout) + len(r.Stderr); n > 30_000 {
			t.Errorf("%v: %d bytes", args, n)
		}
	}
	r := l.p.Run(t, nil, "snapshot", "diff", l.snapshot)
	if n := len(r.Stdout) + len(r.Stderr); n > 400_000 || !strings.Contains(r.Stdout, " more; --json names all of them") {
		t.Errorf("%d bytes: exit %d", n, r.Status)
	}
}
