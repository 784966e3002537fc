package report_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/preview/report"
	"github.com/spectrumfs/spectrum/restore/restoretest"
	"github.com/spectrumfs/spectrum/restore/statement"
)

// TestDivergedSummary: a screen of 80 columns says how a file that has diverged is decided, and
// later how it was.
func TestDivergedSummary(t *testing.T) {
	s := restoretest.ChangeScene(t)
	must(t, os.WriteFile(s.At("app"), []byte("mine\n"), 0o644))
	for verdict, want := range map[statement.Verdict]string{
		"":              "C-002 state_conflict: preview with --decide C-002=replace or =keep",
		preview.Keep:    "C-002 state_conflict: decided: keep",
		preview.Replace: "C-002 state_conflict: decided: replace",
	} {
		s.Asked.Decisions = nil
		if verdict != "" {
			s.Asked.Decisions = map[string]statement.Verdict{"C-002": verdict}
		}
		text := summary(t, s.Preview(), report.Screen{Columns: 80, Lines: 24})
		if !strings.Contains(text, want+"\n") {
			t.Errorf("%s: no %q in\n%s", verdict, want, text)
		}
		if is := strings.Contains(text, " files can be restored; 1 has diverged.\n"); is != (verdict == "") {
			t.Errorf("%q: in part: %t\n%s", verdict, is, text)
		}
	}
}

// TestDivergedPage: the page is for those who may read the file that has diverged, whose lines it shows.
func TestDivergedPage(t *testing.T) {
	s := restoretest.ChangeScene(t)
	must(t, os.Chmod(s.RestoreRoot, 0o755))
	if perm := report.Of(s.Preview()).PagePerm(); perm != 0o644 {
		t.Errorf("without a private file: %v", perm)
	}
	must(t, os.WriteFile(s.At("app"), []byte("mine\n"), 0o644))
	must(t, os.Chmod(s.At("app"), 0o600))
	p := s.Preview()
	var page bytes.Buffer
	must(t, report.Of(p).WritePage(t.Context(), &page, "", 0))
	if !strings.Contains(page.String(), "mine") {
		t.Error("the page does not show the file")
	}
	if perm := report.Of(p).PagePerm(); perm != 0o600 {
		t.Errorf("with a private file: %v", perm)
	}
}
