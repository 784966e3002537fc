package attack

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// keptIn are the directories of what was kept in a root, of the user with this number.
func (l *lodger) keptIn(t *testing.T, uid int) (names []string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(l.root, "spectrum-kept-*"))
	harness.Must(t, err)
	for _, path := range all {
		if harness.OwnerOf(t, path) == uid {
			names = append(names, path)
		}
	}
	return names
}

// hold has the test hold a file of the root open for writing.
func (l *lodger) hold(t *testing.T, name string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(l.root, name), os.O_WRONLY, 0)
	harness.Must(t, err)
	t.Cleanup(func() { _ = f.Close() })
}

// TestKeptNameIsTaken: another user takes the name under which something is kept right before it
// is shown, also when the command is killed there. What was kept has another name, which the
// output says.
func TestKeptNameIsTaken(t *testing.T) {
	needRoot(t)
	for _, killed := range []bool{false, true} {
		l := newLodger(t, 0)
		l.hold(t, "z")
		shows := func(c sysfault.Call) bool { return c.Name == "renameat2" && strings.Contains(c.To, "spectrum-kept-") }
		taken := ""
		r := l.p.Run(t, &sysfault.Plan{Match: shows, N: 1, Kill: killed, Before: func(c sysfault.Call) {
			taken = filepath.Join(l.root, filepath.Base(c.To))
			harness.Must(t, os.Chmod(l.root, 0o777))
			if out, err := asAlice(t, "mkdir", taken).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		}}, "snapshot", "restore", l.snapshot)
		if killed {
			r = l.p.Run(t, nil, "recover", l.root)
		}
		kept := l.keptIn(t, 0)
		if r.Status != 0 || taken == "" || len(kept) != 1 || !strings.Contains(r.Stderr, filepath.Base(kept[0])) || strings.Contains(r.Stderr, filepath.Base(taken)+"/") {
			t.Errorf("killed %t: taken %q, kept %q: %v", killed, taken, kept, r)
		}
		if len(kept) == 1 && harness.ReadFile(t, filepath.Join(kept[0], "z")) != "z changed" {
			t.Errorf("not what was kept: %q", kept)
		}
	}
}

// TestKeptAgain: what was kept goes at the next restore of the whole root, which says so, and in
// which snapshot it is. What is held open for writing all the time is kept again, and does not
// get deeper.
func TestKeptAgain(t *testing.T) {
	needRoot(t)
	l := newLodger(t, 0)
	l.hold(t, "z")
	l.p.Must(t, "snapshot", "restore", l.snapshot)
	for range 3 {
		before := l.keptIn(t, 0)
		dry := l.p.Must(t, "snapshot", "restore", "--dry-run", l.snapshot)
		r := l.p.Must(t, "snapshot", "restore", l.snapshot)
		name := filepath.Base(before[0])
		if !strings.Contains(dry.Stdout, "kept by an earlier command: "+name+"; its content would be saved") {
			t.Errorf("no word of %q: %v", name, dry)
		}
		if !strings.Contains(r.Stderr, name+", which an earlier command had kept, was removed; what was in it is in snapshot ") {
			t.Errorf("no word of %q: %v", name, r)
		}
		now := l.keptIn(t, 0)
		if len(now) != 1 || slices.Equal(now, before) || harness.ReadFile(t, filepath.Join(now[0], "z")) != "z changed" {
			t.Errorf("kept %q, before %q", now, before)
		}
	}
}
