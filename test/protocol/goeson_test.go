package protocol

import (
	"os"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
)

// What was found of a candidate goes on with it.

// TestVagueHoldsTheRuns: a candidate that is held for a vague answer is not free
// under another name: the same run as a chain of one.
func TestVagueHoldsTheRuns(t *testing.T) {
	w := newFour(t)
	b := w.preview(t)
	w.refused(t, b.ID, "Sure.", 4, "APPROVAL_VAGUE")
	w.refused(t, w.preview(t, "--chain").ID, exactly, 5, "CANDIDATE_QUARANTINED")
}

// TestRootByAnotherPath: the active savepoint of a root is its own, whichever path
// leads there, so that what is older is seen to be.
func TestRootByAnotherPath(t *testing.T) {
	w := newLate(t)
	want := w.preview(t)
	link := w.root + " link"
	harness.Must(t, os.Symlink(w.root, link))
	w.root = link
	b := w.preview(t)
	if b.Current != want.Current || len(b.Proposed) != len(want.Proposed) {
		t.Errorf("through a link the active savepoint is %s, want %s; %d items are proposed, want %d", b.Current, want.Current, len(b.Proposed), len(want.Proposed))
	}
}

// TestSavepointKeepsScopes: what was restored under a protected scope is under it
// in the savepoint too: one agent's identity layer is not another's project state.
func TestSavepointKeepsScopes(t *testing.T) {
	w := newFull(t)
	w.committed(t, exactly, append(everyScope(), "--agent", "builder")...)
	w.Dir, w.root, w.runs = w.root, t.TempDir(), []string{w.savepoints(t)[0].RunDir}
	w.Must(t, "trust", "remove", validator(1))
	b := w.preview(t, "--project-root", w.Dir, "--agent", "stranger")
	for _, path := range []string{"identity/1.txt", "operator/1.txt", "vault/1.txt"} {
		if has(b.Proposed, path) {
			t.Errorf("%+v is proposed to another agent that asked for nothing", b.item(t, path))
		}
	}
}
