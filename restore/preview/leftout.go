package preview

import (
	"slices"

	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/privacy"
	"github.com/spectrumfs/spectrum/restore/scope"
)

// LeftOut returns the scopes of the items, by their targets, that a preview of a plan proposes
// only when those scopes are asked for. Secrets are the names that are restricted whatever a
// signer declares.
func LeftOut(p *restore.Plan, secrets privacy.Rules) map[string]scope.Scope {
	d := &deciding{claims: claimsOfAll(p), request: &Request{Privacy: secrets}}
	left := map[string]scope.Scope{}
	for _, i := range itemsIn(p) {
		if s, _ := d.scopeOf(i.run, i.path); !slices.Contains(scope.Defaults(), s) {
			left[i.Path] = s
		}
	}
	return left
}
