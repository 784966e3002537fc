package preview_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/restoretest"
	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// everyScope declares a file for each scope, named like it.
var everyScope = func() map[string]any {
	m := map[string]any{}
	for _, s := range scope.All() {
		m[string(s)] = string(s)
	}
	return m
}()

// scoped makes a run with a file for each scope, of the agent "a".
func scoped(t testing.TB) *scene {
	s := bareScene(t)
	outputs := map[string]string{"plain": "x"}
	for name := range everyScope {
		outputs[name] = name
	}
	s.Add("run-1", outputs)
	s.Claim(map[string]any{"restore_scopes": everyScope, "agent_id": "a"})
	return s
}

// shownBlock is a decision block as another program reads it.
type shownBlock struct {
	Items      []shownItem `json:"proposed_restorations"`
	Reference  []shownItem `json:"reference_only_items"`
	Unwanted   []shownItem `json:"do_not_restore_items"`
	Conflicts  []shownConflict
	Quarantine []struct{ Rule, Detail string }
	Checks     []struct{ Question, Answer string } `json:"state_protection"`
	Identity   struct {
		Same    bool `json:"same_agent_candidate"`
		Known   bool `json:"agents_known"`
		Present bool `json:"identity_layer_present"`
		Allowed bool `json:"identity_layer_restoration_allowed"`
	} `json:"identity_review"`
	Approval struct {
		Required  []string `json:"required_items"`
		Statement string
	}
}

type shownItem struct {
	ID     string `json:"restore_id"`
	Path   string `json:"item"`
	Label  string
	Class  string
	Scope  string
	Reason string
}

type shownConflict struct {
	ID       string `json:"conflict_id"`
	Type     string
	Path     string   `json:"item"`
	Items    []string `json:"restore_ids"`
	Decision string   `json:"operator_decision"`
}

func blockOf(t testing.TB, p *preview.Preview) (b shownBlock) {
	t.Helper()
	must(t, json.Unmarshal(jsonOf(t, p), &b))
	return b
}

// labels are the labels of all items by path, with the list that they are in.
func (b *shownBlock) labels() map[string]string {
	found := map[string]string{}
	for name, list := range map[string][]shownItem{"": b.Items, "reference ": b.Reference, "not ": b.Unwanted} {
		for _, i := range list {
			found[i.Path] = name + i.Label
		}
	}
	return found
}

// types are the types of the conflicts, in their order.
func (b *shownBlock) types() (types []string) {
	for _, c := range b.Conflicts {
		types = append(types, c.Type)
	}
	return types
}

// TestLabels checks the list and the label of an item of each scope (protocol sections 5 to 7).
func TestLabels(t *testing.T) {
	defaults := map[string]string{
		"plain": "restore_active", "project_state": "restore_active", "decisions": "restore_active", "open_questions": "restore_active", "next_actions": "restore_active",
		"same_agent_identity_layer": "not identity_layer_nontransferable", "operator_context": "reference retain_reference",
		"source_of_truth_hierarchy": "reference retain_reference", "constraints": "reference retain_reference", "assumptions": "reference retain_reference",
		"machine_readable_state": "reference retain_reference", "restricted_context": "not privacy_restricted",
	}
	with := func(more ...string) map[string]string {
		all := map[string]string{}
		for path, label := range defaults {
			all[path] = label
		}
		for i := 0; i < len(more); i += 2 {
			all[more[i]] = more[i+1]
		}
		return all
	}
	for name, c := range map[string]struct {
		asked preview.Requested
		want  map[string]string
	}{
		"nothing asked":  {preview.Requested{}, defaults},
		"same agent":     {preview.Requested{Agent: "a"}, with("same_agent_identity_layer", "not do_not_restore")},
		"another agent":  {preview.Requested{Agent: "b"}, defaults},
		"all, no agent":  {preview.Requested{Scopes: scope.All()}, with("operator_context", "requires_operator_confirmation", "source_of_truth_hierarchy", "requires_operator_confirmation", "constraints", "requires_operator_confirmation", "assumptions", "requires_operator_confirmation", "machine_readable_state", "restore_active", "restricted_context", "privacy_restricted")},
		"all, the same":  {preview.Requested{Agent: "a", Scopes: scope.All()}, with("same_agent_identity_layer", "requires_operator_confirmation", "operator_context", "requires_operator_confirmation", "source_of_truth_hierarchy", "requires_operator_confirmation", "constraints", "requires_operator_confirmation", "assumptions", "requires_operator_confirmation", "machine_readable_state", "restore_active", "restricted_context", "privacy_restricted")},
		"decisions only": {preview.Requested{Scopes: []scope.Scope{scope.Decisions}}, with("plain", "reference retain_reference", "project_state", "reference retain_reference", "open_questions", "reference retain_reference", "next_actions", "reference retain_reference")},
	} {
		t.Run(name, func(t *testing.T) {
			s := scoped(t)
			s.Asked = c.asked
			b := blockOf(t, s.Preview())
			if diff := cmp.Diff(c.want, b.labels()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, check := range b.Checks {
				if check.Answer == "no" {
					t.Errorf("%s no", check.Question)
				}
			}
		})
	}
}

// TestClasses checks the class of every kind of existing target.
func TestClasses(t *testing.T) {
	s := bareScene(t)
	s.Add("run-1", map[string]string{"same": "x", "other": "x", "longer": "x", "dir": "x", "file/below": "x", "link": "x", "dangling": "x", "free": "x"})
	for path, content := range map[string]string{"same": "x", "other": "y", "longer": "xx", "file": "x"} {
		must(t, os.WriteFile(s.At(path), []byte(content), 0o644))
	}
	must(t, os.Mkdir(s.At("dir"), 0o755))
	must(t, os.Symlink("same", s.At("link")))
	must(t, os.Symlink("nowhere", s.At("dangling")))
	got := map[string]string{}
	b := blockOf(t, s.Preview())
	for _, i := range b.Items {
		got[i.Path] = i.Class + " " + i.Label
	}
	want := map[string]string{
		"free": "create restore_active", "same": "identical conflict_with_current_state", "other": "conflict conflict_with_current_state",
		"longer": "conflict conflict_with_current_state", "dir": "conflict conflict_with_current_state", "file/below": "blocked conflict_with_current_state",
		"link": "conflict conflict_with_current_state", "dangling": "conflict conflict_with_current_state",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if b.Approval.Statement != "Approved: restore items R-004 only. Acknowledge C-001." {
		t.Errorf("recommended: %q", b.Approval.Statement)
	}
}

// TestOlderCandidate: a candidate that is older than the active savepoint.
func TestOlderCandidate(t *testing.T) {
	s := scoped(t)
	must(t, os.WriteFile(s.At("decisions"), []byte("of today"), 0o644))
	s.Current = preview.Savepoint{ID: strings.Repeat("5", 64), Completed: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)}
	b := blockOf(t, s.Preview())
	labels := b.labels()
	for path, want := range map[string]string{
		"open_questions": "reference historical_only", "next_actions": "reference historical_only", "decisions": "superseded", "plain": "restore_active",
	} {
		if labels[path] != want {
			t.Errorf("%s: %s, want %s", path, labels[path], want)
		}
	}
	if !slices.Contains(b.types(), "stale_context_risk") {
		t.Errorf("conflicts %q", b.types())
	}
	s.Asked.Scopes = []scope.Scope{scope.OpenQuestions}
	if b := blockOf(t, s.Preview()); b.labels()["open_questions"] != "restore_active" {
		t.Errorf("asked for by name: %v", b.labels())
	}
	s.Current.Completed = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	if b := blockOf(t, s.Preview()); slices.Contains(b.types(), "stale_context_risk") {
		t.Errorf("a later candidate is stale: %q", b.types())
	}
}

// TestConflictTypes checks the causes of the conflict types of the protocol.
func TestConflictTypes(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *scene)
		want   []string
	}{
		"nothing":     {func(*scene) {}, []string{"authority_conflict"}},
		"unsupported": {func(s *scene) { s.Runs[0].Edit(bundle.OutputHashes, set("validator_semver", "9.9.9")) }, []string{"authority_conflict", "version_conflict"}},
		"no build id": {func(s *scene) { s.Runs[0].Edit(bundle.OutputHashes, set("validator_build_id", "")) }, []string{"authority_conflict", "version_conflict"}},
		"reference": {func(s *scene) {
			s.Runs[0].Edit(bundle.TaskSpec, set("inputs", []any{"elsewhere"}))
			s.Runs[0].Sign()
		}, []string{"authority_conflict", "source_of_truth_conflict"}},
		"order":       {func(s *scene) { s.Add("run-2", map[string]string{"x": "x"}) }, []string{"authority_conflict", "timing_conflict"}},
		"empty scope": {func(s *scene) { s.Asked.Scopes = []scope.Scope{scope.ProjectState, scope.Assumptions} }, []string{"authority_conflict", "scope_conflict"}},
		"taken":       {func(s *scene) { must(s.T, os.WriteFile(s.At("a"), nil, 0o644)) }, []string{"authority_conflict", "state_conflict"}},
		"secret": {func(s *scene) {
			s.Claim(map[string]any{"restore_scopes": map[string]any{"a": "restricted_context"}})
			s.Asked.Scopes = scope.Defaults()
			s.Asked.Scopes = append(s.Asked.Scopes, scope.RestrictedContext)
		}, []string{"authority_conflict", "scope_conflict", "scope_conflict", "scope_conflict", "privacy_conflict"}},
		"foreign": {func(s *scene) {
			s.Claim(map[string]any{"agent_id": "b", "restore_scopes": map[string]any{"a": "same_agent_identity_layer"}})
			s.Asked = preview.Requested{Agent: "a", Scopes: []scope.Scope{scope.SameAgentIdentityLayer, scope.ProjectState}}
		}, []string{"authority_conflict", "identity_conflict"}},
		"secret unasked": {func(s *scene) { s.Claim(map[string]any{"restore_scopes": map[string]any{"a": "restricted_context"}}) }, []string{"authority_conflict"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := bareScene(t)
			s.Add("run-1", map[string]string{"a": "alpha", "b": "beta"})
			c.change(s)
			b := blockOf(t, s.Preview())
			if diff := cmp.Diff(c.want, b.types()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, found := range b.Conflicts {
				if found.Decision != "pending" {
					t.Errorf("%s is %s", found.ID, found.Decision)
				}
			}
		})
	}
}

func set(field string, value any) func(map[string]any) {
	return func(f map[string]any) { f[field] = value }
}

// TestRules checks the computed rules of protocol section 12.
func TestRules(t *testing.T) {
	scopes := func(pairs ...any) map[string]any {
		m := map[string]any{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i].(string)] = pairs[i+1]
		}
		return map[string]any{"restore_scopes": m}
	}
	for name, c := range map[string]struct {
		claim any
		agent string
		want  []string
	}{
		"nothing":                    {map[string]any{}, "", nil},
		"high impact":                {scopes("a", "constraints"), "", []string{"source_unknown_high_impact"}},
		"foreign identity":           {map[string]any{"agent_id": "b", "restore_scopes": map[string]any{"a": "same_agent_identity_layer"}}, "a", []string{"source_unknown_high_impact"}},
		"foreign identity asked for": {map[string]any{"agent_id": "b", "restore_scopes": map[string]any{"a": "same_agent_identity_layer"}}, "a!", []string{"source_unknown_high_impact", "cross_agent_identity"}},
		"undeclared secret":          {scopes(".env", "project_state"), "", []string{"restricted_without_need"}},
		"declared secret":            {scopes(".env", "restricted_context"), "", nil},
		"pattern of nothing":         {scopes("nothing", "decisions"), "", []string{"machine_readable_contradiction"}},
		"unknown scope":              {scopes("a", "everything"), "", []string{"machine_readable_contradiction"}},
		"not a text":                 {map[string]any{"agent_id": 1}, "", []string{"machine_readable_contradiction"}},
		"constraints a text":         {"x", "", []string{"machine_readable_contradiction"}},
		"constraints a list":         {[]any{map[string]any{"artifact_status": "rejected"}}, "", []string{"machine_readable_contradiction"}},
		"constraints null":           {nil, "", []string{"machine_readable_contradiction"}},
		"deprecated":                 {map[string]any{"artifact_status": "deprecated"}, "", []string{"artifact_status"}},
		"quarantined":                {map[string]any{"artifact_status": "quarantined"}, "", []string{"artifact_status"}},
		"rejected":                   {map[string]any{"artifact_status": "rejected"}, "", []string{"artifact_status"}},
		"a status like others":       {map[string]any{"artifact_status": "final"}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := bareScene(t)
			s.Add("run-1", map[string]string{"a": "alpha", ".env": "x"})
			s.Claim(c.claim)
			if agent, asks := strings.CutSuffix(c.agent, "!"); asks {
				s.Asked = preview.Requested{Agent: agent, Scopes: []scope.Scope{scope.ProjectState, scope.SameAgentIdentityLayer}}
			} else {
				s.Asked.Agent = agent
			}
			p := s.Preview()
			var got []string
			for _, f := range p.Findings() {
				got = append(got, string(f.Rule))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if shown := strings.Contains(reportOf(t, p), "**QUARANTINE"); shown != (len(c.want) > 0) {
				t.Errorf("the report says so: %v", shown)
			}
		})
	}
}

// TestOpenAuthority: two validators sign sources of truth; who is pinned is not one
// of them.
func TestOpenAuthority(t *testing.T) {
	for _, c := range []struct{ other, pinned, want bool }{{true, false, true}, {true, true, false}, {false, false, false}} {
		s := bareScene(t)
		for n := range 2 {
			r := s.Add(fmt.Sprintf("run-%d", n+1), map[string]string{fmt.Sprintf("law%d", n): "x"})
			if n == 1 && c.other {
				r.Seed[0]++
			}
			s.Claim(map[string]any{"restore_scopes": map[string]any{fmt.Sprintf("law%d", n): "source_of_truth_hierarchy"}})
		}
		if c.pinned {
			s.Policy = restoretest.PolicyOf(t, []string{restoretest.ValidatorOf(s.Runs[0]), restoretest.ValidatorOf(s.Runs[1])}, nil)
		}
		rules := []string{}
		for _, f := range s.Preview().Findings() {
			rules = append(rules, string(f.Rule))
		}
		if got := slices.Contains(rules, "unresolved_authority"); got != c.want {
			t.Errorf("%+v: %q", c, rules)
		}
	}
}
