package statecheck

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// TestSimilarFlawsAreCounted: many findings that differ in ids, numbers and names alone are one with a count; few, or
// of another kind or remedy, stay as they are.
func TestSimilarFlawsAreCounted(t *testing.T) {
	var flaws []Flaw
	for i := range 130 {
		flaws = append(flaws, Flaw{Path: "audit.log", What: fmt.Sprintf("snapshot %064x of %q is not in the log, entry %d", i, fmt.Sprint("/srv/r ", i), i), Remedy: "keep it"})
	}
	flaws = append(flaws, Flaw{What: "another thing", Remedy: "keep it"}, Flaw{What: "another thing", Remedy: "move it away"})
	got := Fold(flaws)
	if len(got) != 3 || !strings.HasSuffix(got[0].What, "; and 129 more findings of this kind") || got[1].What != "another thing" {
		t.Errorf("%d: %+v", len(got), got)
	}
	if got := Fold(flaws[:3]); len(got) != 3 || !reflect.DeepEqual(got[0], flaws[0]) {
		t.Errorf("%+v", got)
	}
	if got := Fold(nil); len(got) > 0 {
		t.Errorf("%+v", got)
	}
}

// TestLostOf: every lost record is named once, in order.
func TestLostOf(t *testing.T) {
	flaws := []Flaw{{Lost: []string{"c", "a"}}, {What: "damage"}, {Lost: []string{"a", "b"}}}
	if got := LostOf(flaws); !reflect.DeepEqual(got, []string{"a", "b", "c"}) {
		t.Errorf("%q", got)
	}
	if got := LostOf(flaws[1:2]); len(got) > 0 {
		t.Errorf("%q", got)
	}
}
