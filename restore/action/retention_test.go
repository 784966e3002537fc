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
	w := newWorld(t)
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
	contains(why(action.Records{Halted: []string{"x"}}), taken.ID(), "does not know in which restore root")
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
	contains(why(action.Records{}), taken.ID(), "cannot be told")
}
