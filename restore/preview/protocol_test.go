package preview

import (
	"errors"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/restore/statement"
)

// What cannot be reached from outside is tested here: a preview never proposes
// what a question of protocol section 14 asks about, so its "no" has to be made.

// TestNoStops: an approval of a preview that answers one question with no is
// rejected, whichever it is.
func TestNoStops(t *testing.T) {
	said, err := statement.Parse(Exactly)
	if err != nil {
		t.Fatal(err)
	}
	one := Item{ID: "R-001", Number: 1}
	for _, answers := range [][]string{{No}, {Yes, No}, {No, Yes}, {Yes, afterCommit, No, Yes}} {
		d := &deciding{items: []Item{one}, lists: []list{proposed}}
		p := &Preview{id: "x", decided: d, block: Block{Items: d.items}}
		for _, answer := range answers {
			p.block.Checks = append(p.block.Checks, Check{Question: "good?", Answer: answer})
		}
		r := &Record{id: "x"}
		if a, err := r.Approve(p, said); a != nil || !errors.Is(err, ErrUnfit) || !strings.Contains(err.Error(), "good?") {
			t.Errorf("%q: %v, %v", answers, a, err)
		}
		for n := range p.block.Checks {
			p.block.Checks[n].Answer = Yes
		}
		if _, err := r.Approve(p, said); err != nil {
			t.Errorf("all yes: %v", err)
		}
	}
}

// TestEachNo: each question is answered with no when what it asks about would be
// done, and all others with yes.
func TestEachNo(t *testing.T) {
	for _, c := range []struct {
		name      string
		item      Item
		stale     bool
		asked     []scope.Scope
		miscount  bool
		questions []string // that are answered with no
	}{
		{name: "nothing", item: Item{Scope: scope.ProjectState, Class: Create, Label: RestoreActive}},
		{name: "an item is lost", item: Item{Scope: scope.ProjectState, Class: Create}, miscount: true, questions: []string{"unapproved items"}},
		{name: "an old question", item: Item{Scope: scope.OpenQuestions, Class: Create}, stale: true, questions: []string{"historical status"}},
		{name: "an old action", item: Item{Scope: scope.NextActions, Class: Create}, stale: true, questions: []string{"historical status"}},
		{
			name: "an old content", item: Item{Scope: scope.ProjectState, Class: Different, Label: InConflict}, stale: true,
			questions: []string{"stale items labeled", "flag all known conflicts"},
		},
		{name: "a target in the way", item: Item{Scope: scope.ProjectState, Class: Identical}, questions: []string{"flag all known conflicts"}},
		{name: "a secret", item: Item{Scope: scope.RestrictedContext, Class: Create}, questions: []string{"restricted context"}},
		{
			name: "another's identity", item: Item{Scope: scope.SameAgentIdentityLayer, Class: Create},
			asked:     []scope.Scope{scope.SameAgentIdentityLayer},
			questions: []string{"cross-agent", "only for same-agent"},
		},
	} {
		c.item.Number = 1
		d := &deciding{
			plan: &restore.Plan{}, request: &Request{Asked: Requested{Scopes: c.asked}}, claims: []claims{{}},
			items: []Item{c.item}, lists: []list{proposed}, stale: c.stale,
		}
		b := Block{Items: d.items}
		if c.miscount {
			b.Items = nil
		}
		for _, check := range d.checks(&b) {
			want := Yes
			for _, words := range c.questions {
				if strings.Contains(check.Question, words) {
					want = No
				}
			}
			if check.Answer != want && check.Answer != afterCommit {
				t.Errorf("%s: %+v, want %s", c.name, check, want)
			}
		}
	}
}
