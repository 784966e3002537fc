package action_test

import (
	"os"
	"testing"

	"github.com/spectrumfs/spectrum/restore/action"
)

// TestHasUnfinished: a root has an unfinished commit if its staging directory is there; not that of another
// attempt, and not of a root that is gone.
func TestHasUnfinished(t *testing.T) {
	s := newScene(t, "single")
	if action.HasUnfinished(s.root, firstLeft) {
		t.Error("an empty root")
	}
	s.leave(firstLeft)
	if !action.HasUnfinished(s.root, firstLeft) || action.HasUnfinished(s.root, secondLeft) {
		t.Error("the commit is not found")
	}
	must(t, os.RemoveAll(s.root))
	if action.HasUnfinished(s.root, firstLeft) {
		t.Error("the root is gone")
	}
}
