package preview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/internal/visible"
	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/restore/statement"
)

// identityReview returns the identity review of protocol section 6.
func (d *deciding) identityReview() IdentityReview {
	v := IdentityReview{Operator: d.request.Asked.Agent, Candidate: claimed(d.claims, "agent_id")}
	same := len(d.runs) > 0
	v.Known = v.Operator != ""
	for n := range d.runs {
		same = same && d.sameAgent(n)
		v.Known = v.Known && d.claims[n].text["agent_id"] != ""
	}
	if v.Known {
		v.Same = &same
	}
	v.Items = len(d.numbers(func(i *Item) bool { return i.Scope == scope.SameAgentIdentityLayer }))
	v.Proposed = len(d.numbers(func(i *Item) bool { return i.Scope == scope.SameAgentIdentityLayer && d.proposes(i) }))
	v.Possible = len(d.numbers(func(i *Item) bool { return i.Scope != scope.SameAgentIdentityLayer && i.Follow }))
	v.Rules = d.request.Followed.Digest()
	v.Present, v.Allowed = d.present(v.Items), v.Proposed > 0
	if v.Operator == "" {
		v.Operator = Unknown
	}
	return v
}

// present reports whether there are items of a kind; nil if that is unknown. That there are none is known
// only if every signer has declared scopes.
func (d *deciding) present(items int) *bool {
	found := items > 0
	if !found && slices.ContainsFunc(d.claims, func(c claims) bool { return !c.scopes.Declared() }) {
		return nil
	}
	return &found
}

func (d *deciding) privacyReview() PrivacyReview {
	v := PrivacyReview{Rules: d.request.Privacy.Digest(), Runs: d.request.Automatic.Digest()}
	v.Items = len(d.numbers(func(i *Item) bool { return i.Scope == scope.RestrictedContext }))
	v.Proposed = len(d.numbers(func(i *Item) bool { return i.Scope == scope.RestrictedContext && d.proposes(i) }))
	v.Present, v.Approval = d.present(v.Items), v.Proposed > 0
	v.Adequate = true
	for n := range d.items {
		if i := &d.items[n]; i.Scope == scope.RestrictedContext {
			v.Adequate = v.Adequate && d.claims[i.run].text["privacy_level"] == "restricted"
		}
	}
	return v
}

// AnswerIfKnown returns an answer, or "unknown" for nil.
func AnswerIfKnown(known *bool) string {
	if known == nil {
		return Unknown
	}
	return Answer(*known)
}

// The answers of a check.
const (
	Yes         = "yes"
	No          = "no"
	afterCommit = "after the commit"
)

// Answer returns the answer of a check.
func Answer(good bool) string {
	if good {
		return Yes
	}
	return No
}

// checks is the state protection checklist (protocol section 14), with the further
// confirmations of section 8.8. Each answer is computed here from what would be done. (Current
// state is unchanged at this point: see New.)
func (d *deciding) checks(b *Block) []Check {
	restricted := d.proposedUnasked(scope.RestrictedContext)
	foreign := d.numbers(func(i *Item) bool {
		return d.proposes(i) && i.Scope == scope.SameAgentIdentityLayer && !d.sameAgent(i.run)
	})
	identity := d.proposedUnasked(scope.SameAgentIdentityLayer)
	unflagged := d.unflagged()
	revived := d.numbers(func(i *Item) bool {
		return (d.stale || d.unsure) && d.proposes(i) && revives(i.Scope) && len(d.request.Asked.Scopes) == 0
	})
	unlabeled := len(d.numbers(func(i *Item) bool { return d.stale && i.Class == Different && i.Label == InConflict }))
	return []Check{
		{"Was current state left as it is?", Yes, d.observedText()},
		{"Did I preserve current higher-authority instructions?", Answer(checkTrust(d.plan, d.request.Trust) == nil), "no validator is revoked or, while others are pinned, unpinned"},
		{"Did I avoid restoring unapproved items?", Answer(len(b.Items)+len(b.ReferenceOnly)+len(b.DoNotRestore) == len(d.items)), "nothing is written without an approval; " + areProposed(len(b.Items), len(d.items), "item")},
		{"Did I avoid treating historical status as current status?", Answer(len(revived) == 0), d.stalenessText()},
		{"Were stale items labeled?", Answer(unlabeled == 0), d.staleText(unlabeled)},
		{"Did I flag all known conflicts?", Answer(unflagged == 0), fmt.Sprintf("the register has %s; existing targets without a conflict: %d", visible.Count(len(d.conflicts), "conflict"), unflagged)},
		{"Did I exclude or approve restricted context?", Answer(len(restricted) == 0), fmt.Sprintf("%s, %s of them not requested", areProposed(b.Privacy.Proposed, b.Privacy.Items, "restricted item"), visible.Number(len(restricted)))},
		{"Did I avoid cross-agent identity restoration?", Answer(len(foreign) == 0), visible.Count(len(foreign), "identity item") + " of another agent " + isOrAre(len(foreign)) + " proposed"},
		{"Did I restore identity-layer items only for same-agent savepoints and only with approval?", Answer(len(identity)+len(foreign) == 0), areProposed(b.Identity.Proposed, b.Identity.Items, "identity item")},
		{"Did I generate a new savepoint after commit?", afterCommit, "it is prepared before anything is written, and published when all is in place"},
	}
}

// proposedUnasked returns the items of a protected scope that are proposed although the scope
// was not requested.
func (d *deciding) proposedUnasked(s scope.Scope) []int {
	if slices.Contains(d.request.Asked.Scopes, s) {
		return nil
	}
	return d.numbers(func(i *Item) bool { return d.proposes(i) && i.Scope == s })
}

// unflagged counts the proposed items that are blocked and have no conflict.
func (d *deciding) unflagged() int {
	flagged := map[int]bool{}
	for _, c := range d.conflicts {
		for _, number := range c.Numbers {
			flagged[number] = flagged[number] || c.Type == StateConflict
		}
	}
	return len(d.numbers(func(i *Item) bool { return d.proposes(i) && !i.IsFree() && !flagged[i.Number] }))
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
		return "it is unknown whether the candidate is older than that of the active savepoint, so it is treated as older"
	case d.stale:
		return "the active savepoint is of a later candidate, and outdated items are labeled"
	}
	return "the candidate is not older than that of the active savepoint"
}

// approvalOf lists the required decisions.
func (d *deciding) approvalOf() Wanted {
	p := d.recommendedSelection()
	a := Wanted{Status: Undecided, Required: []string{}, Statement: p.statement, Plan: d.planText(p)}
	for n := range d.items {
		if d.lists[n] == proposed {
			a.Required = append(a.Required, d.items[n].ID)
		}
	}
	for n := range d.conflicts {
		if d.conflicts[n].Decision == Undecided {
			a.Required = append(a.Required, d.conflicts[n].ID)
		}
	}
	return a
}

// IsWhole reports whether the recommended statement approves the whole proposal.
func (a *Wanted) IsWhole() bool { return strings.HasPrefix(a.Statement, Exactly) }

// Exactly is the statement that approves the whole proposal.
const Exactly = statement.Exactly
