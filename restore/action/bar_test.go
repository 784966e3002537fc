package action_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
	"golang.org/x/sys/unix"
)

// TestIsBarring: mistakes of the person, and commands that wait for another one, halt nothing. Every
// other reason does, also one that is not known.
func TestIsBarring(t *testing.T) {
	undone := errors.New("it could not be undone")
	for name, err := range map[string]error{
		"nothing":              nil,
		"interrupted":          context.Canceled,
		"busy":                 &staging.BusyError{},
		"overtaken":            staging.ErrOvertaken,
		"later commits":        &action.LaterError{},
		"nothing there":        action.ErrNothingThere,
		"another path":         snapshot.ErrNotCovered,
		"elsewhere":            action.ErrElsewhere,
		"another root":         &action.OtherRootError{},
		"foreign":              &action.ForeignError{},
		"not to be opened":     fmt.Errorf("%w: %w", action.ErrNoRoot, fs.ErrPermission),
		"gone":                 fmt.Errorf("%w: %w", action.ErrNoRoot, fs.ErrNotExist),
		"never a snapshot":     action.ErrNeverTaken,
		"to be ended first":    action.ErrUnended,
		"halted":               &staging.HaltError{Err: unix.EIO},
		"halted by itself":     &staging.Error{Attempt: "x", Err: unix.EIO, Rollback: undone},
		"stopped in the midst": &staging.Error{Attempt: "x", Err: context.Canceled},
	} {
		if err != nil {
			err = fmt.Errorf("a rollback: %w", err)
		}
		if action.IsBarring(err) {
			t.Errorf("%s: %v halts", name, err)
		}
	}
	for name, err := range map[string]error{
		"unknown":             undone,
		"no room":             unix.ENOSPC,
		"a bad disk":          unix.EIO,
		"read-only":           unix.EROFS,
		"not allowed":         fs.ErrPermission,
		"not a directory":     fmt.Errorf("%w: %w", action.ErrNoRoot, unix.ENOTDIR),
		"a damaged snapshot":  &snapshot.DamageError{Err: fs.ErrNotExist},
		"a damaged savepoint": &action.UnreadError{Err: &savepoint.DamageError{Err: fs.ErrNotExist}},
		"no snapshot":         action.ErrNoSnapshot,
		"no rollback":         action.ErrNoEmergencyTarget,
		"no rest":             snapshot.ErrUnsettled,
		"it failed":           &staging.Error{Attempt: "x", Err: unix.EIO},
		"it is unfinished":    &action.UnfinishedError{Of: &staging.HaltError{Err: &staging.Error{Rollback: undone}}},
	} {
		if !action.IsBarring(fmt.Errorf("a rollback: %w", err)) {
			t.Errorf("%s: %v halts nothing", name, err)
		}
	}
}

// goesOn enters the root to preview and commit there.
func (w *fixture) goesOn() error {
	w.t.Helper()
	state := w.state()
	defer state.Close()
	key, err := state.JournalKey()
	must(w.t, err)
	in, _, err := action.Enter(context.Background(), w.root, action.Entry{Key: key, Halts: state, Bars: state, Savepoints: w.savepoints(), Snapshots: w.snapshots(), State: state.Root(), Previewed: true})
	in.Leave()
	return err
}

// TestBarred: a rollback that could not be carried out halts preview, commit and prune of the
// root, and no rollback; the first that succeeds ends that. The restore of a part of a snapshot
// does neither.
func TestBarred(t *testing.T) {
	w := newFixture(t)
	first := w.mustCommit(map[string]string{"a": "alpha"})
	w.write("b", "kept")
	taken := w.take()
	w.write("b", "other")
	must(t, w.goesOn())
	if _, err := w.undo("11111111-1111-4111-8111-111111111111", false); err == nil {
		t.Fatal("an unknown commit was undone")
	}
	must(t, w.goesOn())
	objects := filepath.Join(w.base, "state", "snapshots", "objects")
	must(t, os.Rename(objects, objects+".away"))
	must(t, os.Mkdir(objects, 0o700))
	if _, err := w.restoreSome(taken, w.some("b")); err == nil {
		t.Fatal("a content came from nowhere")
	}
	must(t, w.goesOn())
	if _, err := w.restore(taken); err == nil {
		t.Fatal("a content came from nowhere")
	}
	var barred *action.BarredError
	if err := w.goesOn(); !errors.As(err, &barred) || barred.Root != w.root || len(action.HaltsOf(err)) > 0 {
		t.Fatalf("it is not halted: %v", err)
	}
	must(t, os.RemoveAll(objects))
	must(t, os.Rename(objects+".away", objects))
	_, err := w.restoreSome(taken, w.some("b"))
	must(t, err)
	if err := w.goesOn(); !errors.As(err, &barred) {
		t.Fatalf("the restore of a part has ended the halt: %v", err)
	}
	w.take()
	_, err = w.undo(first, false)
	must(t, err)
	must(t, w.goesOn())
	kinds, open := w.log()
	if open > 0 || kinds[len(kinds)-1] != string(audit.RolledBack) {
		t.Errorf("%q, %d open", kinds, open)
	}
}

// markOf is the file of the mark of the root.
func (w *fixture) markOf() string {
	w.t.Helper()
	all, err := filepath.Glob(filepath.Join(w.base, "state", "barred", "*"))
	must(w.t, err)
	if len(all) != 1 {
		w.t.Fatalf("marks: %q", all)
	}
	return all[0]
}

// TestBarStays: a mark that cannot be removed fails no rollback. All of it is recorded, and the
// halt stays.
func TestBarStays(t *testing.T) {
	for name, inPlace := range map[string]func(w *fixture, mark string) string{
		"a directory": func(w *fixture, mark string) string {
			must(w.t, os.Remove(mark))
			must(w.t, os.Mkdir(mark, 0o700))
			return mark
		},
		"a file for all": func(w *fixture, mark string) string {
			all := filepath.Dir(mark)
			must(w.t, os.RemoveAll(all))
			must(w.t, os.WriteFile(all, nil, 0o600))
			return all
		},
		"a link for all": func(w *fixture, mark string) string {
			all := filepath.Dir(mark)
			must(w.t, os.Rename(all, all+".else"))
			must(w.t, os.Symlink(all+".else", all))
			return all
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			first := w.mustCommit(map[string]string{"a": "alpha"})
			state := w.state()
			must(t, state.Bar(w.root, first, "session", "a test"))
			must(t, state.Close())
			at := inPlace(w, w.markOf())
			_, err := w.undo(first, false)
			must(t, err)
			if len(w.stays) != 1 {
				t.Fatalf("told %v", w.stays)
			}
			var stays *statedir.BarError
			if !errors.As(w.stays[0], &stays) || stays.Path != at {
				t.Errorf("told %v, not of %q", w.stays[0], at)
			}
			kinds, open := w.log()
			if open > 0 || kinds[len(kinds)-1] != string(audit.RolledBack) || len(w.chain()) > 0 {
				t.Errorf("%q, %d open, %q", kinds, open, w.chain())
			}
			var barred *action.BarredError
			if err := w.goesOn(); !errors.As(err, &barred) {
				t.Errorf("it is not halted: %v", err)
			}
			must(t, os.Rename(at, at+".bad"))
			must(t, w.goesOn())
		})
	}
}
