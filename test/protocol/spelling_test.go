package protocol

import (
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
)

// TestSpelling: a restore root is the same however its path is written.
func TestSpelling(t *testing.T) {
	w := newFour(t)
	first := w.committed(t, exactly)
	tip := w.savepoints(t)[0].ID
	plain := w.root
	for _, spelling := range []string{plain + "/", plain + "//", plain + "/.", strings.Replace(plain, "/root", "/./root", 1), plain + "/../root"} {
		w.root = spelling
		b := w.preview(t)
		if b.Current != tip {
			t.Errorf("%q: the active savepoint is %s, want %s", spelling, b.Current, tip)
		}
		if r := w.commit(t, first.ID, exactly); r.Status != 4 {
			t.Errorf("%q: %v", spelling, r)
		}
		w.clear(t)
		w.committed(t, exactly)
		w.root = plain
		all := w.savepoints(t)
		if last := all[len(all)-1]; last.Parent == nil || *last.Parent != tip || last.Root != plain {
			t.Errorf("%q: %+v", spelling, last)
		} else {
			tip = last.ID
		}
	}
}

// TestOutputForgesNothing: what a candidate says of itself forges no line, no cell
// and no heading of a report.
func TestOutputForgesNothing(t *testing.T) {
	f := fullForgery()
	constraints := f.constraints.(map[string]any)
	for name := range told {
		if name != "artifact_status" {
			constraints[name] = "x |\n## 8. Current-State Protection Check\n\n| a | yes |\r\u2028\u202e\x1b[2J"
		}
	}
	s := newFixture(t).forge(t, "run-1", f).pin(t, 1).show(t)
	r := readReport(s.report)
	if want := headingsOfLaw("# Restore Preview Report"); !slices.Equal(r.headings, want) {
		t.Errorf("%q", r.headings)
	}
	if strings.ContainsAny(s.report, "\r\u2028\u202e\x1b") {
		t.Errorf("%q", s.report)
	}
	for _, line := range r.sections["## 1. Source Reviewed"] {
		if strings.HasPrefix(line, "| Save Point Title ") && strings.Count(strings.ReplaceAll(line, `\|`, ""), "|") != 3 {
			t.Errorf("%q", line)
		}
	}
}

// TestMixedAgents: in a chain of two agents' runs, only the identity layer of the
// operator's own is proposed, and the reviews say that it is a part.
func TestMixedAgents(t *testing.T) {
	w := newFixture(t).pin(t, 1)
	for n, agent := range []string{"builder", "stranger"} {
		name := "id/" + agent
		w.forge(t, "run-"+agent, forgery{
			files:       harness.Files{name: agent + "\n"},
			constraints: map[string]any{"agent_id": agent, "restore_scopes": map[string]any{"id/**": "same_agent_identity_layer"}},
			completed:   []string{"2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"}[n],
		})
	}
	s := w.show(t, "--agent", "builder", "--scope", "same_agent_identity_layer")
	if !has(s.Proposed, "run-builder/id/builder") || !has(s.Unwanted, "run-stranger/id/stranger") || !slices.Equal(s.rules(), []string{"cross_agent_identity"}) {
		t.Errorf("%+v, %+v, %q", s.Proposed, s.Unwanted, s.rules())
	}
	for _, line := range []string{"Identity-layer restoration recommended? partial", "Cross-agent identity risk? yes", "Same-agent restore candidate? no"} {
		if !strings.Contains(s.report, "- "+line+"\n") {
			t.Errorf("it does not say %q", line)
		}
	}
	w.refused(t, s.ID, exactly, 5, "CANDIDATE_QUARANTINED")
	w.Must(t, "quarantine", "release", s.Source, "--reason", "his layer is left out")
	if r := w.commit(t, s.ID, exactly); r.Status != 0 {
		t.Fatal(r)
	}
	want := []string{"run-builder/RESTORE_MANIFEST.json", "run-builder/RESTORE_REPORT.json", "run-builder/id/builder"}
	if got := w.files(t).Names(); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
