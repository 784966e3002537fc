package protocol

import (
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
)

// approvalChecks are those of section 10.
func approvalChecks() map[string]check {
	return map[string]check{"10 valid forms": validForms, "10 invalid forms": invalidForms, "10 vague is not valid": vagueIsNot}
}

// newFour is a candidate with four items of project state, and an identity layer.
func newFour(t *testing.T) *fixture {
	return newFixture(t).pin(t, 1).forge(t, "run-1", forgery{
		files: harness.Files{"a": "a\n", "b": "b\n", "c": "c\n", "d": "d\n", "id": "id\n"},
		constraints: map[string]any{
			"agent_id": "builder", "restore_scopes": map[string]any{"id": "same_agent_identity_layer"},
		},
	})
}

// validForms: the three forms of the protocol, word for word, with the white space around
// them that pasting adds.
func validForms(t *testing.T, _ *stage) {
	forms := ofLaw("10 valid forms")
	for n, want := range []string{"a b d", "a b c d", "a b c d id"} {
		w := newFour(t)
		b := w.preview(t, "--agent", "builder", "--scope", "project_state", "--scope", "same_agent_identity_layer")
		if r := w.commit(t, b.ID, []string{"", " ", "\n\t"}[n]+forms[n]+[]string{"\n", "", "  "}[n]); r.Status != 0 {
			t.Errorf("%v", r)
		}
		var got []string
		for _, name := range w.files(t).Names() {
			if !strings.HasPrefix(name, "RESTORE_") {
				got = append(got, name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %q, want %s", forms[n], got, want)
		}
	}
}

// invalidForms: those of the protocol, and statements close to a valid one. A statement that
// differs from a valid one in its form only approves nothing, but is not vague.
func invalidForms(t *testing.T, _ *stage) {
	w := newFour(t)
	b := w.preview(t)
	for _, text := range append(ofLaw("10 invalid forms"),
		"x "+exactly, exactly+" x",
		"Approved.", "Approved: everything.", "Approved: restore item R-1 only.", "Approved: restore items R-001, R-002 only.",
		"Approved: restore items R-002 to R-001 only.", exactly+" Do not restore item R-001.", "yes", "no", ".",
	) {
		w.refused(t, b.ID, text, 4, "APPROVAL_VAGUE")
	}
	w = newFour(t)
	b = w.preview(t)
	for _, text := range []string{strings.ToLower(exactly), strings.TrimSuffix(exactly, "."), strings.ReplaceAll(exactly, " ", "\u00a0")} {
		w.refused(t, b.ID, text, 4, "APPROVAL_UNFIT")
	}
	if r := w.commit(t, b.ID, exactly); r.Status != 0 {
		t.Errorf("after slips of form: %v", r)
	}
}

// vagueIsNot: a vague answer is rejected, restores nothing, and holds the candidate
// until a person has clarified it.
func vagueIsNot(t *testing.T, _ *stage) {
	w := newFour(t)
	b := w.preview(t)
	w.refused(t, b.ID, "Sure.", 4, "APPROVAL_VAGUE")
	w.refused(t, b.ID, exactly, 5, "CANDIDATE_QUARANTINED")
	w.Must(t, "quarantine", "release", b.Source, "--reason", "it was meant for another window")
	if r := w.commit(t, b.ID, exactly); r.Status != 0 {
		t.Error(r)
	}
}
