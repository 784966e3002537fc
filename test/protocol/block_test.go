package protocol

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
)

// members are those of section 13, and what the full candidate has there when
// nothing was asked for; for lists, how many.
var members = []struct {
	name  string
	plain any
}{
	{"artifact_type", "restore_preview"},
	{"protocol_version", "restore-v01"},
	{"source_savepoint_id", nil}, // checked apart
	{"current_active_savepoint_id", "unknown"},
	{"restore_scope", 4},
	{"proposed_restorations", 6},
	{"reference_only_items", 5},
	{"do_not_restore_items", 2},
	{"conflicts", 0},
	{"privacy_review", nil},
	{"privacy_review.restricted_context_present", true},
	{"privacy_review.operator_approval_required", false},
	{"identity_review", nil},
	{"identity_review.same_agent_candidate", nil}, // no agent was named
	{"identity_review.identity_layer_present", true},
	{"identity_review.identity_layer_restoration_allowed", false},
	{"approval", nil},
	{"approval.status", "pending"},
	{"approval.required_items", 6},
}

// maybeUnknown are the members that are null if they are not declared (TestUnknown).
var maybeUnknown = []string{"privacy_review.restricted_context_present", "identity_review.same_agent_candidate", "identity_review.identity_layer_present"}

// blockChecks are those of section 13.
func blockChecks() map[string]check {
	all := map[string]check{"13 the block": wholeBlock}
	for _, m := range members {
		all["13 member "+m.name] = func(t *testing.T, s *stage) { member(t, s, m.name, m.plain) }
	}
	return all
}

// at is the value of a member, like "approval.status".
func (b *block) at(t *testing.T, name string) any {
	t.Helper()
	outer, inner, deep := strings.Cut(name, ".")
	var v any
	harness.Must(t, json.Unmarshal(b.raw[outer], &v))
	if deep {
		v = v.(map[string]any)[inner]
	}
	return v
}

func member(t *testing.T, s *stage, name string, want any) {
	outer, _, _ := strings.Cut(name, ".")
	for _, b := range []block{s.plain.block, s.wide.block, s.foreign.block, s.crowded.block, s.knot.block, s.old.block} {
		if b.raw[outer] == nil || b.at(t, name) == nil && !slices.Contains(maybeUnknown, name) {
			t.Errorf("there is no %s", name)
		}
	}
	got := s.plain.at(t, name)
	if list, ok := got.([]any); ok {
		got = len(list)
	}
	if want != nil && got != want {
		t.Errorf("%s is %v, want %v", name, got, want)
	}
}

// wholeBlock: where the same agent asks for it, the reviews say so, and the
// active savepoint is named where there is one.
func wholeBlock(t *testing.T, s *stage) {
	for name, want := range map[string]bool{
		"privacy_review.operator_approval_required": true, "identity_review.same_agent_candidate": true,
		"identity_review.identity_layer_restoration_allowed": true,
	} {
		if got := s.wide.at(t, name); got != want {
			t.Errorf("%s is %v", name, got)
		}
	}
	if all := s.late.savepoints(t); s.old.Current != all[0].ID {
		t.Errorf("active is %s, want %+v", s.old.Current, all)
	}
	if len(s.plain.Source) != 64 || len(s.plain.ID) != 64 {
		t.Errorf("%q, %q", s.plain.Source, s.plain.ID)
	}
}
