package protocol

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
)

// TestQuarantineIsPrinted: the report, the page and the JSON say of a candidate what the
// quarantine store says, and nothing else does: a vague approval is not a finding, and a
// finding that was released holds nothing.
func TestQuarantineIsPrinted(t *testing.T) {
	told := func(w *fixture, rules ...string) {
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

	w = newFixture(t).seal(t, "run-1", harness.Files{"a": "a\n"}, "--constraint", "artifact_status=rejected")
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

// TestDates: a date that cannot be read is unknown and not current, one in the future is
// flagged, and the commit of such a candidate does not hide that another one is stale.
func TestDates(t *testing.T) {
	questions := map[string]any{"restore_scopes": map[string]any{"q": "open_questions"}}
	at := func(w *fixture, completed string) *fixture {
		w.runs = nil
		return w.forge(t, "run-"+strings.Trim(completed, "-:Z"), forgery{files: harness.Files{"a": completed, "q": "?"}, constraints: questions, completed: completed})
	}
	flagged := func(w *fixture, risk string, proposed bool) block {
		t.Helper()
		s := w.show(t)
		if got := s.conflict(t, "stale_context_risk"); !strings.Contains(got.Claim+got.Risk, risk) {
			t.Errorf("want %q: %+v", risk, got)
		}
		if has(s.Proposed, "q") != proposed {
			t.Errorf("%s: an open question is proposed: %t", risk, !proposed)
		}
		return s.block
	}
	w := at(newFixture(t), "yesterday")
	if s := w.show(t); !strings.Contains(s.report, "| Date | unknown |") {
		t.Errorf("the date is not unknown:\n%s", s.report)
	}
	w = at(newFixture(t).pin(t, 1), "2026-03-01T00:00:00Z")
	w.committed(t, exactly)
	for _, completed := range []string{"yesterday", "2999-01-01T00:00:00Z"} {
		w.clear(t)
		at(w, completed)
		b := flagged(w, "it is unknown", false)
		if completed != "yesterday" && !strings.Contains(b.conflict(t, "timing_conflict").Claim, "in the future") {
			t.Errorf("%+v", b.Conflicts)
		}
		w.committed(t, exactly)
		w.clear(t)
		at(w, "2026-01-01T00:00:00Z")
		flagged(w, "would be reverted", false)
	}
}

// TestUnknown: an undeclared value is unknown, in section 13 null, and never no.
func TestUnknown(t *testing.T) {
	s := newFixture(t).seal(t, "run-1", harness.Files{"a": "a\n"}).show(t)
	for _, member := range []string{"identity_review.same_agent_candidate", "identity_review.identity_layer_present", "privacy_review.restricted_context_present"} {
		if got := s.at(t, member); got != nil {
			t.Errorf("%s is %v", member, got)
		}
	}
	for _, line := range []string{"| Identity Bearing | unknown |", "| Privacy Level | unknown |", "- Same-agent restore candidate? unknown"} {
		if !strings.Contains(s.report, line) {
			t.Errorf("no %q", line)
		}
	}
	declared := newFixture(t).pin(t, 1).forge(t, "run-1", forgery{files: harness.Files{"a": "a"}, constraints: map[string]any{
		"agent_id": "builder", "restore_scopes": map[string]any{"a": "decisions"},
	}}).show(t, "--agent", "other")
	for _, member := range []string{"identity_review.same_agent_candidate", "identity_review.identity_layer_present", "privacy_review.restricted_context_present"} {
		if got := declared.at(t, member); got != false {
			t.Errorf("%s is %v", member, got)
		}
	}
	if !strings.Contains(declared.report, "| Identity Bearing | no |") {
		t.Error("what is declared is not known")
	}
}

// TestStatusSpelling: a status counts however it is written: case, white space and characters
// that cannot be seen are no difference.
func TestStatusSpelling(t *testing.T) {
	for _, status := range []string{"Deprecated", "DEPRECATED ", " rejected", "quaran\u200btined", "de\u00adprecated", "\ufeffRejected\u00a0"} {
		w := newFixture(t).pin(t, 1).forge(t, "run-1", forgery{files: harness.Files{"a": "a\n"}, constraints: map[string]any{"artifact_status": status}})
		if s := w.show(t); !slices.Equal(s.rules(), []string{"artifact_status"}) {
			t.Errorf("%q: held for %q", status, s.rules())
		}
	}
}

// TestCommitReportIsTrue: the report of a commit names every file that is there after it, in a
// chain too, and says that nothing else was changed.
func TestCommitReportIsTrue(t *testing.T) {
	for _, runs := range []int{1, 2} {
		w := newFixture(t)
		for n := range runs {
			w.forge(t, []string{"run-1", "run-2"}[n], forgery{files: harness.Files{[]string{"a/x", "b/y"}[n]: "text\n"}, completed: []string{"2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"}[n]})
		}
		w.pin(t, 1)
		before := w.tree(t)
		r := w.Run(t, nil, "commit", "--preview", w.preview(t).ID, "--approve", exactly)
		if r.Status != 0 || len(before) > 1 {
			t.Fatal(r)
		}
		for path := range w.files(t) {
			if !strings.Contains(r.Stderr, `"`+path+`"`) {
				t.Errorf("%d runs: %s is not in the report:\n%s", runs, path, r.Stderr)
			}
		}
		if !strings.Contains(r.Stderr, "the directories above them were changed") {
			t.Errorf("%d runs: %s", runs, r.Stderr)
		}
	}
}

// TestSavepointKeepsTitle: the savepoint of a commit has the title and the project of what
// was restored.
func TestSavepointKeepsTitle(t *testing.T) {
	w := newFixture(t).seal(t, "run-1", harness.Files{"a": "a\n"}, "--constraint", "title=Sprint 12", "--constraint", "project=bridge")
	w.committed(t, exactly)
	found := false
	harness.Must(t, filepath.WalkDir(w.State, func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Base(path) != "TASK_SPEC.json" {
			return err
		}
		raw, err := os.ReadFile(path)
		found = found || strings.Contains(string(raw), `"title":"Sprint 12"`) && strings.Contains(string(raw), `"project":"bridge"`)
		return err
	}))
	if !found {
		t.Error("no savepoint has title and project")
	}
}

// TestNewSavepointIsPrinted: section 7 of the commit report (11.7) is about a savepoint that is
// there: the command names it, it holds the very report, and its parent is the one before.
func TestNewSavepointIsPrinted(t *testing.T) {
	w := newFixture(t).pin(t, 1)
	before := ""
	for n, name := range []string{"quay", "crane"} {
		w.runs = nil
		w.forge(t, name, forgery{files: harness.Files{name + ".md": "x\n"}, completed: fmt.Sprintf("2026-02-0%dT00:00:00Z", n+1)})
		if n > 0 {
			harness.Must(t, os.Remove(w.root+"/RESTORE_MANIFEST.json"))
			harness.Must(t, os.Remove(w.root+"/RESTORE_REPORT.json"))
		}
		r := w.commit(t, w.preview(t).ID, exactly)
		all := w.savepoints(t)
		if r.Status != 0 || len(all) != n+1 || strings.Count(r.Stderr, "\nsavepoint "+all[n].ID+"\n") != 1 {
			t.Fatalf("%d savepoints: %v", len(all), r)
		}
		_, shown := w.latest(t)
		if !strings.Contains(r.Stderr, strings.TrimSpace(shown)) {
			t.Errorf("the savepoint holds another report:\n%s\nand the command printed\n%s", shown, r.Stderr)
		}
		lines := strings.Join(readReport(shown).sections["## 7. New Savepoint Generated"], "\n")
		want := "It is the first of this restore root."
		if n > 0 {
			want = "Its parent is " + before + "."
		}
		if !strings.Contains(lines, "The savepoint that holds this report. "+want) {
			t.Errorf("no %q in %q", want, lines)
		}
		before = all[n].ID
	}
}

// TestContradictionsAreReported: what TASK_SPEC.json says for machines and cannot mean holds the
// candidate (section 12, rule 5), and each such member is named, in report, page and JSON.
func TestContradictionsAreReported(t *testing.T) {
	for name, c := range map[string]struct {
		constraints map[string]any
		named       []string
	}{
		"members that are no text": {map[string]any{"title": 1, "project": nil, "agent_id": []any{"a"}, "privacy_level": map[string]any{}, "transfer_mode": true},
			[]string{"constraints.title is not a string", "constraints.project is not a string", "constraints.agent_id is not a string", "constraints.privacy_level is not a string", "constraints.transfer_mode is not a string"}},
		"a pattern without an output": {map[string]any{"restore_scopes": map[string]any{"pier.md": "decisions", "gone/": "constraints"}}, []string{"gone/"}},
		"a path without an output":    {map[string]any{"restore_item_scopes": map[string]any{"pier.md": "decisions", "tide.md": "decisions"}}, []string{"tide.md"}},
		"no scope":                    {map[string]any{"restore_scopes": map[string]any{"pier.md": "all"}}, []string{`"all"`}},
		"a member of no meaning":      {map[string]any{"status": "fine"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t).pin(t, 1).forge(t, "berth", forgery{files: harness.Files{"pier.md": "x\n"}, constraints: c.constraints})
			html := filepath.Join(t.TempDir(), "page.html")
			s := w.show(t)
			w.Must(t, w.previewArgs("--quiet", "--html", html)...)
			page, err := os.ReadFile(html)
			harness.Must(t, err)
			raw, err := json.Marshal(s.raw["quarantine"])
			harness.Must(t, err)
			if held := slices.Contains(s.rules(), "machine_readable_contradiction"); held != (c.named != nil) {
				t.Fatalf("held: %t, %s", held, raw)
			}
			for _, want := range c.named {
				inJSON := strings.Contains(string(raw), strings.ReplaceAll(want, `"`, `\"`))
				if !strings.Contains(strings.ReplaceAll(s.report, "`", ""), want) || !inJSON || !strings.Contains(string(page), strings.ReplaceAll(want, `"`, "&#34;")) {
					t.Errorf("%s is not named everywhere:\n%s\n%s", want, raw, s.report)
				}
			}
		})
	}
}

// TestDateConflictsName: a conflict on a date names what is wrong with it, and how to go on.
func TestDateConflictsName(t *testing.T) {
	for completed, want := range map[string]string{
		"the day before yesterday":  "a run has a completion date | run \"next\": STATUS.json: completed_at is not an RFC 3339 time",
		"2026-11-22 02:00:00":       "have the run sealed again with a date that can be read, or acknowledge that its date is not known",
		"2199-01-01T00:00:00+14:00": "this candidate was completed in the future, at 2198-12-31T10:00:00Z |",
	} {
		w := newFixture(t).pin(t, 1).forge(t, "next", forgery{files: harness.Files{"a": "x"}, completed: completed})
		if report := strings.ReplaceAll(w.show(t).report, "`", ""); !strings.Contains(report, want) || strings.Contains(report, "in which order") {
			t.Errorf("%s: no %q in\n%s", completed, want, report)
		}
	}
}
