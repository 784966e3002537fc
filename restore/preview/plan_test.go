package preview_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/preview/report"
	"github.com/spectrumfs/spectrum/restore/scope"
)

// approved are the items that a statement approves.
func approved(t testing.TB, p *preview.Preview, text string) string {
	t.Helper()
	a, err := approve(kept(t, p), p, text)
	if err != nil {
		t.Errorf("%.300q: %v", text, err)
		return ""
	}
	var paths []string
	for _, part := range partsOf(t, a) {
		for _, o := range part.Outputs {
			paths = append(paths, o.Path.String())
		}
	}
	return strings.Join(paths, " ")
}

// TestRecommendedIsShort: a recommended statement fits on a terminal's line, however many
// files are in the way of however many others, and approves what nothing is in the way of.
func TestRecommendedIsShort(t *testing.T) {
	const files = 2400
	for _, c := range []struct {
		name  string
		scope func(n int) string // of file n, "" for none declared
		taken func(n int) bool
		asked []scope.Scope
	}{
		{"every other file is there", func(int) string { return "" }, func(n int) bool { return n%2 == 0 }, nil},
		{"and every third is of no interest", func(n int) string { return []string{"assumptions", "", ""}[n%3] }, func(n int) bool { return n%2 == 0 }, nil},
		{"and every third is a secret", func(n int) string { return []string{"restricted_context", "decisions", ""}[n%3] }, func(n int) bool { return n%2 == 0 },
			[]scope.Scope{scope.ProjectState, scope.Decisions, scope.RestrictedContext}},
		{"a scope is there as a whole", func(n int) string { return []string{"decisions", ""}[n%2] }, func(n int) bool { return n%2 == 0 }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := bareScene(t)
			outputs, scopes := map[string]string{}, map[string]any{}
			var want []string
			for n := range files {
				name := fmt.Sprintf("f%04d", n)
				outputs[name] = "new"
				if c.scope(n) != "" {
					scopes[name] = c.scope(n)
				}
				if c.taken(n) {
					must(t, os.WriteFile(s.At(name), []byte("old"), 0o644))
				} else if c.scope(n) != "assumptions" && c.scope(n) != "restricted_context" {
					want = append(want, name)
				}
			}
			s.Add("run-1", outputs)
			s.Claim(map[string]any{scope.Exact: scopes})
			s.Asked.Scopes = c.asked
			p := s.Preview()
			if got := p.Recommended(); len(got) > 240 {
				t.Errorf("it has %d characters: %.200s", len(got), got)
			} else if approved(t, p, got) != strings.Join(want, " ") {
				t.Errorf("%s approves another set", got)
			}
			if report := reportOf(t, p); !strings.Contains(report, "\n    "+p.Recommended()+"\n") {
				t.Error("the report does not recommend it")
			}
		})
	}
}

// secretScene makes two plain files and two secrets, all of which are asked for.
func secretScene(t testing.TB) *scene {
	s := bareScene(t)
	s.Add("run-1", map[string]string{"a": "a", "b.pem": "b", "c.key": "c", "d": "d"})
	s.Asked.Scopes = []scope.Scope{scope.ProjectState, scope.RestrictedContext}
	return s
}

// TestExactlyIsThePlan: "exactly as proposed" is the plan that is printed. What may hold
// secrets is left out by it, and restored where a statement names it: a range, or another
// scope, does not.
func TestExactlyIsThePlan(t *testing.T) {
	p := secretScene(t).Preview()
	if p.Recommended() != preview.Exactly {
		t.Errorf("recommended: %q", p.Recommended())
	}
	report := reportOf(t, p)
	for _, want := range []string{
		"Recommended: restore R-001 and R-004; leave out R-002 and R-003, which may hold secrets", "replace nothing; remove nothing; acknowledge C-001.",
		"derived bundle", "A view of the candidate shows more than is restored.",
	} {
		if !strings.Contains(report, want) {
			t.Errorf("no %q in\n%s", want, report[strings.Index(report, "## 10."):])
		}
	}
	for text, want := range map[string]string{
		preview.Exactly: "a d",
		"Approved: restore items R-001 to R-004 only. Acknowledge C-001.":                                      "a d",
		"Approved: restore items R-001 to R-002, R-003, and R-004 only. Acknowledge C-001 and C-003.":          "a c.key d",
		"Approved: restore items R-001, R-002, R-003, and R-004 only. Acknowledge C-001 to C-003.":             "a b.pem c.key d",
		"Approved: restore project state only. Acknowledge C-001.":                                             "a d",
		"Approved: restore project state and restricted context only. Acknowledge C-001 to C-003.":             "a b.pem c.key d",
		"Approved: restore restricted context only. Do not restore item R-002. Acknowledge C-001 to C-003.":    "c.key",
		"Approved: restore items R-001 to R-004 only. Do not restore restricted context items. Resolve C-001.": "a d",
	} {
		if got := approved(t, p, text); got != want {
			t.Errorf("%q approves %q, want %q", text, got, want)
		}
	}
	if _, err := approve(kept(t, p), p, "Approved: restore items R-002 to R-003 only. Acknowledge C-001 to C-003."); !errors.Is(err, preview.ErrUnfit) {
		t.Errorf("a range of secrets: %v", err)
	}
}

// TestExactlyAcknowledges: what the plan does not name is not acknowledged by it: the
// conflicts on secrets that it leaves out stay open.
func TestExactlyAcknowledges(t *testing.T) {
	s := secretScene(t)
	r := s.Restore()
	p, err := preview.New(t.Context(), r, s.Request())
	must(t, err)
	a, err := approve(kept(t, p), p, preview.Exactly)
	must(t, err)
	if a.Whole() {
		t.Fatal("nothing is left out")
	}
	part := bareScene(t)
	part.RestoreRoot = s.RestoreRoot
	part.Add("run-1", map[string]string{"a": "a", "d": "d"})
	for _, name := range []string{"a", "d"} {
		was, err := os.Stat(filepath.Join(s.Root, name))
		must(t, err)
		must(t, os.Chtimes(filepath.Join(part.Root, name), was.ModTime(), was.ModTime()))
	}
	done, err := a.Accept(part.Restore(), state(t))
	must(t, err)
	report := string(report.Commit(done.Outcome()))
	for _, want := range []string{
		"| C-001 | authority_conflict |", "\n| R-002 `\"b.pem\"` | operator_rejected; it may hold secrets, and the approval does not name it |",
		"| C-002 | privacy_conflict | `\"b.pem\"` | left open: none of its items was approved |",
	} {
		if !strings.Contains(report, want) {
			t.Errorf("no %q in\n%s", want, report)
		}
	}
}

// TestLinkIsNoFile: a symbolic link at a target is called that, and is not the same as the
// file that it leads to.
func TestLinkIsNoFile(t *testing.T) {
	s := bareScene(t)
	s.Add("run-1", map[string]string{"a": "alpha"})
	must(t, os.WriteFile(s.At("z"), []byte("alpha"), 0o644))
	must(t, os.Symlink("z", s.At("a")))
	report := reportOf(t, s.Preview())
	if !strings.Contains(report, "| a symbolic link |") || strings.Contains(report, "regular file") || strings.Contains(report, "identical") {
		t.Error(report[strings.Index(report, "## 3."):])
	}
}
