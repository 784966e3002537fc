package preview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/restore/quarantine"
	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/restore/trust"
)

// quarantined applies the rules of protocol section 12 that can be computed from
// the candidate and from what the operator trusts, in their order.
func (d *deciding) quarantined() []finding {
	found := []finding{}
	for _, rule := range []func() []finding{
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

// highImpact are the scopes that decide what later work follows.
var highImpact = []scope.Scope{scope.SameAgentIdentityLayer, scope.OperatorContext, scope.SourceOfTruthHierarchy, scope.Constraints}

// unknownSource: nobody has pinned the validator, and the candidate would change
// what later work follows.
func (d *deciding) unknownSource() []finding {
	n := 0
	for run := range d.plan.Runs() {
		items := d.numbers(func(i *item) bool { return i.run == n && slices.Contains(highImpact, i.Scope) })
		n++
		id := run.Bundle().ValidatorID()
		if len(items) > 0 && d.request.Trust.Of(id) == trust.Unknown {
			return one(quarantine.SourceUnknown, "validator %s is not pinned, and %d items decide what later work follows, the first is %s (%s)",
				id, len(items), itemID(items[0]), d.items[items[0]-1].Scope)
		}
	}
	return nil
}

// foreignIdentity: another agent's identity layer is asked for.
func (d *deciding) foreignIdentity() []finding {
	if !slices.Contains(d.request.Asked.scopes(), scope.SameAgentIdentityLayer) {
		return nil
	}
	for n := range d.runs {
		agent := d.claims[n].text["agent_id"]
		items := d.numbers(func(i *item) bool { return i.run == n && i.Scope == scope.SameAgentIdentityLayer })
		if agent != "" && d.request.Asked.Agent != "" && !d.sameAgent(n) && len(items) > 0 {
			return one(quarantine.CrossAgentIdentity, "run %q is of agent %q and holds an identity layer of %d items; the operator's agent is %q",
				d.runs[n], agent, len(items), d.request.Asked.Agent)
		}
	}
	return nil
}

// undeclaredSecrets: the signer says of a name that usually holds a secret that
// it is something else, so nobody has said what it is needed for.
func (d *deciding) undeclaredSecrets() []finding {
	if len(d.undeclared) == 0 {
		return nil
	}
	return one(quarantine.RestrictedWithoutNeed, "%d names that usually hold secrets are declared something else, the first is %q", len(d.undeclared), d.undeclared[0])
}

// contradictions: what TASK_SPEC.json says for machines cannot be understood, or
// is about nothing.
func (d *deciding) contradictions() []finding {
	for n, c := range d.claims {
		if len(c.faults) > 0 {
			return one(quarantine.Contradiction, "run %q: TASK_SPEC.json: %s", d.runs[n], c.faults[0])
		}
		if unused := c.scopes.Unused(slices.Values(d.pathsOf(n))); len(unused) > 0 {
			return one(quarantine.Contradiction, "run %q: constraints.restore_scopes speaks of %q, which no output fits", d.runs[n], unused[0])
		}
	}
	return nil
}

func (d *deciding) pathsOf(run int) []string {
	var paths []string
	for n := range d.items {
		if d.items[n].run == run {
			paths = append(paths, d.items[n].output.Path().String())
		}
	}
	return paths
}

// badStatus: the candidate says of itself that it should not be used.
func (d *deciding) badStatus() []finding {
	for n, c := range d.claims {
		switch status := c.text["artifact_status"]; status {
		case "deprecated", "quarantined", "rejected":
			return one(quarantine.ArtifactStatus, "run %q says of itself that it is %s", d.runs[n], status)
		}
	}
	return nil
}

// openAuthority: several validators have signed sources of truth, and the operator
// has not said whom he believes.
func (d *deciding) openAuthority() []finding {
	validators := d.validators()
	first := ""
	for n := range d.items {
		i := &d.items[n]
		switch id := validators[i.run]; {
		case i.Scope != scope.SourceOfTruthHierarchy, d.request.Trust.Of(id) == trust.Pinned, id == first:
		case first == "":
			first = id
		default:
			return one(quarantine.UnresolvedAuthority, "validators %s and %s have both signed sources of truth, and neither is pinned", first, id)
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

// maxDetail bounds what is said of a finding, in bytes: names can be long.
const maxDetail = 1000

func one(rule quarantine.Rule, format string, args ...any) []finding {
	detail := fmt.Sprintf(format, args...)
	if len(detail) > maxDetail {
		detail = strings.ToValidUTF8(detail[:maxDetail], "") + " …"
	}
	return []finding{{rule, detail}}
}
