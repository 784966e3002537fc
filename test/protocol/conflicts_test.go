package protocol

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
)

// conflictTypes are those of section 9, and a preview that has one.
var conflictTypes = []struct {
	name string
	of   func(t *testing.T, s *stage) block
	item string // that it is about; "" is any
}{
	{"state_conflict", func(_ *testing.T, s *stage) block { return s.crowded.block }, "state/same.txt"},
	{"identity_conflict", func(_ *testing.T, s *stage) block { return s.foreign.block }, "run-full"},
	{"authority_conflict", func(_ *testing.T, s *stage) block { return s.knot.block }, validator(1)},
	{"privacy_conflict", func(_ *testing.T, s *stage) block { return s.wide.block }, "vault/1.txt"},
	{"version_conflict", func(_ *testing.T, s *stage) block { return s.knot.block }, "run-2"},
	{"source_of_truth_conflict", func(_ *testing.T, s *stage) block { return s.knot.block }, "run-2"},
	{"scope_conflict", func(_ *testing.T, s *stage) block { return s.knot.block }, "assumptions"},
	{"timing_conflict", func(_ *testing.T, s *stage) block { return s.knot.block }, "run-2"},
	{"stale_context_risk", func(_ *testing.T, s *stage) block { return s.old.block }, ""},
	{"operator_preference_conflict", preferred, "notes/diary.txt"},
}

// preferred is a preview of what the operator's own list restricts.
func preferred(t *testing.T, _ *stage) block {
	w := newFixture(t).forge(t, "run-1", forgery{files: harness.Files{"notes/diary.txt": "dear\n"}}).pin(t, 1)
	harness.Must(t, os.Mkdir(filepath.Join(w.State, "restricted.d"), 0o700))
	harness.Must(t, os.WriteFile(filepath.Join(w.State, "restricted.d/mine"), []byte("diary.txt\n"), 0o600))
	if b := w.preview(t); has(b.Proposed, "notes/diary.txt") {
		t.Errorf("%+v", b.Proposed)
	}
	return w.preview(t, "--scope", "restricted_context")
}

// conflictChecks are those of section 9.
func conflictChecks() map[string]check {
	all := map[string]check{
		"9.1 current state is preserved":     altersNothing,
		"9.2 the conflict is flagged":        registers,
		"9.3 authority is compared":          everyConflict(func(c conflict) string { return c.Authority }),
		"9.4 a resolution is recommended":    everyConflict(func(c conflict) string { return c.Resolution }),
		"9.5 a decision is asked for":        everyConflict(asked),
		"9.6 no commit before it is decided": undecided,
	}
	for _, kind := range conflictTypes {
		all["9 type "+kind.name] = func(t *testing.T, s *stage) {
			b := kind.of(t, s)
			if c := b.conflict(t, kind.name); kind.item != "" && c.Item != kind.item {
				t.Errorf("%+v", c)
			}
		}
	}
	return all
}

func asked(c conflict) string {
	if c.Decision != "pending" {
		return ""
	}
	return c.Decision
}

// everyConflict requires each type of conflict to occur.
func everyConflict(of func(conflict) string) check {
	return func(t *testing.T, s *stage) {
		for _, kind := range conflictTypes {
			b := kind.of(t, s)
			c := b.conflict(t, kind.name)
			if of(c) == "" || c.Current == "" || c.Claim == "" || c.Risk == "" || !slices.Contains(b.Approval.Required, c.ID) {
				t.Errorf("%s: %+v", kind.name, c)
			}
		}
	}
}

// undecided: a commit waits for a decision on each conflict that touches what is
// approved, and on no other. Each verdict, in the statement or before the
// preview, is one; rejected takes the items out.
func undecided(t *testing.T, _ *stage) {
	w := newFull(t)
	put(t, w.root+"/state/taken.txt", "not yours\n")
	b := w.preview(t, "--scope", "project_state", "--scope", "restricted_context", "--agent", "builder")
	secret, free, taken := b.item(t, "vault/1.txt").ID, b.item(t, "state/1.txt").ID, b.item(t, "state/taken.txt").ID
	named := "Approved: restore items " + free + " and " + secret + " only."
	c := b.about(t, secret)
	w.refused(t, b.ID, named, 4, "APPROVAL_INCOMPLETE")
	w.refused(t, b.ID, "Approved: restore item "+free+" only. Acknowledge C-099.", 4, "APPROVAL_UNFIT")
	w.refused(t, b.ID, named+" Acknowledge "+b.about(t, taken)+".", 4, "APPROVAL_INCOMPLETE")
	for _, verb := range []string{"Acknowledge", "Resolve", "Reject"} {
		b := w.preview(t, "--scope", "project_state", "--scope", "restricted_context", "--agent", "builder")
		if r := w.commit(t, b.ID, named+" "+verb+" "+c+"."); r.Status != 0 {
			t.Errorf("%s: %v", verb, r)
		}
		if _, there := w.files(t)["vault/1.txt"]; there != (verb != "Reject") {
			t.Errorf("%s: vault/1.txt there: %v", verb, there)
		}
		w.clear(t)
		put(t, w.root+"/state/taken.txt", "not yours\n")
	}
	for _, verdict := range []string{"acknowledged", "resolved"} {
		b := w.preview(t, "--scope", "project_state", "--scope", "restricted_context", "--agent", "builder", "--decide", c+"="+verdict)
		if r := w.commit(t, b.ID, named); r.Status != 0 {
			t.Errorf("%s: %v", verdict, r)
		}
		w.clear(t)
		put(t, w.root+"/state/taken.txt", "not yours\n")
	}
}
