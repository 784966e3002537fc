package undo

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// twice is a fixture with two commits, one after the other, and a snapshot of the whole root
// after each.
func twice() *command {
	return &command{name: "twice", stands: true, prepare: func(t testing.TB, w *fixture) {
		w.clear(t)
		w.commitIt(t)
		w.target = w.take(t)
		for _, name := range w.site.Project.Targets() {
			harness.Must(t, os.RemoveAll(w.path(name)))
		}
		w.commitIt(t)
		w.take(t)
		w.goOn(t)
	}}
}

// TestBesideSavepoint: the newest savepoint is damaged, or the disk reports an error for it: a
// file is restored from a snapshot all the same, and the root goes back to one.
func TestBesideSavepoint(t *testing.T) {
	w := borrow(t, twice())
	args := [][]string{
		{"snapshot", "restore", "--json", w.target, "out/a.txt"}, {"snapshot", "restore", "--json", w.target}, {"rollback", "--json", "--emergency", w.site.Root},
	}
	for _, args := range args {
		w.reset(t)
		chain := w.glob("savepoints/*/chain/*")
		newest := chain[len(chain)-1]
		harness.Must(t, os.WriteFile(filepath.Join(newest, "TASK_SPEC.json"), []byte("{}"), 0o600))
		if r := w.site.Project.Run(t, nil, args...); r.Status != 0 {
			t.Errorf("damaged: %v", r)
		}
		w.reset(t)
		r := w.site.Project.Run(t, &sysfault.Plan{N: 1, Onward: true, Errno: unix.EIO, Match: func(c sysfault.Call) bool {
			return (c.Name == "read" || c.Name == "pread64") && harness.Inside(c.Path, newest)
		}}, args...)
		if r.Fault.Fired == 0 || r.Status != 0 {
			t.Errorf("not given back by the disk, %d times: %v", r.Fault.Fired, r)
		}
	}
}

// TestRollbackBesideLaterSavepoint: what stands in the place of a later savepoint, and is none,
// does not stop the rollback of the commit before it. It is named, and what the later commit has
// made stays.
func TestRollbackBesideLaterSavepoint(t *testing.T) {
	w := borrow(t, twice())
	for _, option := range []string{"--dry-run", "--with-later", "--json"} {
		w.reset(t)
		chain := w.glob("savepoints/*/chain/*")
		first, later := filepath.Base(chain[0])[len("000001-"):], filepath.Base(chain[1])[len("000002-"):]
		harness.Must(t, os.WriteFile(filepath.Join(chain[1], "STATUS.json"), []byte("{}"), 0o600))
		harness.Must(t, os.Mkdir(filepath.Join(filepath.Dir(chain[1]), "000002-3d3ae5f1-3b3c-4b05-9d43-6d8e3c2d5a10"), 0o700))
		w.give(t)
		before := w.picture(t)
		r := w.site.Project.Run(t, nil, "rollback", option, first)
		if r.Status != 0 || !strings.Contains(r.Stderr, filepath.Base(chain[1])) || !strings.Contains(r.Stderr, "the later commit "+later+" cannot be read") {
			t.Errorf("%v", r)
		}
		if diff := harness.Diff(before, w.picture(t)); option == "--dry-run" && diff != "" {
			t.Errorf("%s: the root is another:\n%s", option, diff)
		}
		if _, err := os.Lstat(w.path("RESTORE_MANIFEST.json")); err != nil {
			t.Errorf("%s: what the later commit made is gone: %v", option, err)
		}
	}
}

// TestDryRunMakesNothing: a dry run without a state directory makes none.
func TestDryRunMakesNothing(t *testing.T) {
	w := borrow(t, twice())
	w.reset(t)
	state := filepath.Join(w.dir, "no state")
	for _, args := range [][]string{{"rollback", "--dry-run", w.commit}, {"rollback", "--dry-run", "--emergency", w.site.Root}, {"snapshot", "restore", "--dry-run", w.target}} {
		r := w.site.Project.Run(t, nil, append([]string{"--state-dir", state}, args...)...)
		if _, err := os.Lstat(state); r.Status != 1 || !strings.Contains(r.Stderr, "\nhint: ") || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v, %v", r, err)
		}
	}
}

// TestRetiredUnread: a retired savepoint that a restore brings back cannot be read once. The
// restore is as any other then, or nothing was done; the log says which.
func TestRetiredUnread(t *testing.T) {
	sweep(t, part(), sample.Thin(t, 17, 3), func(t *testing.T, w *fixture, n int) bool {
		r := w.site.Project.Run(t, &sysfault.Plan{N: n, Errno: unix.EIO, Match: func(c sysfault.Call) bool {
			return w.looking(c) && strings.Contains(c.Path, "/retired")
		}}, w.args...)
		if r.Fault.Fired == 0 {
			return false
		}
		var sum harness.Tally
		if err := errors.Join(wellSaid(r), w.afterError(t, &sum, r, harness.Fault{Errno: unix.EIO})); err != nil {
			t.Errorf("%d: %v\n%v", n, r, err)
		}
		return true
	})
}
