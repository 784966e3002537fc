package preview

import (
	"errors"
	"fmt"

	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/trust"
)

// Why the operator's trust forbids a restore.
var (
	// ErrRevoked: a validator of the candidate is revoked.
	ErrRevoked = errors.New("the validator is revoked")
	// ErrQuarantined: others are pinned, and a validator of the candidate is not.
	ErrQuarantined = errors.New("the candidate is quarantined: its validator is not pinned, and others are")
)

// checkTrust wants every validator of a candidate to be pinned, or nobody to be.
// One that is revoked comes first, wherever it is in the chain.
func checkTrust(p *restore.Plan, policy trust.Policy) error {
	for _, refused := range []struct {
		standing trust.Standing
		err      error
	}{{trust.Revoked, ErrRevoked}, {trust.Unpinned, ErrQuarantined}} {
		for run := range p.Runs() {
			if id := run.Bundle().ValidatorID(); policy.Of(id) == refused.standing {
				return fmt.Errorf("%s is signed by validator %s: %w", RunText(run.Bundle()), id, refused.err)
			}
		}
	}
	return nil
}
