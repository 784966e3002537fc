package protocol

import (
	"slices"
	"strings"
	"testing"
)

// commitReportChecks are those of section 11.
func commitReportChecks() map[string]check {
	return map[string]check{
		"11 the report is returned": commitReturned,
		"11 title": func(t *testing.T, s *stage) {
			if got := readReport(s.commit.report).headings[0]; got != ofLaw("11 title")[0] {
				t.Errorf("%q", got)
			}
		},
		"11.1 approved scope":       approvedScopes,
		"11.2 items restored":       itemsRestored,
		"11.3 items not restored":   itemsNotRestored,
		"11.4 conflicts resolved":   conflictsResolved,
		"11.5 conflicts still open": conflictsOpen,
		"11.6 working context":      workingContext,
		"11.7 new savepoint":        newSavepoint,
	}
}

// commitReturned: the commit says it, and the savepoint keeps the same.
func commitReturned(t *testing.T, s *stage) {
	if got, want := readReport(s.commit.report).headings, headingsOfLaw("# Restore Commit Report"); !slices.Equal(got, want) || len(want) != 8 {
		t.Errorf("%q, want %q", got, want)
	}
	if !strings.Contains(s.commit.reply.Stderr, strings.TrimSpace(s.commit.report)) {
		t.Errorf("the commit says %q, its savepoint %q", s.commit.reply.Stderr, s.commit.report)
	}
	if s.commit.outcome.Statement != s.commit.statement || s.commit.outcome.Preview != s.commit.preview.ID || s.commit.outcome.Source != s.commit.preview.Source {
		t.Errorf("%+v", s.commit.outcome)
	}
}

func approvedScopes(t *testing.T, s *stage) {
	rows := columns(t, readReport(s.commit.report), "11.1 approved scope", "## 1. Approved Restoration Scope")
	if len(rows) != len(scopes) {
		t.Fatalf("%q", rows)
	}
	for n, scope := range scopes {
		want := "no"
		if scope.name == "project_state" || scope.name == "decisions" {
			want = "yes"
		}
		if rows[n][0] != scope.name || rows[n][1] != want {
			t.Errorf("want %s for %s: %q", want, scope.name, rows[n])
		}
	}
}

func itemsRestored(t *testing.T, s *stage) {
	rows := columns(t, readReport(s.commit.report), "11.2 items restored", "## 2. Items Restored")
	want := []string{s.commit.preview.item(t, "decided/1.txt").ID, s.commit.preview.item(t, "state/1.txt").ID}
	if len(rows) != 2 || rows[0][0] != want[0] || rows[1][0] != want[1] || rows[0][3] != "restored" || rows[1][2] != "project_state" {
		t.Errorf("%q, want %q", rows, want)
	}
}

// itemsNotRestored: every other item, with its reason.
func itemsNotRestored(t *testing.T, s *stage) {
	rows := columns(t, readReport(s.commit.report), "11.3 items not restored", "## 3. Items Not Restored")
	all := s.commit.preview.all()
	if len(rows) != len(all)-2 || len(s.commit.outcome.Left) != len(rows) {
		t.Errorf("%d rows, %d items in all", len(rows), len(all))
	}
	for n, row := range rows {
		if !strings.Contains(row[0], s.commit.outcome.Left[n].ID) || row[1] == "" || s.commit.outcome.Left[n].Reason == "" {
			t.Errorf("%q, %+v", row, s.commit.outcome.Left[n])
		}
	}
}

func conflictsResolved(t *testing.T, s *stage) {
	rows := columns(t, readReport(s.commit.report), "11.4 conflicts resolved", "## 4. Conflicts Resolved")
	id := s.commit.preview.about(t, s.commit.preview.item(t, "state/same.txt").ID)
	if len(rows) != 1 || rows[0][0] != id || rows[0][len(rows[0])-1] != "rejected" {
		t.Errorf("%q, want %s", rows, id)
	}
}

func conflictsOpen(t *testing.T, s *stage) {
	rows := columns(t, readReport(s.commit.report), "11.5 conflicts still open", "## 5. Conflicts Still Open")
	id := s.commit.preview.about(t, s.commit.preview.item(t, "state/taken.txt").ID)
	if len(rows) != 1 || rows[0][0] != id || !strings.Contains(rows[0][len(rows[0])-1], "open") {
		t.Errorf("%q, want %s", rows, id)
	}
}

func workingContext(t *testing.T, s *stage) {
	size := int64(len("project_state\n") + len("decisions\n"))
	if c := s.commit.outcome.Context; c.Files != 2 || c.Bytes != size {
		t.Errorf("%+v", c)
	}
	lines := strings.Join(readReport(s.commit.report).sections["## 6. Updated Working Context"], "\n")
	if !strings.Contains(lines, "2 files (24 bytes) are in place") || size != 24 {
		t.Errorf("%q", lines)
	}
}

func newSavepoint(t *testing.T, s *stage) {
	lines := strings.Join(readReport(s.commit.report).sections["## 7. New Savepoint Generated"], "\n")
	if !strings.Contains(lines, s.commit.preview.ID) || !strings.Contains(lines, s.commit.statement) {
		t.Errorf("%q", lines)
	}
	savepointAtOnce(t, s)
	w := s.commit.fixture
	w.Must(t, "verify", "--project-root", w.root, w.savepoints(t)[0].RunDir)
}
