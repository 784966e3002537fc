package snapshot

import "testing"

// TestHeaderKinds: an emergency rollback goes back to complete snapshots that were not taken before an
// action; one that lacks what could not be read is partial.
func TestHeaderKinds(t *testing.T) {
	for _, test := range []struct {
		h                               Header
		complete, forEmergency, partial bool
	}{
		{Header{Kind: Manual, Whole: true}, true, true, false},
		{Header{Kind: Scheduled, Whole: true}, true, true, false},
		{Header{Kind: Emergency, Whole: true}, true, true, false},
		{Header{Kind: PreAction, Whole: true}, true, false, false},
		{Header{Kind: Manual, Whole: true, Unread: 1}, false, false, true},
		{Header{Kind: PreAction, Whole: true, Unread: 1}, false, false, false},
		{Header{Kind: Manual, Names: 1}, false, false, false},
		{Header{Kind: Manual, Names: 1, Unread: 1}, false, false, false},
	} {
		if test.h.IsComplete() != test.complete || test.h.ForEmergency() != test.forEmergency || test.h.IsPartial() != test.partial {
			t.Errorf("%+v: %t, %t, %t", test.h, test.h.IsComplete(), test.h.ForEmergency(), test.h.IsPartial())
		}
	}
	before := Header{Kind: PreAction, Action: "a"}
	other := Header{Kind: Manual, Action: "a"}
	if !before.IsBefore("a") || before.IsBefore("b") || other.IsBefore("a") {
		t.Error("the snapshot before an action is not found")
	}
}

// TestNewestForEmergency: the newest counts that fits, whatever was taken later.
func TestNewestForEmergency(t *testing.T) {
	all := []Header{
		{ID: "first", Kind: Manual, Whole: true}, {ID: "second", Kind: Scheduled, Whole: true},
		{ID: "before", Kind: PreAction, Whole: true}, {ID: "partial", Kind: Manual, Whole: true, Unread: 1}, {ID: "part", Kind: Manual, Names: 1},
	}
	if h := NewestForEmergency(all); h == nil || h.ID != "second" {
		t.Errorf("%+v", h)
	}
	if h := NewestForEmergency(all[2:]); h != nil {
		t.Errorf("%+v", h)
	}
}
