package preview

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/restore/statement"
)

// A Choice is the selection of an operator so far.
type Choice struct {
	Items     []int                     // numbers of the items to restore
	Decisions map[int]statement.Verdict // by number of the conflict
}

// A Draft is a statement in preparation. It approves nothing until the operator submits it.
type Draft struct {
	// Statement approves the items of the choice that no rejected conflict is about, and nothing
	// else; "" where there is none.
	Statement string
	Plan      []string // what it approves, in sentences
	Items     []int    // that it approves
	Open      []int    // conflicts that have yet to be decided
	Taken     []int    // conflicts that it acknowledges without their numbers
	Why       error    // why the statement cannot be given yet; nil: it can
}

// Chosen returns the items that a preview recommends, the initial choice.
func (p *Preview) Chosen() []int {
	if p.block.Approval.Statement == "" {
		return nil
	}
	return p.decided.recommendedSelection().restores
}

// Draft composes the statement for a choice. It is compared with the preview as a commit does, and
// approves what was chosen to the item.
func (p *Preview) Draft(c Choice) Draft {
	d := p.decided
	chosen := p.selectionOf(c)
	p.carry(&chosen)
	var draft Draft
	switch {
	case len(p.held) > 0:
		draft.Why = errors.New("the candidate is in quarantine: it cannot be approved until a person has released it")
		return draft
	case p.block.Approval.Statement == "" && (d.noRoomForResult() || !slices.ContainsFunc(d.in(proposed), func(i Item) bool { return i.IsFree() })):
		draft.Why = errors.New(d.planText(d.recommendedSelection()))
		return draft
	case len(chosen.restores) == 0:
		draft.Why = errors.New("no item is chosen, so there is nothing to approve")
		return draft
	}
	if draft.Statement = p.shortest(chosen, c); draft.Statement == "" {
		draft.Why = errors.New("also choose a file that is not removed: a bundle needs one")
		return draft
	}
	exactly := strings.HasPrefix(draft.Statement, Exactly)
	for _, n := range d.undecided(chosen.restores) {
		switch {
		case c.Decisions[n] != "":
		case exactly && !d.conflicts[n-1].ByName:
			draft.Taken = append(draft.Taken, n)
		default:
			draft.Open = append(draft.Open, n)
		}
	}
	chosen.acknowledge = slices.Sorted(slices.Values(slices.Concat(chosen.acknowledge, draft.Taken)))
	draft.Items, draft.Plan = chosen.restores, []string{d.planText(chosen)}
	if part := d.partText(chosen); part != "" {
		draft.Plan = append(draft.Plan, part)
	}
	if len(draft.Open) > 0 {
		draft.Why = fmt.Errorf("%w: %s", ErrUndecided, statement.FormatConflicts(draft.Open))
	}
	return draft
}

// selectionOf returns the selection of a choice.
func (p *Preview) selectionOf(c Choice) selection {
	d := p.decided
	var chosen selection
	in := make([]bool, len(d.items)+1) // by number
	for _, n := range c.Items {
		in[n] = true
	}
	for _, n := range slices.Sorted(maps.Keys(c.Decisions)) {
		switch c.Decisions[n] {
		case statement.Rejected:
			chosen.reject = append(chosen.reject, n)
			for _, number := range d.conflicts[n-1].Numbers {
				in[number] = false
			}
		case statement.Acknowledged:
			chosen.acknowledge = append(chosen.acknowledge, n)
		}
	}
	for n := range d.items {
		i := &d.items[n]
		switch {
		case d.lists[n] != proposed:
		case in[i.Number]:
			chosen.restores = append(chosen.restores, i.Number)
		case !i.IsFree():
			chosen.taken = append(chosen.taken, i.Number)
		case i.Scope == scope.RestrictedContext:
			chosen.secrets = append(chosen.secrets, i.Number)
		default:
			chosen.dropped = append(chosen.dropped, i.Number)
		}
	}
	return chosen
}

// carry adds an unchanged item to a plan of removals alone, as an approval does, because a bundle requires an
// output.
func (p *Preview) carry(chosen *selection) {
	all := p.decided.items
	if slices.ContainsFunc(chosen.restores, func(n int) bool { return !all[n-1].Removed }) {
		return
	}
	for at, n := range chosen.dropped {
		if i := &all[n-1]; len(chosen.restores) > 0 && !i.Removed && i.Class == Identical {
			chosen.dropped = slices.Delete(chosen.dropped, at, at+1)
			to, _ := slices.BinarySearch(chosen.restores, n)
			chosen.restores = slices.Insert(chosen.restores, to, n)
			return
		}
	}
}

// shortest returns the statement for a plan that names its items or, if that is long, its scopes; "" for
// none.
func (p *Preview) shortest(chosen selection, c Choice) string {
	d := p.decided
	clauses := ""
	for _, verb := range []struct {
		word    string
		verdict statement.Verdict
	}{{"Acknowledge", statement.Acknowledged}, {"Reject", statement.Rejected}, {"Resolve", statement.Resolved}} {
		var numbers []int
		for n, verdict := range c.Decisions {
			if verdict == verb.verdict {
				numbers = append(numbers, n)
			}
		}
		if len(numbers) > 0 {
			clauses += " " + verb.word + " " + statement.FormatConflicts(numbers) + "."
		}
	}
	if len(chosen.reject) == 0 && slices.Equal(chosen.restores, d.exactSelection().restores) {
		if text := Exactly + clauses; p.approves(text, chosen) {
			return text
		}
	}
	restricted := d.numbers(func(i *Item) bool { return i.Scope == scope.RestrictedContext })
	best := "Approved: restore items " + statement.FormatItemsAlone(chosen.restores, restricted) + " only." + clauses
	if !p.approves(best, chosen) {
		best = ""
	}
	if best != "" && len(best) <= readable {
		return best
	}
	text := "Approved: restore " + statement.FormatScopes(d.scopesOf(chosen.restores)) + " only."
	if out := d.inScopesOf(slices.Sorted(slices.Values(slices.Concat(chosen.taken, chosen.secrets, chosen.dropped))), chosen.restores); len(out) > 0 {
		text += " Do not restore items " + statement.FormatItems(out) + "."
	}
	if text += clauses; (best == "" || len(text) < len(best)) && p.approves(text, chosen) {
		return text
	}
	return best
}

// approves reports whether a statement approves the items of a plan, and no others, once all
// conflicts are decided.
func (p *Preview) approves(text string, chosen selection) bool {
	said, err := statement.Parse(text)
	if err != nil {
		return false
	}
	a := &Approval{preview: p, statement: said, excluded: map[int]string{}}
	return a.decide() == nil && a.choose() == nil && slices.Equal(a.items, chosen.restores)
}
