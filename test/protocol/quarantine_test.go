package protocol

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
)

// quarantineChecks are those of section 12.
func quarantineChecks() map[string]check {
	return map[string]check{
		"12 quarantine":                            quarantined,
		"12 rule 1 unknown source, high impact":    unknownSource,
		"12 rule 2 another agent's identity":       foreignIdentity,
		"12 rule 3 restricted without need":        withoutNeed,
		"12 rule 4 current instructions conflict":  againstInstructions,
		"12 rule 5 machine-readable contradiction": contradiction,
		"12 rule 6 artifact status":                artifactStatus,
		"12 rule 7 unresolved authority":           unresolvedAuthority,
		"12 rule 8 approval vague or absent":       vagueOrAbsent,
		"12 marks, deletes nothing":                marksOnly,
	}
}

// held is what the list says of a candidate: the rules that hold it.
func (w *fixture) held(t testing.TB, source string) (rules []string) {
	t.Helper()
	var answer struct {
		Candidates []struct {
			Source string `json:"source_id"`
			Marks  []struct {
				Rule  string `json:"rule"`
				State string `json:"state"`
			} `json:"marks"`
		} `json:"candidates"`
	}
	harness.Must(t, json.Unmarshal([]byte(w.Must(t, "quarantine", "list", "--json").Stdout), &answer))
	for _, c := range answer.Candidates {
		for _, m := range c.Marks {
			if c.Source == source && m.State == "held" {
				rules = append(rules, m.Rule)
			}
		}
	}
	return rules
}

// holds: a rule, and no other, holds the candidate. The preview says so and
// ends with 0, the commit ends with 5, and a release frees it.
func holds(t *testing.T, w *fixture, rule string, flags ...string) block {
	t.Helper()
	s := w.show(t, flags...)
	if !slices.Equal(s.rules(), []string{rule}) || !slices.Equal(w.held(t, s.Source), []string{rule}) {
		t.Fatalf("want %s: %+v, list %q", rule, s.Quarantine, w.held(t, s.Source))
	}
	if !strings.Contains(s.stderr, "quarantined: "+rule) || !strings.Contains(s.report, "QUARANTINE") || !strings.Contains(s.report, rule) {
		t.Errorf("it is not said: %q, %q", s.stderr, s.report)
	}
	w.refused(t, s.ID, exactly, 5, "CANDIDATE_QUARANTINED")
	w.Must(t, "quarantine", "release", s.Source, "--reason", "clarified with "+rule)
	if r := w.commit(t, w.preview(t, flags...).ID, exactly); r.Status != 0 {
		t.Errorf("after the release: %v", r)
	}
	return s.block
}

// free: nothing holds the candidate.
func free(t *testing.T, w *fixture, flags ...string) {
	t.Helper()
	b := w.preview(t, flags...)
	if len(b.Quarantine) > 0 || len(w.held(t, b.Source)) > 0 {
		t.Errorf("%+v", b.Quarantine)
	}
}

func quarantined(t *testing.T, s *stage) {
	free(t, s.full)
	if len(s.foreign.Quarantine) == 0 {
		t.Error("nothing is against it")
	}
}

// impact is a candidate of a high-impact scope.
func impact(scope string) forgery {
	return forgery{files: harness.Files{"a": "a\n", "b": "b\n"}, constraints: map[string]any{"restore_scopes": map[string]any{"b": scope}}}
}

func unknownSource(t *testing.T, _ *stage) {
	for _, scope := range []string{"same_agent_identity_layer", "operator_context", "source_of_truth_hierarchy", "constraints"} {
		holds(t, newFixture(t).forge(t, "run-1", impact(scope)), "source_unknown_high_impact")
		free(t, newFixture(t).forge(t, "run-1", impact(scope)).pin(t, 1))
	}
	free(t, newFixture(t).forge(t, "run-1", impact("decisions")))
}

func foreignIdentity(t *testing.T, _ *stage) {
	b := holds(t, newFull(t), "cross_agent_identity", "--agent", "stranger", "--scope", "same_agent_identity_layer", "--scope", "project_state")
	if has(b.Proposed, "identity/1.txt") {
		t.Error("it is proposed")
	}
	free(t, newFull(t), "--agent", "builder", "--scope", "same_agent_identity_layer")
}

func withoutNeed(t *testing.T, _ *stage) {
	secret := func(declared any) *fixture {
		return newFixture(t).pin(t, 1).forge(t, "run-1", forgery{
			files: harness.Files{"a": "a\n", "etc/secrets.json": "{}\n"}, constraints: map[string]any{"restore_scopes": declared},
		})
	}
	b := holds(t, secret(map[string]any{"etc/**": "project_state"}), "restricted_without_need")
	if has(b.Proposed, "etc/secrets.json") {
		t.Error("it is proposed")
	}
	free(t, secret(map[string]any{"etc/**": "restricted_context"}))
	free(t, secret(map[string]any{}))
}

// againstInstructions: whom the operator trusts is his instruction. What goes
// against it is not even previewed, so there is nothing to approve.
func againstInstructions(t *testing.T, _ *stage) {
	w := newFixture(t).forge(t, "run-1", forgery{files: harness.Files{"a": "a\n"}})
	b := w.preview(t)
	before := w.tree(t)
	w.pin(t, 2)
	for _, code := range []string{"CANDIDATE_QUARANTINED", "VALIDATOR_REVOKED"} {
		for _, r := range []harness.Reply{w.ask(t), w.commit(t, b.ID, exactly)} {
			if r.Status != 5 || r.Answer.Code != code || harness.Diff(before, w.tree(t)) != "" {
				t.Errorf("want %s: %v", code, r)
			}
		}
		if got := w.held(t, b.Source); !slices.Equal(got, []string{"conflicts_with_instructions"}) {
			t.Errorf("%q", got)
		}
		if code == "CANDIDATE_QUARANTINED" {
			w.Must(t, "trust", "revoke", "--reason", "a leaked key", validator(1))
		}
	}
}

func contradiction(t *testing.T, _ *stage) {
	for name, constraints := range map[string]any{
		"a pattern that nothing fits": map[string]any{"restore_scopes": map[string]any{"elsewhere/**": "decisions"}},
		"an agent that is no text":    map[string]any{"agent_id": 7},
		"a status that is no text":    map[string]any{"artifact_status": []any{"rejected"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := forgery{files: harness.Files{"a": "a\n"}, constraints: constraints}
			w := newFixture(t).pin(t, 1)
			holds(t, w.forge(t, "run-1", f), "machine_readable_contradiction")
		})
	}
	// Where it is unknown what is protected, nothing is proposed, also after a release.
	for name, scopes := range map[string]any{
		"no scope of the law": map[string]any{"a": "everything"}, "a scope that is no text": map[string]any{"a": 1}, "scopes that are a list": []any{"decisions"},
	} {
		w := newFixture(t).pin(t, 1).forge(t, "run-1", forgery{files: harness.Files{"a": "a\n"}, constraints: map[string]any{"restore_scopes": scopes}})
		s := w.show(t)
		if !slices.Equal(s.rules(), []string{"machine_readable_contradiction"}) || len(s.Proposed) != 0 {
			t.Errorf("%s: %q, proposed %+v", name, s.rules(), s.Proposed)
		}
		w.refused(t, s.ID, exactly, 4, "APPROVAL_UNFIT")
		w.Must(t, "quarantine", "release", s.Source, "--reason", "looked at it")
		w.refused(t, s.ID, exactly, 4, "APPROVAL_UNFIT")
	}
	// Constraints of another form may declare rules that cannot be read.
	s := newFixture(t).pin(t, 1).forge(t, "run-1", forgery{files: harness.Files{"a": "a\n"}, constraints: []any{}}).show(t)
	if !slices.Equal(s.rules(), []string{"machine_readable_contradiction"}) || len(s.Proposed) != 0 {
		t.Errorf("constraints that are a list: %q, proposed %+v", s.rules(), s.Proposed)
	}
}

func artifactStatus(t *testing.T, _ *stage) {
	for _, status := range []string{"deprecated", "quarantined", "rejected"} {
		w := newFixture(t).seal(t, "run-1", harness.Files{"a": "a\n"}, "--constraint", "artifact_status="+status)
		if b := holds(t, w, "artifact_status"); !strings.Contains(fmt.Sprint(b.Quarantine), status) {
			t.Errorf("%+v", b.Quarantine)
		}
	}
	free(t, newFixture(t).seal(t, "run-1", harness.Files{"a": "a\n"}, "--constraint", "artifact_status=active"))
}

// unresolvedAuthority: two validators, and sources of truth of both. One project
// holds one file of a name, so both can only say the same of it.
func unresolvedAuthority(t *testing.T, _ *stage) {
	two := func(w *fixture, second string, key byte) *fixture {
		truth := map[string]any{"restore_scopes": map[string]any{"truth.md": "source_of_truth_hierarchy"}}
		w.forge(t, "run-1", forgery{files: harness.Files{"truth.md": "one\n"}, constraints: truth, completed: "2026-01-01T00:00:00Z"})
		return w.forge(t, "run-2", forgery{files: harness.Files{"truth.md": second}, constraints: truth, completed: "2026-01-02T00:00:00Z", key: key})
	}
	w := two(newFixture(t), "another\n", 2)
	if r := w.ask(t); r.Status != 1 || r.Answer.Code != "RESTORE_VERIFY_STRICT_FAILED" {
		t.Error(r)
	}
	w = two(newFixture(t), "one\n", 2)
	shown := w.show(t)
	if got := shown.rules(); !slices.Equal(got, []string{"source_unknown_high_impact", "source_unknown_high_impact", "unresolved_authority"}) {
		t.Errorf("%q", got)
	}
	free(t, two(newFixture(t).pin(t, 1).pin(t, 2), "one\n", 2))
}

func vagueOrAbsent(t *testing.T, _ *stage) {
	w := newFour(t)
	b := w.preview(t)
	w.refused(t, b.ID, "Looks good.", 4, "APPROVAL_VAGUE")
	if got := w.held(t, b.Source); !slices.Equal(got, []string{"approval_vague"}) {
		t.Errorf("%q", got)
	}
	again := w.ask(t)
	if again.Status != 0 || !strings.Contains(again.Stderr, "quarantined: approval_vague") {
		t.Error(again)
	}
	w.refused(t, b.ID, exactly, 5, "CANDIDATE_QUARANTINED")
	absent := newFour(t)
	b = absent.preview(t)
	if r := absent.Run(t, nil, "commit", "--json", "--preview", b.ID); r.Status != 4 {
		t.Error(r)
	}
	if len(absent.files(t)) > 0 {
		t.Error("something was restored")
	}
}

// marksOnly: quarantine changes nothing of the candidate, and a release says why
// in the audit log.
func marksOnly(t *testing.T, _ *stage) {
	w := newFixture(t).seal(t, "run-1", harness.Files{"a": "a\n"}, "--constraint", "artifact_status=rejected")
	before := harness.MustTake(t, w.Dir)
	b := holds(t, w, "artifact_status")
	after := harness.MustTake(t, w.Dir)
	if diff := harness.Diff(before, after); diff != "" {
		t.Error(diff)
	}
	events := w.events(t)
	if !slices.ContainsFunc(events, func(e event) bool {
		return e.Candidate == b.Source && strings.Contains(e.Reason, "clarified with artifact_status") && strings.Contains(e.Kind, "release")
	}) {
		t.Errorf("%+v", events)
	}
}

// TestHeld: a release needs a reason, and covers what was found and nothing else.
func TestHeld(t *testing.T) {
	w := newFour(t)
	b := w.preview(t)
	w.refused(t, b.ID, "ok", 4, "APPROVAL_VAGUE")
	if r := w.Run(t, nil, "quarantine", "release", b.Source); r.Status != 64 {
		t.Error(r)
	}
	w.refused(t, b.ID, exactly, 5, "CANDIDATE_QUARANTINED")
	w.Must(t, "quarantine", "release", b.Source, "--reason", "once")
	w.refused(t, b.ID, "ok", 4, "APPROVAL_VAGUE")
	w.refused(t, b.ID, exactly, 5, "CANDIDATE_QUARANTINED")
	w.Must(t, "quarantine", "release", b.Source, "--reason", "twice")
	if r := w.commit(t, b.ID, exactly); r.Status != 0 {
		t.Error(r)
	}
}
