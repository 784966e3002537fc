package preview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/restore/statement"
)

// identityReview is protocol section 6 in numbers.
func (d *deciding) identityReview() identityReview {
	v := identityReview{Operator: d.request.Asked.Agent, Candidate: said(d.claims, "agent_id")}
	same := len(d.runs) > 0
	v.Known = v.Operator != ""
	for n := range d.runs {
		same = same && d.sameAgent(n)
		v.Known = v.Known && d.claims[n].text["agent_id"] != ""
	}
	if v.Known {
		v.Same = &same
	}
	v.Items = len(d.numbers(func(i *item) bool { return i.Scope == scope.SameAgentIdentityLayer }))
	v.Proposed = len(d.numbers(func(i *item) bool { return i.Scope == scope.SameAgentIdentityLayer && d.proposes(i) }))
	v.Possible = len(d.numbers(func(i *item) bool { return i.Scope != scope.SameAgentIdentityLayer && i.follow }))
	v.Rules = d.request.Followed.Digest()
	v.Present, v.Allowed = d.present(v.Items), v.Proposed > 0
	if v.Operator == "" {
		v.Operator = unknown
	}
	return v
}

// present reports whether there are items of a kind. That there are none is known only where
// every signer has declared scopes: nil is not known.
func (d *deciding) present(items int) *bool {
	found := items > 0
	if !found && slices.ContainsFunc(d.claims, func(c claims) bool { return !c.scopes.Declared() }) {
		return nil
	}
	return &found
}

func (d *deciding) privacyReview() privacyReview {
	v := privacyReview{Rules: d.request.Privacy.Digest(), Runs: d.request.Automatic.Digest()}
	v.Items = len(d.numbers(func(i *item) bool { return i.Scope == scope.RestrictedContext }))
	v.Proposed = len(d.numbers(func(i *item) bool { return i.Scope == scope.RestrictedContext && d.proposes(i) }))
	v.Present, v.Approval = d.present(v.Items), v.Proposed > 0
	v.Adequate = true
	for n := range d.items {
		if i := &d.items[n]; i.Scope == scope.RestrictedContext {
			v.Adequate = v.Adequate && d.claims[i.run].text["privacy_level"] == "restricted"
		}
	}
	return v
}

// answer3 is an answer where the law allows "unknown".
func answer3(known *bool) string {
	if known == nil {
		return unknown
	}
	return answer(*known)
}

// The answers of a check.
const (
	yes         = "yes"
	no          = "no"
	afterCommit = "after the commit"
)

func answer(good bool) string {
	if good {
		return yes
	}
	return no
}

// checks is the state protection checklist (protocol section 14), with the further
// confirmations of section 8.8. Each answer is computed here from what would be done. (Current
// state is unchanged at this point: see New.)
func (d *deciding) checks(b *block) []check {
	restricted := d.proposedUnasked(scope.RestrictedContext)
	foreign := d.numbers(func(i *item) bool {
		return d.proposes(i) && i.Scope == scope.SameAgentIdentityLayer && !d.sameAgent(i.run)
	})
	identity := d.proposedUnasked(scope.SameAgentIdentityLayer)
	unflagged := d.unflagged()
	revived := d.numbers(func(i *item) bool {
		return (d.stale || d.unsure) && d.proposes(i) && revives(i.Scope) && len(d.request.Asked.Scopes) == 0
	})
	unlabeled := len(d.numbers(func(i *item) bool { return d.stale && i.Class == different && i.Label == inConflict }))
	return []check{
		{"Was current state left as it is?", yes, d.observedText()},
		{"Did I preserve current higher-authority instructions?", answer(checkTrust(d.plan, d.request.Trust) == nil), "no validator is revoked, and none is unpinned while others are pinned"},
		{"Did I avoid restoring unapproved items?", answer(len(b.Items)+len(b.ReferenceOnly)+len(b.DoNotRestore) == len(d.items)), fmt.Sprintf("nothing is written without an approval; %d of %d items are proposed", len(b.Items), len(d.items))},
		{"Did I avoid treating historical status as current status?", answer(len(revived) == 0), d.stalenessText()},
		{"Were stale items labeled?", answer(unlabeled == 0), d.staleText(unlabeled)},
		{"Did I flag all known conflicts?", answer(unflagged == 0), fmt.Sprintf("the register has %s; targets in the way without one: %d", count(len(d.conflicts), "conflict"), unflagged)},
		{"Did I exclude or approve restricted context?", answer(len(restricted) == 0), fmt.Sprintf("%d of %d restricted items are proposed, %d of them unasked", b.Privacy.Proposed, b.Privacy.Items, len(restricted))},
		{"Did I avoid cross-agent identity restoration?", answer(len(foreign) == 0), fmt.Sprintf("%d identity items of another agent are proposed", len(foreign))},
		{"Did I restore identity-layer items only for same-agent savepoints and only with approval?", answer(len(identity)+len(foreign) == 0), fmt.Sprintf("%d of %d identity items are proposed", b.Identity.Proposed, b.Identity.Items)},
		{"Did I generate a new savepoint after commit?", afterCommit, "it is prepared before anything is written, and published when all is in place"},
	}
}

// proposedUnasked returns the items of a protected scope that are proposed although the scope
// was not requested.
func (d *deciding) proposedUnasked(s scope.Scope) []int {
	if slices.Contains(d.request.Asked.Scopes, s) {
		return nil
	}
	return d.numbers(func(i *item) bool { return d.proposes(i) && i.Scope == s })
}

// unflagged counts the proposed items that something stands in the way of and
// that no conflict is about.
func (d *deciding) unflagged() int {
	flagged := map[int]bool{}
	for _, c := range d.conflicts {
		for _, number := range c.items {
			flagged[number] = flagged[number] || c.Type == stateConflict
		}
	}
	return len(d.numbers(func(i *item) bool { return d.proposes(i) && !i.isFree() && !flagged[i.number] }))
}

func (d *deciding) staleText(unlabeled int) string {
	switch {
	case d.unsure:
		return "unknown: the candidate and the active savepoint do not both have a date"
	case !d.stale:
		return "nothing is stale"
	}
	return fmt.Sprintf("stale items without a label: %d", unlabeled)
}

func (d *deciding) stalenessText() string {
	switch {
	case d.request.Current.ID == "":
		return "the restore root has no active savepoint"
	case d.unsure:
		return "whether the candidate is older than that of the active savepoint is unknown, so it is treated as if it were"
	case d.stale:
		return "the active savepoint is of a later candidate, and what is old is labeled"
	}
	return "the candidate is not older than that of the active savepoint"
}

// approvalOf lists what is to be decided.
func (d *deciding) approvalOf() approval {
	p := d.recommendedPlan()
	a := approval{Status: pending, Required: []string{}, Statement: p.statement, Plan: d.planText(p)}
	for n := range d.items {
		if d.lists[n] == proposed {
			a.Required = append(a.Required, d.items[n].ID)
		}
	}
	for n := range d.conflicts {
		if d.conflicts[n].Decision == pending {
			a.Required = append(a.Required, d.conflicts[n].ID)
		}
	}
	return a
}

// isWhole reports whether all that is proposed is what is recommended.
func (a *approval) isWhole() bool { return strings.HasPrefix(a.Statement, Exactly) }

// Exactly is the statement that approves all that a preview proposes.
const Exactly = statement.Exactly
