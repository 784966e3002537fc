package preview

import (
	"fmt"
	"slices"

	"github.com/spectrumfs/spectrum/internal/visible"
	"github.com/spectrumfs/spectrum/restore/quarantine"
	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/restore/trust"
)

// quarantined applies the rules of protocol section 12 that can be computed from
// the candidate and from what the operator trusts, in their order.
func (d *deciding) quarantined() []quarantine.Finding {
	found := []quarantine.Finding{}
	for _, rule := range []func() []quarantine.Finding{
		d.unknownSource,
		d.foreignIdentity,
		d.undeclaredSecrets,
		d.contradictions,
		d.badStatus,
		d.openAuthority,
	} {
		found = append(found, rule()...)
	}
	return found
}

// highImpact are the scopes that later work follows.
var highImpact = []scope.Scope{scope.SameAgentIdentityLayer, scope.OperatorContext, scope.SourceOfTruthHierarchy, scope.Constraints}

// unknownSource finds runs of validators that are not pinned with items in scopes that later work follows.
func (d *deciding) unknownSource() []quarantine.Finding {
	var found []quarantine.Finding
	for n, id := range d.validators() {
		items := d.ofRun(n, func(i *Item) bool { return slices.Contains(highImpact, i.Scope) })
		if len(items) > 0 && d.request.Trust.Of(id) == trust.Unknown {
			found = append(found, one(quarantine.SourceUnknown, "%s: validator %s is not pinned, and %s what later work follows; the first is %s (%s)",
				d.runTexts[n], id, decides(len(items)), ItemID(items[0]), d.items[items[0]-1].Scope))
		}
	}
	return few(found)
}

func decides(n int) string {
	if n == 1 {
		return "1 item decides"
	}
	return fmt.Sprintf("%d items decide", n)
}

// foreignIdentity finds identity layers of other agents, if that scope is requested.
func (d *deciding) foreignIdentity() []quarantine.Finding {
	if !slices.Contains(d.request.Asked.scopes(), scope.SameAgentIdentityLayer) {
		return nil
	}
	var found []quarantine.Finding
	for n := range d.runs {
		items := d.ofRun(n, func(i *Item) bool { return i.Scope == scope.SameAgentIdentityLayer })
		if d.agentsKnown(n) && !d.sameAgent(n) && len(items) > 0 {
			found = append(found, one(quarantine.CrossAgentIdentity, "%s is of agent %q and holds an identity layer of %s; the operator's agent is %q",
				d.runTexts[n], d.claims[n].text["agent_id"], visible.Count(len(items), "item"), d.request.Asked.Agent))
		}
	}
	return few(found)
}

// undeclaredSecrets finds names that usually hold secrets and that the signer declares with another scope.
func (d *deciding) undeclaredSecrets() []quarantine.Finding {
	if len(d.undeclared) == 0 {
		return nil
	}
	return []quarantine.Finding{one(quarantine.RestrictedWithoutNeed, "%s that usually hold secrets have another declared scope; the first is %q", visible.Count(len(d.undeclared), "name"), d.undeclared[0])}
}

// contradictions finds declarations in TASK_SPEC.json, CHANGES or BLOCKS that cannot be understood, or that
// match no output.
func (d *deciding) contradictions() []quarantine.Finding {
	var found []quarantine.Finding
	for n, c := range d.claims {
		for _, fault := range c.faults {
			found = append(found, one(quarantine.Contradiction, "%s: TASK_SPEC.json: %s", d.runTexts[n], fault))
		}
		if c.changes != nil {
			found = append(found, one(quarantine.Contradiction, "%s: %v", d.runTexts[n], c.changes))
		}
		if c.blocks != nil {
			found = append(found, one(quarantine.Contradiction, "%s: %v", d.runTexts[n], c.blocks))
		}
		for _, unused := range c.scopes.Unused(slices.Values(d.pathsOf(n))) {
			found = append(found, one(quarantine.Contradiction, "%s: constraints.restore_scopes has %q, which matches no output", d.runTexts[n], unused))
		}
	}
	return few(found)
}

func (d *deciding) pathsOf(run int) []string {
	var paths []string
	for _, number := range d.ofRun(run, func(*Item) bool { return true }) {
		paths = append(paths, d.items[number-1].path)
	}
	return paths
}

// badStatus finds runs that declare that they should not be used.
func (d *deciding) badStatus() []quarantine.Finding {
	var found []quarantine.Finding
	for n, c := range d.claims {
		if status := c.status(); slices.Contains(badStatuses, status) {
			found = append(found, one(quarantine.ArtifactStatus, "%s declares itself as %s", d.runTexts[n], status))
		}
	}
	return few(found)
}

// badStatuses are the values of artifact_status of candidates that should not be used.
var badStatuses = []string{"deprecated", "quarantined", "rejected"}

// openAuthority finds several validators that have signed sources of truth and are not pinned.
func (d *deciding) openAuthority() []quarantine.Finding {
	validators := d.validators()
	first := ""
	for n := range d.items {
		i := &d.items[n]
		switch id := validators[i.run]; {
		case i.Scope != scope.SourceOfTruthHierarchy, d.request.Trust.Of(id) == trust.Pinned, id == first:
		case first == "":
			first = id
		default:
			return []quarantine.Finding{one(quarantine.UnresolvedAuthority, "validators %s and %s have both signed sources of truth, and neither is pinned", first, id)}
		}
	}
	return nil
}

func (d *deciding) validators() []string {
	var ids []string
	for run := range d.plan.Runs() {
		ids = append(ids, run.Bundle().ValidatorID())
	}
	return ids
}

func one(rule quarantine.Rule, format string, args ...any) quarantine.Finding {
	return quarantine.Finding{Rule: rule, Detail: clipped(fmt.Sprintf(format, args...))}
}

// maxFindings bounds the findings of one rule.
const maxFindings = 20

// few returns the first findings of a rule, and one that counts the others: a release covers what was shown,
// and the count.
func few(found []quarantine.Finding) []quarantine.Finding {
	if len(found) <= maxFindings {
		return found
	}
	more := one(found[0].Rule, "this rule has %s", visible.Count(len(found)-maxFindings, "more finding"))
	return append(found[:maxFindings], more)
}
