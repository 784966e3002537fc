package preview

import (
	"iter"
	"slices"

	"github.com/spectrumfs/spectrum/restore/privacy"
	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// LeftOut returns the scopes of the items, by their targets, that a preview of a plan proposes only if those
// scopes are requested. Secrets are the names that are restricted in any case.
func LeftOut(runs []Scoped, secrets privacy.Rules) map[string]scope.Scope {
	d := &deciding{request: &Request{Privacy: secrets}}
	left := map[string]scope.Scope{}
	for n, run := range runs {
		d.claims = append(d.claims, claimsOf(run.TaskSpec))
		for target, path := range run.Outputs {
			if s, _ := d.scopeOf(n, path); !slices.Contains(scope.Defaults(), s) {
				left[target] = s
			}
		}
	}
	return left
}

// Scoped is a run with the declared scopes of its outputs.
type Scoped struct {
	TaskSpec canonjson.Object
	Outputs  iter.Seq2[string, string] // their paths beneath the restore root, and beneath the project root
}
