package action_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/snapshot"
)

// TestRetention: a snapshot stays as long as something can go back by it: a commit that stands
// or may stand again, an action that has not ended, with what it goes back to, and a root that
// is halted or holds something unfinished.
func TestRetention(t *testing.T) {
	w := newFixture(t)
	taken := w.take()
	first := w.mustCommit(map[string]string{"a": "one"})
	_, err := w.undo(first, false)
	must(t, err)
	restored, err := w.restore(taken)
	must(t, err)
	snapshots, savepoints := w.snapshots(), w.savepoints()
	all, err := snapshots.List(w.root)
	must(t, err)
	why := func(r action.Records) map[string]string {
		t.Helper()
		keep, err := action.RetentionOf(savepoints, snapshots, r)
		must(t, err)
		found := map[string]string{}
		for _, h := range all {
			found[h.ID] = keep.Of(h)
		}
		return found
	}
	before := func(action string) string {
		for _, h := range all {
			if h.Action == action && h.Kind == snapshot.PreAction {
				return h.ID
			}
		}
		t.Fatalf("there is no snapshot before %s", action)
		return ""
	}
	contains := func(found map[string]string, id, want string) {
		t.Helper()
		if got := found[id]; want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("it stays for %q, want %q", got, want)
		}
	}
	found := why(action.Records{})
	contains(found, taken.ID(), "")
	contains(found, before(first), "was undone, and can come back")
	contains(found, before(restored.Done.Action), "")
	found = why(action.Records{Open: []string{restored.Done.Action}})
	contains(found, before(restored.Done.Action), "has not ended")
	contains(found, taken.ID(), "action "+restored.Done.Action+" has not ended")
	found = why(action.Records{Halted: []string{"x"}, Roots: map[string]string{"x": w.root}})
	contains(found, taken.ID(), "its restore root is halted: attempt x")
	contains(why(action.Records{Halted: []string{"x"}}), taken.ID(), "does not name its restore root")
	third := w.mustCommit(map[string]string{"c": "three"})
	if all, err = snapshots.List(w.root); err != nil {
		t.Fatal(err)
	}
	contains(why(action.Records{}), before(third), "can be undone")
	must(t, os.Mkdir(filepath.Join(w.root, ".spectrum06_staging_11111111-1111-4111-8111-111111111111"), 0o700))
	contains(why(action.Records{}), taken.ID(), "is unfinished in its restore root")
	must(t, os.RemoveAll(w.root))
	contains(why(action.Records{}), taken.ID(), "")
	must(t, os.WriteFile(w.root, nil, 0o600))
	contains(why(action.Records{}), taken.ID(), "cannot determine")
}

// TestRetentionOfEdits: the snapshot that holds edits which a rollback removed stays, and so does that
// from before the newest rollback; an older one without edits does not.
func TestRetentionOfEdits(t *testing.T) {
	w := newFixture(t)
	why := func(done []string, id string) string {
		t.Helper()
		keep, err := action.RetentionOf(w.savepoints(), w.snapshots(), action.Records{RolledBack: done})
		must(t, err)
		all, err := w.snapshots().List(w.root)
		must(t, err)
		for _, h := range all {
			if h.ID != id {
				continue
			}
			if got := keep.Of(h); keep.HoldsEdits(h) != strings.Contains(got, "has contents") || !action.IsBeforeRollback(h) {
				t.Errorf("snapshot %s holds edits: %t; from before a rollback: %t; it stays for %q", id, keep.HoldsEdits(h), action.IsBeforeRollback(h), got)
			}
			return keep.Of(h)
		}
		t.Fatalf("there is no snapshot %s", id)
		return ""
	}
	var done, ids []string
	for _, edit := range []string{"", "edited", ""} {
		commit := w.mustCommit(map[string]string{"a": "one"})
		if edit != "" {
			must(t, os.WriteFile(filepath.Join(w.root, "a"), []byte(edit), 0o600))
		}
		undone, err := w.undo(commit, false)
		must(t, err)
		done, ids = append(done, undone.Done.Action), append(ids, undone.Done.Snapshot.ID())
	}
	w.take()
	for i, want := range []string{"", "it has contents from before rollback " + done[1] + " that no newer snapshot has", "it takes back rollback " + done[2] + ", the newest of its root"} {
		if got := why(done, ids[i]); got != want {
			t.Errorf("snapshot %d stays for %q, want %q", i, got, want)
		}
		if got := why(nil, ids[i]); got != "" {
			t.Errorf("snapshot %d stays for %q without the records of rollbacks", i, got)
		}
	}
	must(t, os.WriteFile(filepath.Join(w.root, "a"), []byte("edited"), 0o600))
	w.take()
	if got := why(done, ids[1]); got != "" {
		t.Errorf("the snapshot with edits that the newest one has stays for %q", got)
	}
}
