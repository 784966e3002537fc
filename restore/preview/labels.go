package preview

import (
	"fmt"
	"slices"

	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/restore/statement"
)

// list is a section of the preview for items (protocol sections 8.3 to 8.5).
type list int

const (
	proposed list = iota
	reference
	unwanted
)

// place returns the list and the label of an item, and the reason for both (protocol sections 5 to 7). An
// existing target never removes an item from the proposal.
func (d *deciding) place(i *Item) (list, Label, string) {
	asked := slices.Contains(d.request.Asked.scopes(), i.Scope)
	switch {
	case d.claims[i.run].unread:
		return unwanted, DoNotRestore, "the signer's scopes cannot be read, so the protected files are unknown"
	case d.claims[i.run].changes != nil:
		return unwanted, DoNotRestore, "the signer's change set cannot be used, so the files to replace or remove are unknown"
	case d.claims[i.run].blocks != nil:
		return unwanted, DoNotRestore, "the signer's block table is wrong"
	case i.Scope == scope.RestrictedContext && !asked:
		return unwanted, PrivacyRestricted, "the scope was not requested"
	case i.Scope == scope.RestrictedContext && !i.IsDiverged():
		return proposed, PrivacyRestricted, ""
	case i.Scope == scope.SameAgentIdentityLayer && !d.agentsKnown(i.run):
		return unwanted, Nontransferable, "either the candidate does not name its agent, or --agent was not given"
	case i.Scope == scope.SameAgentIdentityLayer && !d.sameAgent(i.run):
		return unwanted, Nontransferable, "it is another agent's: use /absorb preview instead (protocol section 6)"
	case i.Scope == scope.SameAgentIdentityLayer && !asked:
		return unwanted, DoNotRestore, "the scope was not requested"
	case !asked:
		return reference, RetainReference, fmt.Sprintf("scope %s was not requested", i.Scope)
	case d.unsure && len(d.request.Asked.Scopes) == 0 && revives(i.Scope):
		return reference, HistoricalOnly, "it is unknown whether it is older than the active savepoint"
	case d.stale && len(d.request.Asked.Scopes) == 0 && revives(i.Scope):
		return reference, HistoricalOnly, "the active savepoint is of a later candidate"
	case i.IsDiverged():
		return unwanted, InConflict, "it is not what the change started from"
	}
	return proposed, d.labelOf(i), ""
}

// revives reports whether old items of a scope would reopen questions that were settled since.
func revives(s scope.Scope) bool { return s == scope.OpenQuestions || s == scope.NextActions }

// labelOf returns the label of a proposed item.
func (d *deciding) labelOf(i *Item) Label {
	switch {
	case (i.Class == Different || i.TakesAway()) && d.stale:
		return Superseded
	case i.TakesAway():
		return NeedsConfirmation
	case !i.IsFree():
		return InConflict
	case i.Follow:
		return NeedsConfirmation
	}
	switch i.Scope {
	case scope.SameAgentIdentityLayer, scope.OperatorContext, scope.SourceOfTruthHierarchy, scope.Constraints, scope.Assumptions:
		return NeedsConfirmation
	}
	return RestoreActive
}

// agentsKnown reports whether both the run and the operator have named their agent.
func (d *deciding) agentsKnown(run int) bool {
	return d.claims[run].text["agent_id"] != "" && d.request.Asked.Agent != ""
}

// sameAgent reports whether a run was made by the agent that would continue from it; false if
// either is unknown.
func (d *deciding) sameAgent(run int) bool {
	agent := d.claims[run].text["agent_id"]
	return agent != "" && agent == d.request.Asked.Agent
}

// label sets the list and the label of every item.
func (d *deciding) label() {
	d.lists = make([]list, len(d.items))
	for n := range d.items {
		i := &d.items[n]
		where, name, why := d.place(i)
		d.lists[n], i.Label = where, name
		if why != "" {
			i.Reason = joined(why, i.Reason)
		}
	}
}

// reject removes the items of a rejected conflict from the proposal.
func (d *deciding) reject(c *Conflict) {
	if c.Decision != string(statement.Rejected) {
		return
	}
	for _, number := range c.Numbers {
		i := &d.items[number-1]
		d.lists[number-1], i.Label = unwanted, OperatorRejected
		i.Reason = joined(fmt.Sprintf("%s was rejected", c.ID), i.Reason)
	}
}

func joined(first, second string) string {
	if first == "" {
		return second
	}
	if second == "" {
		return first
	}
	return first + "; " + second
}

// proposes reports whether an item is proposed.
func (d *deciding) proposes(i *Item) bool { return d.lists[i.Number-1] == proposed }

// in returns the items of one list, in order.
func (d *deciding) in(where list) []Item {
	items := []Item{}
	for n := range d.items {
		if d.lists[n] == where {
			items = append(items, d.items[n])
		}
	}
	return items
}
