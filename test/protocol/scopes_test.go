package protocol

import (
	"slices"
	"strings"
	"testing"
)

// scopeChecks are those of sections 5 and 6.
func scopeChecks() map[string]check {
	all := map[string]check{
		"5 scope is identified":           identifiesScope,
		"5 default scope":                 defaultScope,
		"5 protected scopes":              protectedScopes,
		"6 same agent, after approval":    sameAgent,
		"6 may restore":                   mayRestore,
		"6 not without explicit approval": notUnasked,
		"6 cross agent":                   crossAgent,
		"6 old status is not current":     oldStatus,
	}
	for _, s := range scopes {
		all["5 scope "+s.name] = func(t *testing.T, st *stage) { oneScope(t, st, s.name, s.dir) }
	}
	return all
}

// oneScope asks for one scope: what is proposed is what is in it.
func oneScope(t *testing.T, s *stage, name, dir string) {
	b := s.full.preview(t, "--agent", "builder", "--scope", name)
	if !slices.Equal(b.Scope, []string{name}) {
		t.Errorf("scope %q", b.Scope)
	}
	for _, i := range b.all() {
		in := strings.HasPrefix(i.Path, dir+"/")
		if in != (i.Scope == name) || in != has(b.Proposed, i.Path) {
			t.Errorf("%+v", i)
		}
	}
	if len(b.Proposed) == 0 {
		t.Error("nothing is proposed")
	}
}

func defaultScope(t *testing.T, s *stage) {
	want := []string{"project_state", "decisions", "open_questions", "next_actions"}
	if !slices.Equal(s.plain.Scope, want) {
		t.Errorf("%q", s.plain.Scope)
	}
	for _, i := range s.plain.all() {
		if slices.Contains(want, i.Scope) != has(s.plain.Proposed, i.Path) {
			t.Errorf("%+v", i)
		}
	}
}

// An approval exactly as proposed, where nothing was asked for, restores nothing
// that is protected.
func protectedScopes(t *testing.T, _ *stage) {
	w := newFull(t)
	w.committed(t, exactly, "--agent", "builder")
	for name := range w.files(t) {
		for _, dir := range []string{"identity/", "operator/", "vault/"} {
			if strings.HasPrefix(name, dir) {
				t.Errorf("%s was restored", name)
			}
		}
	}
}

func sameAgent(t *testing.T, s *stage) {
	for _, c := range []struct {
		flags []string
		want  bool
	}{
		{[]string{"--scope", "same_agent_identity_layer", "--agent", "builder"}, true},
		{[]string{"--scope", "same_agent_identity_layer", "--agent", "Builder"}, false},
		{[]string{"--scope", "same_agent_identity_layer"}, false},
		{[]string{"--agent", "builder"}, false},
	} {
		b := s.full.preview(t, c.flags...)
		if has(b.Proposed, "identity/1.txt") != c.want {
			t.Errorf("%q: %+v", c.flags, b.item(t, "identity/1.txt"))
		}
	}
}

// Whatever of an identity layer it is, that of the same agent is restored when
// it was asked for and approved.
func mayRestore(t *testing.T, _ *stage) {
	w := newFull(t)
	b := w.preview(t, "--agent", "builder", "--scope", "same_agent_identity_layer")
	if r := w.commit(t, b.ID, "Approved: restore identity-layer only."); r.Status != 0 {
		t.Fatal(r)
	}
	if w.files(t)["identity/1.txt"] == "" {
		t.Error("it is not there")
	}
}

// Role definitions, rules and claims lie in the scopes that are only restored if they are named.
func notUnasked(t *testing.T, s *stage) {
	b := s.full.preview(t, "--agent", "builder")
	for _, path := range []string{"identity/1.txt", "operator/1.txt", "truth/1.txt", "limits/1.txt", "assumed/1.txt"} {
		if has(b.Proposed, path) {
			t.Errorf("%+v", b.item(t, path))
		}
	}
	for _, path := range []string{"identity/1.txt", "operator/1.txt", "truth/1.txt", "limits/1.txt", "assumed/1.txt"} {
		if i := s.wide.item(t, path); i.Label != "requires_operator_confirmation" {
			t.Errorf("%+v", i)
		}
	}
}

func crossAgent(t *testing.T, s *stage) {
	i := s.foreign.item(t, "identity/1.txt")
	if !has(s.foreign.Unwanted, i.Path) || i.Label != "identity_layer_nontransferable" {
		t.Errorf("%+v", i)
	}
	if !strings.Contains(s.foreign.report, "/absorb preview") {
		t.Error("the report does not say what to use instead")
	}
	if s.foreign.Identity["identity_layer_restoration_allowed"] != false {
		t.Errorf("%v", s.foreign.Identity)
	}
}

func oldStatus(t *testing.T, s *stage) {
	for _, path := range []string{"questions/1.txt", "next/1.txt"} {
		if i := s.old.item(t, path); has(s.old.Proposed, path) || i.Label != "historical_only" {
			t.Errorf("%+v", i)
		}
	}
	s.old.conflict(t, "stale_context_risk")
}
