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
// refused, whichever it is.
func TestNoStops(t *testing.T) {
	said, err := statement.Parse(Exactly)
	if err != nil {
		t.Fatal(err)
	}
	one := item{ID: "R-001", number: 1}
	for _, answers := range [][]string{{no}, {yes, no}, {no, yes}, {yes, afterCommit, no, yes}} {
		d := &deciding{items: []item{one}, lists: []list{proposed}}
		p := &Preview{id: "x", decided: d, block: block{Items: d.items}}
		for _, answer := range answers {
			p.block.Checks = append(p.block.Checks, check{Question: "good?", Answer: answer})
		}
		r := &Record{id: "x"}
		if a, err := r.Approve(p, said); a != nil || !errors.Is(err, ErrUnfit) || !strings.Contains(err.Error(), "good?") {
			t.Errorf("%q: %v, %v", answers, a, err)
		}
		for n := range p.block.Checks {
			p.block.Checks[n].Answer = yes
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
		item      item
		stale     bool
		asked     []scope.Scope
		miscount  bool
		questions []string // that are answered with no
	}{
		{name: "nothing", item: item{Scope: scope.ProjectState, Class: create, Label: restoreActive}},
		{name: "an item is lost", item: item{Scope: scope.ProjectState, Class: create}, miscount: true, questions: []string{"unapproved items"}},
		{name: "an old question", item: item{Scope: scope.OpenQuestions, Class: create}, stale: true, questions: []string{"historical status"}},
		{name: "an old action", item: item{Scope: scope.NextActions, Class: create}, stale: true, questions: []string{"historical status"}},
		{
			name: "an old content", item: item{Scope: scope.ProjectState, Class: different, Label: inConflict}, stale: true,
			questions: []string{"stale items labeled", "flag all known conflicts"},
		},
		{name: "a target in the way", item: item{Scope: scope.ProjectState, Class: identical}, questions: []string{"flag all known conflicts"}},
		{name: "a secret", item: item{Scope: scope.RestrictedContext, Class: create}, questions: []string{"restricted context"}},
		{
			name: "another's identity", item: item{Scope: scope.SameAgentIdentityLayer, Class: create},
			asked:     []scope.Scope{scope.SameAgentIdentityLayer},
			questions: []string{"cross-agent", "only for same-agent"},
		},
	} {
		c.item.number = 1
		d := &deciding{
			plan: &restore.Plan{}, request: &Request{Asked: Asked{Scopes: c.asked}}, claims: []claims{{}},
			items: []item{c.item}, lists: []list{proposed}, stale: c.stale,
		}
		b := block{Items: d.items}
		if c.miscount {
			b.Items = nil
		}
		for _, check := range d.checks(&b) {
			want := yes
			for _, words := range c.questions {
				if strings.Contains(check.Question, words) {
					want = no
				}
			}
			if check.Answer != want && check.Answer != afterCommit {
				t.Errorf("%s: %+v, want %s", c.name, check, want)
			}
		}
	}
}
