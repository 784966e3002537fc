package action_test

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"golang.org/x/sys/unix"
)

const mib = 1 << 20

// fillOf makes a file of content that no other file has.
func (w *fixture) fillOf(path string, size int) {
	w.t.Helper()
	content := make([]byte, size)
	_, _ = rand.Read(content)
	must(w.t, os.WriteFile(w.at(path), content, 0o644))
}

// smallFixture is a fixture whose directories are in file systems of these sizes; "": in that
// of the one above.
func smallFixture(t *testing.T, base, root, state string) *fixture {
	t.Helper()
	w := newFixture(t)
	mount := func(dir, size string) {
		if size == "" {
			return
		}
		if err := unix.Mount("none", dir, "tmpfs", 0, "mode=700,size="+size); err != nil {
			t.Skip(err)
		}
		t.Cleanup(func() { must(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	}
	mount(w.base, base)
	if base != "" {
		must(t, os.Mkdir(w.root, 0o755))
	}
	must(t, os.Mkdir(filepath.Join(w.base, "state"), 0o700))
	mount(w.root, root)
	mount(filepath.Join(w.base, "state"), state)
	return w
}

// TestNoRoom: where there is no room for a restore, or for the snapshot before it, that is
// known before anything is written, with what is needed and what is free. The dry run says
// the same.
func TestNoRoom(t *testing.T) {
	for name, c := range map[string]struct {
		base, root, state string
		before, after     int // MiB of content in the snapshot, and in the root then
		at                string
	}{
		"the root":           {"", "8m", "64m", 4, 6, "root"},
		"the state":          {"", "64m", "8m", 1, 12, "state"},
		"both are in one":    {"18m", "", "", 4, 6, "root"},
		"nothing to restore": {"", "64m", "8m", 0, 12, "state"},
	} {
		t.Run(name, func(t *testing.T) {
			w := smallFixture(t, c.base, c.root, c.state)
			w.fillOf("big", c.before*mib)
			taken := w.take()
			w.remove("big")
			w.fillOf("filler", c.after*mib)
			how := action.How{Type: audit.Session, Reason: "why"}
			dry := func(in *action.Root) (*action.Restored, error) {
				return action.ForeseeRestore(context.Background(), in, taken, how)
			}
			_, unseen := foreseen(t, w, dry)
			before := w.printsOfRefused()
			_, err := w.restore(taken)
			if diff := cmp.Diff(before, w.printsOfRefused()); diff != "" {
				t.Errorf("it was refused, and has written:\n%s", diff)
			}
			for _, err := range []error{unseen, err} {
				var full *machine.FullError
				if !errors.As(err, &full) || filepath.Base(full.Path) != c.at || full.Need <= full.Free {
					t.Fatalf("%v, want no room at %s", err, c.at)
				}
			}
			w.remove("filler")
			seen, err := foreseen(t, w, dry)
			must(t, err)
			if c.root != "" && (len(seen.Spaces) != 2 || seen.Spaces[0].Need.Bytes != uint64(c.before)*mib || seen.Spaces[1].Free.Bytes == 0) {
				t.Errorf("%+v", seen.Spaces)
			}
			if w.goesOn() == nil {
				t.Error("it halts nothing")
			}
			_, err = w.restore(taken)
			must(t, err)
			must(t, w.goesOn())
		})
	}
}

// printsOfRefused are the prints without the record of a rollback that could not begin: its entry
// in the log, and the mark that halts the root, for which there is room in any case.
func (w *fixture) printsOfRefused() []string {
	must(w.t, os.MkdirAll(filepath.Join(w.base, "state", "barred"), 0o700))
	return w.printsBut("audit.log", "barred")
}

// TestNoRoomToUndo: the snapshot before a rollback has to have room too.
func TestNoRoomToUndo(t *testing.T) {
	w := smallFixture(t, "", "64m", "8m")
	id := w.mustCommit(map[string]string{"out/a": "alpha"})
	w.fillOf("out/a", 12*mib)
	before := w.printsOfRefused()
	_, err := w.undo(id, false)
	var full *machine.FullError
	if !errors.As(err, &full) || full.Need < 12*mib {
		t.Errorf("%v", err)
	}
	if diff := cmp.Diff(before, w.printsOfRefused()); diff != "" {
		t.Errorf("it was refused, and has written:\n%s", diff)
	}
	must(t, os.WriteFile(w.at("out/a"), nil, 0o644))
	_, err = w.undo(id, false)
	must(t, err)
}
