package protocol

import (
	"slices"
	"testing"
)

// labels are those of section 7.
var labels = []string{
	"restore_active", "retain_reference", "do_not_restore", "requires_operator_confirmation", "conflict_with_current_state", "privacy_restricted",
	"identity_layer_nontransferable", "historical_only", "superseded", "operator_approved", "operator_rejected",
}

// labelChecks are those of section 7: each label occurs, where it belongs.
func labelChecks() map[string]check {
	return map[string]check{
		"7 labels are those of the law": labelsOfLaw,
		"7 label restore_active": func(t *testing.T, s *stage) {
			labelled(t, &s.plain.block, s.plain.Proposed, "state/1.txt", "restore_active")
		},
		"7 label retain_reference": func(t *testing.T, s *stage) {
			labelled(t, &s.plain.block, s.plain.Reference, "assumed/1.txt", "retain_reference")
		},
		"7 label do_not_restore": func(t *testing.T, s *stage) {
			b := s.full.preview(t, "--agent", "builder")
			labelled(t, &b, b.Unwanted, "identity/1.txt", "do_not_restore")
		},
		"7 label requires_operator_confirmation": func(t *testing.T, s *stage) {
			labelled(t, &s.wide.block, s.wide.Proposed, "limits/1.txt", "requires_operator_confirmation")
		},
		"7 label conflict_with_current_state": func(t *testing.T, s *stage) {
			labelled(t, &s.crowded.block, s.crowded.Proposed, "state/taken.txt", "conflict_with_current_state")
		},
		"7 label privacy_restricted": func(t *testing.T, s *stage) {
			labelled(t, &s.plain.block, s.plain.Unwanted, "vault/1.txt", "privacy_restricted")
			labelled(t, &s.wide.block, s.wide.Proposed, "vault/1.txt", "privacy_restricted")
		},
		"7 label identity_layer_nontransferable": func(t *testing.T, s *stage) {
			labelled(t, &s.foreign.block, s.foreign.Unwanted, "identity/1.txt", "identity_layer_nontransferable")
			labelled(t, &s.plain.block, s.plain.Unwanted, "identity/1.txt", "identity_layer_nontransferable")
		},
		"7 label historical_only": func(t *testing.T, s *stage) {
			labelled(t, &s.old.block, s.old.Reference, "next/1.txt", "historical_only")
		},
		"7 label superseded": func(t *testing.T, s *stage) {
			labelled(t, &s.old.block, s.old.Proposed, "state/1.txt", "superseded")
		},
		"7 label operator_approved": operatorApproved,
		"7 label operator_rejected": operatorRejected,
	}
}

func labelled(t *testing.T, b *block, list []item, path, label string) {
	t.Helper()
	if i := b.item(t, path); i.Label != label || !has(list, path) {
		t.Errorf("want %s: %+v", label, i)
	}
}

func labelsOfLaw(t *testing.T, s *stage) {
	for _, b := range []block{s.plain.block, s.wide.block, s.foreign.block, s.crowded.block, s.knot.block, s.old.block} {
		for _, i := range b.all() {
			if !slices.Contains(labels, i.Label) {
				t.Errorf("%+v", i)
			}
		}
	}
}

// What was approved is labelled so in the commit report: a preview approves
// nothing.
func operatorApproved(t *testing.T, s *stage) {
	if len(s.commit.outcome.Items) == 0 {
		t.Error("nothing was restored")
	}
	for _, i := range s.commit.outcome.Items {
		if i.Label != "operator_approved" {
			t.Errorf("%+v", i)
		}
	}
}

// What was rejected is labelled so where it was decided before the preview, and
// in the commit report where the approval leaves it out.
func operatorRejected(t *testing.T, s *stage) {
	w := newFull(t)
	w.crowd(t)
	b := w.preview(t)
	rejected := b.about(t, b.item(t, "state/taken.txt").ID)
	b = w.preview(t, "--decide", rejected+"=rejected")
	labelled(t, &b, b.Unwanted, "state/taken.txt", "operator_rejected")
	for _, left := range s.commit.outcome.Left {
		if proposed := has(s.commit.preview.Proposed, left.Path); proposed != (left.Label == "operator_rejected") {
			t.Errorf("%+v", left)
		}
	}
}
