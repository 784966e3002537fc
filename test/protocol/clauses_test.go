package protocol

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
)

// check is a subtest of a clause. It gets what every clause may look at.
type check func(t *testing.T, s *stage)

// TestClauses walks sections 4 to 14: one subtest for each clause, in the order
// of the protocol.
func TestClauses(t *testing.T) {
	s := newStage(t)
	checks := allChecks()
	var done []string
	for _, c := range law {
		if c.test == "" || slices.Contains(done, c.test) {
			continue
		}
		done = append(done, c.test)
		run := checks[c.test]
		if run == nil {
			t.Errorf("clause %q has no subtest: %s", c.test, c.line)
			continue
		}
		t.Run(c.test, func(t *testing.T) { run(t, s) })
	}
	if len(checks) != len(done) {
		t.Errorf("%d subtests, %d clauses", len(checks), len(done))
	}
}

// allChecks are the subtests by their clause.
func allChecks() map[string]check {
	all := map[string]check{}
	for _, some := range []map[string]check{
		commandChecks(), scopeChecks(), labelChecks(), reportChecks(), fieldChecks(), conflictChecks(),
		approvalChecks(), commitReportChecks(), quarantineChecks(), blockChecks(), protectionChecks(),
	} {
		maps.Copy(all, some)
	}
	return all
}

// TestLawIsWhole: the law here is the protocol, line by line.
func TestLawIsWhole(t *testing.T) {
	raw, err := os.ReadFile("testdata/protocol.md")
	harness.Must(t, err)
	lines := normative(string(raw))
	for n := range max(len(lines), len(law)) {
		switch {
		case n >= len(lines):
			t.Fatalf("line %d: %q is not in the protocol", n+1, law[n].line)
		case n >= len(law):
			t.Fatalf("line %d: %q is not in the law", n+1, lines[n])
		case lines[n] != law[n].line:
			t.Fatalf("line %d: the protocol has %q, the law %q", n+1, lines[n], law[n].line)
		}
	}
}

// normative are the lines of sections 4 to 14 that say something.
func normative(text string) (lines []string) {
	_, text, _ = strings.Cut(text, "\n## 4. Commands\n")
	text, _, _ = strings.Cut(text, "\n## 15. ")
	for line := range strings.Lines("## 4. Commands\n" + text) {
		line = strings.TrimSuffix(line, "\n")
		if line != "" && line != "---" && !strings.HasPrefix(line, "```") {
			lines = append(lines, line)
		}
	}
	return lines
}

// The stage: previews and commits that many clauses look at. What a clause
// changes it makes for itself.
type stage struct {
	full    *fixture // every scope, made by agent "builder", its validator pinned
	plain   shown    // nothing was asked for
	wide    shown    // every scope, for the same agent
	foreign shown    // identity, for another agent
	crowded shown    // two targets are taken: one the same, one another

	knot shown // a chain that has everything against it

	late *fixture // what is there is of a later candidate
	old  shown

	commit commitStage
}

// A commitStage is a commit of a part, and its report.
type commitStage struct {
	fixture   *fixture
	preview   block
	statement string
	reply     harness.Reply // for people
	report    string
	outcome   outcome
}

// scopes are those of section 5, in its order, with a directory of the full candidate for each.
// project_state is undeclared.
var scopes = []struct{ name, dir string }{
	{"project_state", "state"},
	{"same_agent_identity_layer", "identity"},
	{"operator_context", "operator"},
	{"source_of_truth_hierarchy", "truth"},
	{"decisions", "decided"},
	{"open_questions", "questions"},
	{"constraints", "limits"},
	{"assumptions", "assumed"},
	{"next_actions", "next"},
	{"machine_readable_state", "machine"},
	{"restricted_context", "vault"},
}

// everyScope asks for all of them.
func everyScope() (flags []string) {
	for _, s := range scopes {
		flags = append(flags, "--scope", s.name)
	}
	return flags
}

// told is what the full candidate says of itself.
var told = map[string]string{
	"title": "Sprint 12", "parent_savepoint_id": "p-11", "agent_id": "builder", "receiving_agent_id": "builder too",
	"project": "bridge", "version": "v02", "artifact_status": "active", "transfer_mode": "full", "privacy_level": "internal",
}

func fullForgery() forgery {
	declared, constraints, files := map[string]any{}, map[string]any{}, harness.Files{"state/same.txt": "same\n", "state/taken.txt": "taken\n"}
	for _, s := range scopes {
		files[s.dir+"/1.txt"] = s.name + "\n"
		if s.name != "project_state" {
			declared[s.dir+"/**"] = s.name
		}
	}
	for name, text := range told {
		constraints[name] = text
	}
	constraints["restore_scopes"] = declared
	return forgery{files: files, constraints: constraints, completed: "2026-01-02T03:04:05Z"}
}

// newFull is a fixture with the full candidate.
func newFull(t *testing.T) *fixture {
	return newFixture(t).forge(t, "run-full", fullForgery()).pin(t, 1)
}

// crowd puts two things in the way of the full candidate.
func (w *fixture) crowd(t *testing.T) {
	put(t, w.root+"/state/same.txt", "same\n")
	put(t, w.root+"/state/taken.txt", "not yours\n")
}

func newStage(t *testing.T) *stage {
	s := &stage{full: newFull(t)}
	s.plain = s.full.show(t)
	s.wide = s.full.show(t, append(everyScope(), "--agent", "builder")...)
	crowded := newFull(t)
	crowded.crowd(t)
	s.crowded = crowded.show(t)
	stranger := newFull(t) // it is quarantined by this
	s.foreign = stranger.show(t, "--agent", "stranger", "--scope", "project_state", "--scope", "same_agent_identity_layer")
	s.knot = newKnot(t).show(t, "--scope", "project_state", "--scope", "assumptions")
	s.late = newLate(t)
	s.old = s.late.show(t)
	s.commit = newCommitStage(t)
	return s
}

// newKnot is a chain whose second run is of an unsupported validator, was
// completed before the first, and was made from something unknown.
func newKnot(t *testing.T) *fixture {
	w := newFixture(t)
	w.forge(t, "run-1", forgery{files: harness.Files{"one/a.txt": "a\n"}, completed: "2026-02-01T00:00:00Z"})
	return w.forge(t, "run-2", forgery{
		files: harness.Files{"two/b.txt": "b\n"}, completed: "2026-01-01T00:00:00Z", inputs: []string{"elsewhere/c.txt"}, semver: "9.9.9",
	})
}

// newLate restores a candidate, removes its result artifacts, and puts an
// earlier one in its place.
func newLate(t *testing.T) *fixture {
	w := newFixture(t).pin(t, 1)
	w.forge(t, "run-new", forgery{files: harness.Files{"state/1.txt": "new\n"}, completed: "2026-03-01T00:00:00Z"})
	w.committed(t, exactly)
	harness.Must(t, os.Remove(w.root+"/RESTORE_MANIFEST.json"))
	harness.Must(t, os.Remove(w.root+"/RESTORE_REPORT.json"))
	w.runs = nil
	return w.forge(t, "run-old", forgery{
		files:       harness.Files{"state/1.txt": "old\n", "state/2.txt": "old\n", "questions/1.txt": "old?\n", "next/1.txt": "old!\n"},
		constraints: map[string]any{"restore_scopes": map[string]any{"questions/**": "open_questions", "next/**": "next_actions"}},
		completed:   "2026-02-01T00:00:00Z",
	})
}

// newCommitStage commits two of what is proposed where two targets are taken: one
// conflict is decided, the other left open.
func newCommitStage(t *testing.T) commitStage {
	c := commitStage{fixture: newFull(t)}
	w := c.fixture
	w.crowd(t)
	c.preview = w.preview(t)
	same, free, decided := c.preview.item(t, "state/same.txt"), c.preview.item(t, "state/1.txt"), c.preview.item(t, "decided/1.txt")
	c.statement = "Approved: restore items " + decided.ID + " and " + free.ID + " only. Reject " + c.preview.about(t, same.ID) + "."
	c.reply = w.Run(t, nil, "commit", "--preview", c.preview.ID, "--approve", c.statement)
	if c.reply.Status != 0 {
		t.Fatal(c.reply)
	}
	c.outcome, c.report = w.latest(t)
	return c
}

// about is the conflict about an item.
func (b *block) about(t testing.TB, item string) string {
	t.Helper()
	for _, c := range b.Conflicts {
		if slices.Contains(c.Items, item) {
			return c.ID
		}
	}
	t.Fatalf("no conflict is about %s", item)
	return ""
}
