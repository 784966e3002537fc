package report_test

import (
	"html"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/restore/preview/report"
)

// TestUndoing: the report and the page say how a commit can be undone, what the snapshot
// before it holds, and how long that is kept (rollback contract, section 10.1), before the
// line that ends them.
func TestUndoing(t *testing.T) {
	s := bareScene(t)
	s.Add("run-1", map[string]string{"a": "alpha"})
	p := s.Preview()
	for what, text := range map[string]string{"report": reportOf(t, p), "page": html.UnescapeString(pageOf(t, p))} {
		at := 0
		for _, want := range append(slices.Clone(report.Undoing), "No restoration will occur") {
			next := strings.Index(text[at:], want)
			if next < 0 {
				t.Fatalf("the %s does not say, in its place: %s", what, want)
			}
			at += next
		}
		for _, command := range []string{"spectrum rollback COMMIT_ID", "spectrum rollback --dry-run COMMIT_ID", "spectrum snapshot prune"} {
			if !strings.Contains(text, command) {
				t.Errorf("the %s does not name %q", what, command)
			}
		}
	}
}
