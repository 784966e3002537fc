package protocol

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
)

// TestQuarantineTold: the report, the page and the JSON say of a candidate what the
// quarantine store says, and nothing else does: a vague approval is no finding, and a
// finding that was released holds nothing.
func TestQuarantineTold(t *testing.T) {
	told := func(w *world, rules ...string) {
		t.Helper()
		html := filepath.Join(t.TempDir(), "page.html")
		s := w.show(t)
		w.Must(t, w.previewArgs("--quiet", "--html", html)...)
		raw, err := os.ReadFile(html)
		harness.Must(t, err)
		held := w.held(t, s.Source)
		if !slices.Equal(held, rules) || !slices.Equal(s.rules(), rules) {
			t.Errorf("want %q: the list has %q, the JSON %q", rules, held, s.rules())
		}
		any := len(rules) > 0
		if strings.Contains(s.report, "QUARANTINE") != any || strings.Contains(string(raw), `<h2 id="quarantine">`) != any || strings.Contains(string(raw), "Do not commit.") != any {
			t.Errorf("want %q: report or page say another thing:\n%s", rules, s.report)
		}
		for _, rule := range rules {
			if !strings.Contains(s.report, "| "+rule+" |") || !strings.Contains(string(raw), rule) {
				t.Errorf("%s is not named", rule)
			}
		}
	}
	w := newFour(t)
	id := w.preview(t).ID
	told(w)
	w.refused(t, id, "Looks good.", 4, "APPROVAL_VAGUE")
	told(w, "approval_vague")
	w.Must(t, "quarantine", "release", w.preview(t).Source, "--reason", "meant for another window")
	told(w)

	w = newWorld(t).seal(t, "run-1", harness.Files{"a": "a\n"}, "--constraint", "artifact_status=rejected")
	told(w, "artifact_status")
	before := w.preview(t)
	w.Must(t, "quarantine", "release", before.Source, "--reason", "clarified")
	told(w)
	if after := w.preview(t); after.ID != before.ID {
		t.Error("a release changed what is approved")
	} else if raw, _ := json.Marshal(after.raw["findings"]); !strings.Contains(string(raw), "artifact_status") {
		t.Errorf("the finding is not told any more: %s", raw)
	}
}
