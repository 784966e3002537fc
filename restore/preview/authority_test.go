package preview_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/trust"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// policyOf pins and revokes these validators.
func policyOf(t *testing.T, pinned, revoked []string) trust.Policy {
	t.Helper()
	place := t.TempDir()
	for _, id := range pinned {
		must(t, trust.Pin(place, id, ""))
	}
	for _, id := range revoked {
		must(t, trust.Revoke(place, id, ""))
	}
	p, err := trust.Load(place)
	must(t, err)
	return p
}

// validatorOf is who has signed a run.
func validatorOf(r *bundletest.Run) string {
	_, rest, _ := strings.Cut(string(r.Read("VALIDATOR_IDENTITY.json")), `"validator_id": "`)
	id, _, _ := strings.Cut(rest, `"`)
	return id
}

// TestTrust: who decides what, for a chain that two validators have signed.
func TestTrust(t *testing.T) {
	s := bareScene(t)
	one := s.add("run-1", map[string]string{"a": "1"})
	two := s.add("run-2", map[string]string{"a": "1"})
	two.Seed[0]++
	two.Edit("STATUS.json", func(f map[string]any) { f["completed_at"] = "2027-01-02T03:04:05Z" })
	two.Sign()
	a, b, c := validatorOf(one), validatorOf(two), strings.Repeat("c", 64)
	if a == b || len(a) != 64 || len(b) != 64 {
		t.Fatalf("validators %q, %q", a, b)
	}
	for name, test := range map[string]struct {
		pinned, revoked []string
		err             error
		names           string // in the error
		conflicts       int    // authority conflicts
	}{
		"nobody":               {conflicts: 2},
		"both":                 {pinned: []string{a, b, c}},
		"the first":            {pinned: []string{a}, err: preview.ErrQuarantined, names: b},
		"the second":           {pinned: []string{b}, err: preview.ErrQuarantined, names: a},
		"another":              {pinned: []string{c}, err: preview.ErrQuarantined, names: a},
		"revoked":              {revoked: []string{b}, err: preview.ErrRevoked, names: b},
		"revoked and pinned":   {pinned: []string{a, b}, revoked: []string{b}, err: preview.ErrRevoked, names: b},
		"revoked and unpinned": {pinned: []string{c}, revoked: []string{b}, err: preview.ErrRevoked, names: b},
		"another is revoked":   {revoked: []string{c}, conflicts: 2},
	} {
		t.Run(name, func(t *testing.T) {
			s.policy = policyOf(t, test.pinned, test.revoked)
			p, err := preview.New(context.Background(), s.restore(), s.request())
			if !errors.Is(err, test.err) || err != nil && !strings.Contains(err.Error(), test.names) {
				t.Fatalf("%v, want %v of %s", err, test.err, test.names)
			}
			if err != nil {
				if p != nil {
					t.Error("there is a preview with the error")
				}
				return
			}
			if n := strings.Count(string(jsonOf(t, p)), `"type":"authority_conflict"`); n != test.conflicts {
				t.Errorf("%d conflicts", n)
			}
			if none := strings.Contains(reportOf(t, p), "## 6. Conflict Register\n\nNone.\n"); none != (test.conflicts == 0) {
				t.Errorf("the report says that there is no conflict: %v", none)
			}
		})
	}
}

// TestTrustIsBound: whatever changes in whom the operator trusts, the approval
// no longer fits.
func TestTrustIsBound(t *testing.T) {
	s := bareScene(t)
	a, c := validatorOf(s.add("run-1", map[string]string{"a": "1"})), strings.Repeat("c", 64)
	ids := map[string]bool{}
	policies := []trust.Policy{{}, policyOf(t, []string{a}, nil), policyOf(t, []string{a, c}, nil), policyOf(t, []string{a}, []string{c}), policyOf(t, nil, []string{c})}
	for _, policy := range policies {
		s.policy = policy
		ids[s.preview().ID()] = true
	}
	if len(ids) != len(policies) {
		t.Errorf("%d identities of %d policies", len(ids), len(policies))
	}
}
