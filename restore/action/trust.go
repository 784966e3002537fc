package action

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/restore/trust"
)

// A Source is a savepoint of this host as the candidate of a preview. The host has signed it, and other
// validators have signed the files that it is of.
type Source struct {
	Savepoint  savepoint.Savepoint
	Savepoints *savepoint.Store
	Preview    func(id string) ([]byte, error) // a kept record of a preview; savepoints of older versions require it
}

// A SignerError reports a savepoint whose files were signed by a revoked validator. It is a
// [preview.ErrRevoked].
type SignerError struct {
	Savepoint string // ID
	Run       preview.Signed
	Reason    string // why the validator was revoked; "" where that is not known
}

func (e *SignerError) Error() string {
	return fmt.Sprintf("run %q, which savepoint %s is of, is signed by validator %s: %v", e.Run.RunID, e.Savepoint, e.Run.ValidatorID, preview.ErrRevoked)
}

// Unwrap returns the reason.
func (e *SignerError) Unwrap() error { return preview.ErrRevoked }

// Trust returns the policy for the savepoint. A [*SignerError] reports that one of its signers is revoked,
// wherever it is in the chain, and also if the key of the host is pinned. The key of the host needs no pin
// unless a signer is unpinned, the first of which is returned, or the signers are not known.
func (s Source) Trust(policy trust.Policy, host string) (trust.Policy, preview.Signed, error) {
	runs, known, err := s.signers()
	if err != nil {
		return trust.Policy{}, preview.Signed{}, err
	}
	is := func(status trust.Status) int {
		return slices.IndexFunc(runs, func(run preview.Signed) bool { return policy.Of(run.ValidatorID) == status })
	}
	if i := is(trust.Revoked); i >= 0 {
		return trust.Policy{}, preview.Signed{}, &SignerError{s.Savepoint.ID(), runs[i], policy.Reason(runs[i].ValidatorID)}
	}
	if !known {
		return policy, preview.Signed{}, nil
	}
	if i := is(trust.Unpinned); i >= 0 {
		return policy, runs[i], nil
	}
	return policy.WithOwn(host), preview.Signed{}, nil
}

// signers returns the runs that the savepoint goes back to: through the savepoints that were restored in
// between, also if their commits were undone. They are known if none of these is missing.
func (s Source) signers() (runs []preview.Signed, known bool, err error) {
	found, err := s.Savepoints.Survey("")
	if err != nil {
		return nil, false, err
	}
	all := slices.Concat(found.Standing, found.Retired)
	seen := map[string]bool{}
	for at := s.Savepoint; !seen[at.ID()]; {
		seen[at.ID()] = true
		var from string
		if runs, from, err = s.candidateOf(at); err != nil {
			return nil, false, nil //nolint:nilerr // the signers are unknown
		}
		before := slices.IndexFunc(all, func(sp savepoint.Savepoint) bool { return sp.ID() == from })
		if before < 0 {
			bySavepoint := func(run preview.Signed) bool { return run.ValidatorID == at.ValidatorID() }
			return runs, !slices.ContainsFunc(runs, bySavepoint), nil
		}
		at = all[before]
	}
	return nil, false, nil
}

// candidateOf returns the signed runs that a commit has restored, and the ID of their candidate, as its
// savepoint has signed them. For a savepoint of an older version it returns them from the record of the
// preview.
func (s Source) candidateOf(sp savepoint.Savepoint) (runs []preview.Signed, id string, err error) {
	for _, text := range sp.Texts(Signers) {
		validator, run, _ := strings.Cut(text, " ")
		runs = append(runs, preview.Signed{RunID: run, ValidatorID: validator})
	}
	if len(runs) > 0 {
		return runs, sp.Said(SourceID), nil
	}
	if s.Preview == nil {
		return nil, "", errors.New("the savepoint has no signers")
	}
	raw, err := s.Preview(sp.Said("preview_id"))
	if err != nil {
		return nil, "", err
	}
	record, err := preview.ParseRecord(raw, sp.Said("preview_id"))
	if err != nil {
		return nil, "", err
	}
	return record.Signed(), record.Source(), nil
}
