package preview_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/restoretest"
	"github.com/spectrumfs/spectrum/restore/statement"
)

// TestChangesShown: removals have numbers among the outputs, in the order of their paths, and one of a
// name that usually holds secrets is not proposed unasked.
func TestChangesShown(t *testing.T) {
	s := restoretest.ChangeScene(t)
	p := s.Preview()
	text := reportOf(t, p)
	for _, want := range []string{
		"restore R-002 to R-004; do not restore R-001; replace what is at the targets of R-002, which a rollback brings back; remove what is at the targets of R-003, which a rollback brings back",
		"the existing file of 4 bytes is removed; a rollback brings it back",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report does not have %q", want)
		}
	}
}

// TestChangesVoid checks that a change at a removed path voids the approval, and that one elsewhere does not.
func TestChangesVoid(t *testing.T) {
	s := restoretest.ChangeScene(t)
	record := kept(t, s.Preview())
	must(t, os.WriteFile(s.At("elsewhere"), []byte("log"), 0o600))
	if _, err := approve(record, s.Preview(), exactly); err != nil {
		t.Error(err)
	}
	must(t, os.WriteFile(s.At("gone"), []byte("mine"), 0o600))
	if _, err := approve(record, s.Preview(), exactly); !isStale(err) {
		t.Error(err)
	}
}

// TestDivergedDecisions checks that a diverged item is approved only after a decision with =replace.
func TestDivergedDecisions(t *testing.T) {
	s := restoretest.ChangeScene(t)
	must(t, os.WriteFile(s.At("app"), []byte("mine\n"), 0o644))
	p := s.Preview()
	if _, err := approve(kept(t, p), s.Preview(), "Approved: restore items R-002 only. Acknowledge C-001."); err == nil {
		t.Error("what has diverged was approved")
	}
	const conflict = "C-002" // the first is that no validator is pinned
	for verdict, want := range map[statement.Verdict]string{preview.Keep: "gone more", preview.Replace: "app gone more"} {
		s.Asked.Decisions = map[string]statement.Verdict{conflict: verdict}
		p := s.Preview()
		a, err := approve(kept(t, p), s.Preview(), exactly)
		must(t, err)
		parts, err := a.Parts()
		must(t, err)
		var paths []string
		for _, path := range []string{"app", "gone", "more"} {
			if bytes.Contains(parts[0].Changes, []byte(`"`+path+`":`)) {
				paths = append(paths, path)
			}
		}
		if got := strings.Join(paths, " "); got != want {
			t.Errorf("%s approves %s, want %s", verdict, got, want)
		}
		if r := derive(s, a); r.Blocked() != nil != (verdict == preview.Replace) {
			t.Errorf("%s: %v", verdict, r.Blocked())
		} else if a.Overrule(r); r.Blocked() != nil {
			t.Errorf("%s: %v", verdict, r.Blocked())
		}
	}
	s.Asked.Decisions = map[string]statement.Verdict{"C-001": preview.Replace}
	if _, err := preview.New(t.Context(), s.Restore(), s.Request()); err == nil {
		t.Error("a conflict that is about no file was decided as one")
	}
}
