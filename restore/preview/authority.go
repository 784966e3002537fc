package preview

import (
	"errors"
	"fmt"

	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/trust"
)

// Reasons why the trust policy forbids a restore.
var (
	// ErrRevoked: a validator of the candidate is revoked.
	ErrRevoked = errors.New("the validator is revoked")
	// ErrQuarantined: others are pinned, and a validator of the candidate is not.
	ErrQuarantined = errors.New("the candidate is quarantined: its validator is not pinned, and others are")
)

// An UntrustedError reports a candidate of a validator that the operator does not trust: [ErrRevoked] or
// [ErrQuarantined].
type UntrustedError struct {
	ValidatorID string
	Reason      string // why the validator was revoked; "" where that is not known
	run         string
	err         error
}

func (e *UntrustedError) Error() string {
	return fmt.Sprintf("%s is signed by validator %s: %v", e.run, e.ValidatorID, e.err)
}

// Unwrap returns the reason.
func (e *UntrustedError) Unwrap() error { return e.err }

// checkTrust requires every validator of a candidate to be pinned, if any is. A revoked one is
// reported first, wherever it is in the chain.
func checkTrust(p *restore.Plan, policy trust.Policy) error {
	for _, barred := range []struct {
		status trust.Status
		err    error
	}{{trust.Revoked, ErrRevoked}, {trust.Unpinned, ErrQuarantined}} {
		for run := range p.Runs() {
			if id := run.Bundle().ValidatorID(); policy.Of(id) == barred.status {
				return &UntrustedError{id, policy.Reason(id), RunText(run.Bundle()), barred.err}
			}
		}
	}
	return nil
}
