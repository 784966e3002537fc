package action_test

import (
	"context"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"golang.org/x/sys/unix"
)

// fill makes in the root one of each kind of thing.
func (w *fixture) fill() {
	w.t.Helper()
	w.write("f", "f")
	w.write("d/e/g", "g")
	must(w.t, os.Link(w.at("f"), w.at("d/f2")))
	must(w.t, os.Link(w.at("f"), w.at("f3")))
	w.link("d", "l")
	w.link("/nowhere", "dangling")
	w.fifo("p")
	w.write("\xff\xfe é", "odd")
	must(w.t, os.Truncate(w.at("d/e/g"), 200000))
	must(w.t, os.Chtimes(w.at("d/e/g"), unixTime(-5), unixTime(-5)))
}

// change changes something of each.
func (w *fixture) change() {
	w.t.Helper()
	w.remove("f")
	w.remove("l")
	w.write("f", "other")
	w.mkdir("l/inside")
	w.remove("p")
	w.write("d/new", "")
	must(w.t, os.Chmod(w.at("d"), 0o700))
	w.remove("\xff\xfe é")
	w.write("one more", "")
	must(w.t, os.Chmod(w.root, 0o711))
}

// rootOf is what only the root directory has: owner, mode, time and an attribute.
func (w *fixture) rootOf() [5]int64 {
	w.t.Helper()
	var st unix.Stat_t
	must(w.t, unix.Stat(w.root, &st))
	note := make([]byte, 10)
	n, err := unix.Getxattr(w.root, attribute, note)
	if err != nil {
		n = -1
	}
	return [5]int64{int64(st.Uid), int64(st.Gid), int64(st.Mode), st.Mtim.Nano(), int64(n)}
}

// TestRestoreWhole: all of a root comes back, its own metadata too, also where it is a
// mount point. It is the same directory as before, and so is what does not differ.
func TestRestoreWhole(t *testing.T) {
	for _, kind := range []string{"directory", "mount point"} {
		t.Run(kind, func(t *testing.T) {
			w := newFixture(t)
			if kind == "mount point" {
				if err := unix.Mount("tmpfs", w.root, "tmpfs", 0, "mode=755"); err != nil {
					t.Skip(err)
				}
				defer func() { must(t, unix.Unmount(w.root, unix.MNT_DETACH)) }()
			}
			w.fill()
			if os.Geteuid() == 0 {
				must(t, os.Chown(w.root, 12, 34))
			}
			must(t, os.Chmod(w.root, 0o1750))
			_ = unix.Setxattr(w.root, attribute, []byte("n"), 0)
			must(t, os.Chtimes(w.root, unixTime(7), unixTime(7)))
			was, wasRoot, inodes := read(t, w.root), w.rootOf(), w.inodes(".", "d", "d/e/g", "dangling")
			taken := w.take()
			if done, err := w.restore(taken); err != nil || done.Done.Snapshot == nil {
				t.Errorf("nothing has changed: %+v, %v", done, err)
			}
			if got := w.rootOf(); got != wasRoot {
				t.Errorf("nothing has changed, root %v, was %v", got, wasRoot)
			}
			w.change()
			if os.Geteuid() == 0 {
				must(t, os.Chown(w.root, 0, 0))
			}
			_ = unix.Setxattr(w.root, attribute, []byte("other"), 0)
			changed := read(t, w.root)
			done, err := w.restore(taken)
			must(t, err)
			w.same(was, "after the restore")
			if got := w.rootOf(); got != wasRoot {
				t.Errorf("root %v, want %v", got, wasRoot)
			}
			if got := w.inodes(".", "d", "d/e/g", "dangling"); !slices.Equal(got, inodes) {
				t.Errorf("what does not differ was made again: inodes %v, were %v", got, inodes)
			}
			_, err = w.restore(done.Done.Snapshot)
			must(t, err)
			w.same(changed, "after the restore of that before it")
		})
	}
}

// inodes are those of names in the root.
func (w *fixture) inodes(names ...string) (all []uint64) {
	w.t.Helper()
	for _, name := range names {
		var st unix.Stat_t
		must(w.t, unix.Lstat(w.at(name), &st))
		all = append(all, st.Ino)
	}
	return all
}

// TestRestoreRejected: what cannot be made is found before anything is changed.
func TestRestoreRejected(t *testing.T) {
	for name, c := range map[string]struct {
		whole  bool
		before func(w *fixture)
		damage bool
	}{
		"its directory is gone":   {before: func(w *fixture) { w.remove("d") }},
		"its directory is a file": {before: become("d", func(w *fixture) { w.write("d", "") })},
		"its directory is a link": {before: become("d", func(w *fixture) { w.mkdir("e"); w.link("e", "d") })},
		"damaged":                 {whole: true, damage: true, before: func(w *fixture) { w.write("more", "") }},
		"damaged part":            {damage: true, before: func(*fixture) {}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.mkdir("d")
			id := w.mustCommit(map[string]string{"d/f": "the content"})
			taken := w.take()
			undone, err := w.undo(id, false)
			must(t, err)
			if !c.whole {
				taken = undone.Done.Snapshot
			}
			c.before(w)
			if c.damage {
				w.spoil()
			}
			was := read(t, w.root)
			done, err := w.restore(taken)
			var damaged *snapshot.DamageError
			if err == nil || done != nil || errors.As(err, &damaged) != c.damage {
				t.Errorf("%+v, %v", done, err)
			}
			t.Log(err)
			w.same(was, "after the refusal")
			w.enter().leave()
			if _, open := w.log(); open > 0 || len(w.chain()) > 0 {
				t.Errorf("%d open, chain %q", open, w.chain())
			}
		})
	}
}

// spoil changes a byte of every object in the store of snapshots.
func (w *fixture) spoil() {
	w.t.Helper()
	all, err := filepath.Glob(filepath.Join(w.base, "state", "snapshots", "objects", "*", "*"))
	must(w.t, err)
	for _, name := range all {
		raw, err := os.ReadFile(name)
		must(w.t, err)
		raw = slices.Clone(raw)
		if len(raw) > 0 {
			raw[0] ^= 1
		}
		must(w.t, os.Chmod(name, 0o600))
		must(w.t, os.WriteFile(name, raw, 0o600))
		must(w.t, os.Chmod(name, 0o400))
	}
}

// TestRestorePartLinks: hard links between parts of a snapshot, each at its own
// place, are hard links again, and the directories have their times.
func TestRestorePartLinks(t *testing.T) {
	w := newFixture(t)
	id := w.mustCommit(map[string]string{"f": "f", "new/g": "g", "zoo/deep/h": "h"})
	for _, name := range []string{"new/g", "zoo/deep/h"} {
		w.remove(name)
		must(t, os.Link(w.at("f"), w.at(name)))
	}
	for _, name := range []string{"new", "zoo/deep"} {
		must(t, os.Chmod(w.at(name), 0o500))
		must(t, os.Chtimes(w.at(name), unixTime(9), unixTime(9)))
	}
	was := read(t, w.root)
	undone, err := w.undo(id, false)
	must(t, err)
	_, err = w.restore(undone.Done.Snapshot)
	must(t, err)
	w.same(was, "brought back")
	for _, name := range []string{"new", "zoo/deep"} {
		if st, err := os.Stat(w.at(name)); err != nil || !st.ModTime().Equal(unixTime(9)) {
			t.Errorf("%q: %v, %v", name, st.ModTime(), err)
		}
	}
}

// TestRestorePartLinkedOut: where the snapshot has nothing, a link on the way that leaves the
// root, or goes round in a circle, stops no restore: no file of the root is there.
func TestRestorePartLinkedOut(t *testing.T) {
	for name, target := range map[string]string{"out of the root": "/etc", "above the root": "../..", "circle": "d", "inside": "zoo"} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.write("zoo/passwd", "z")
			w.write("f", "before")
			none := w.snapshotBefore(uuid.NewString(), "d/passwd", "d/deep/x", "f")
			w.write("f", "since")
			w.link(target, "d")
			in := w.enter()
			part, err := in.Snapshots().Find(none)
			in.leave()
			must(t, err)
			was := read(t, w.root)
			done, err := w.restore(part)
			must(t, err)
			was["f"].content = "before"
			was["f"].time = read(t, w.root)["f"].time
			w.same(was, "what stands elsewhere stays")
			_, err = w.restore(done.Done.Snapshot)
			must(t, err)
			was["f"].content = "since"
			was["f"].time = read(t, w.root)["f"].time
			w.same(was, "taken back")
		})
	}
}

// TestRestorePartLinkedOutRejected: what the snapshot has cannot come back through a link.
func TestRestorePartLinkedOutRejected(t *testing.T) {
	for _, target := range []string{"/etc", "../..", "d", "zoo"} {
		w := newFixture(t)
		w.write("zoo/passwd", "z")
		w.write("d/passwd", "mine")
		was := w.snapshotBefore(uuid.NewString(), "d/passwd")
		w.remove("d")
		w.link(target, "d")
		in := w.enter()
		part, err := in.Snapshots().Find(was)
		in.leave()
		must(t, err)
		now := read(t, w.root)
		if _, err := w.restore(part); err == nil {
			t.Errorf("%q: restored through the link", target)
		}
		w.same(now, "refused")
	}
}

// TestEmergency: an emergency rollback goes back to the newest snapshot of all of the root
// that a person or a timer has taken and that verifies, never to one before an action, and
// twice to the same one. What is damaged is passed over, and named.
func TestEmergency(t *testing.T) {
	w := newFixture(t)
	goal := func(want *snapshot.Snapshot, passed int) {
		t.Helper()
		in := w.enter()
		defer in.leave()
		to, err := action.Emergency(context.Background(), in.Root, "")
		if len(to.Passed) != passed || (want == nil) != errors.Is(err, action.ErrNoEmergencyTarget) || want != nil && (err != nil || to.Snapshot.ID() != want.ID()) {
			t.Errorf("%+v, %v, want %v and %d damaged", to, err, want, passed)
		}
	}
	goal(nil, 0)
	w.write("f", "good")
	first := w.take()
	goal(first, 0)
	id := w.mustCommit(map[string]string{"new/g": "g"})
	goal(first, 0)
	w.write("f", "better")
	second := w.take()
	_, err := w.undo(id, false)
	must(t, err)
	_, err = w.restore(first)
	must(t, err)
	goal(second, 0)

	f, err := pathsafe.Parse("f")
	must(t, err)
	lost, err := second.At(f)
	must(t, err)
	must(t, os.Remove(filepath.Join(w.base, "state", "snapshots", "objects", hex.EncodeToString(lost.Digest[:1]), hex.EncodeToString(lost.Digest[:]))))
	goal(first, 1)
	manifests, err := filepath.Glob(filepath.Join(w.base, "state", "snapshots", "roots", "*", "*"+first.ID()))
	must(t, err)
	must(t, os.Truncate(manifests[0], 0))
	goal(nil, 2)
}

// TestRestoreTellsEdited: the restore of a snapshot that undoes a commit names the files of it
// that were edited since, also before it is done; what was edited and stays is not named.
func TestRestoreTellsEdited(t *testing.T) {
	w := newFixture(t)
	w.write("mine", "")
	then := w.take()
	w.mustCommit(map[string]string{"new/a": "a", "new/b": "b", "c": "c"})
	w.write("new/a", "edited")
	w.write("c", "edited")
	w.write("mine", "edited")
	in := w.enter()
	seen, err := action.ForeseeRestore(context.Background(), in.Root, then, action.How{Type: audit.Session, Reason: "asked for"})
	in.leave()
	must(t, err)
	got, err := w.restore(then)
	must(t, err)
	for _, changed := range [][]string{seen.Changed, got.Changed} {
		if !slices.Equal(changed, []string{"c", "new/a"}) {
			t.Errorf("edited are %q", changed)
		}
	}
}
