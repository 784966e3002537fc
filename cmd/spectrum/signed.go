package main

import (
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/view"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/trust"
	"github.com/spectrumfs/spectrum/verify"
)

// saySigned prints the signer of each verified run, and its trust state. It makes no state directory;
// without one no validator is pinned.
func (a *app) saySigned(bundles []*verify.Bundle) {
	if a.quiet {
		return
	}
	for _, b := range bundles {
		var bytes int64
		for o := range b.Outputs() {
			bytes += o.Size()
		}
		a.sayRun(b, bytesText(bytes))
	}
}

// sayRun prints the signer of a run, and how much of it there is, or was checked.
func (a *app) sayRun(b view.Signed, amount string) {
	one := func(yield func(view.Signed) bool) { yield(b) }
	a.say("%s: %s, %s, signed by %s", preview.RunText(b), numberOf(b.Len(), "file"), amount, a.signers(one))
}

// trustHere returns the operator's trust policy. It makes no state directory.
func (a *app) trustHere() (trust.Policy, error) {
	path, err := a.statePath()
	if err != nil {
		return trust.Policy{}, err
	}
	return trust.Load(filepath.Join(path, "trust"), trust.System)
}

// signers names the signers of some runs, each once, with their trust states.
func (a *app) signers(bundles iter.Seq[view.Signed]) string {
	policy, err := a.trustHere()
	var signers []string
	for b := range bundles {
		standing := strings.Replace(string(policy.Of(b.ValidatorID())), string(trust.Revoked), "REVOKED", 1)
		if reason := policy.Reason(b.ValidatorID()); reason != "" {
			standing += ": " + strconv.Quote(reason)
		}
		if err != nil {
			standing = "whether it is trusted cannot be read"
		}
		signer := fmt.Sprintf("%s (%s)", b.ValidatorID()[:shortest], standing)
		if !slices.Contains(signers, signer) {
			signers = append(signers, signer)
		}
	}
	return strings.Join(signers, ", ")
}

// notTrustedError is a run whose validator the operator has not pinned, where that is
// required.
type notTrustedError struct {
	run, validator string
	standing       trust.Status
	reason         string // why it was revoked
}

func (e *notTrustedError) Error() string {
	return fmt.Sprintf("%s is signed by validator %s, which is %s", e.run, e.validator, e.what())
}

func (e *notTrustedError) what() string {
	if e.standing == trust.Revoked {
		return "revoked"
	}
	return "not pinned"
}

// revokedHint is the next step where a validator is revoked.
func revokedHint(reason string) string {
	hint := "find out who signed it and why; \"spectrum trust list\" names the file that revokes this validator"
	if reason != "" {
		hint = fmt.Sprintf("the validator was revoked for this reason: %q; %s", reason, hint)
	}
	return hint
}

// Unwrap returns the code of a revoked validator, which no pin overrides.
func (e *notTrustedError) Unwrap() error {
	if e.standing == trust.Revoked {
		return preview.ErrRevoked
	}
	return nil
}

func (e *notTrustedError) hints() []string {
	if e.standing == trust.Revoked {
		return []string{revokedHint(e.reason)}
	}
	return []string{trustHint(e.validator)}
}

// requireTrusted returns an error unless every run is signed by a pinned validator. A revoked one
// is reported first.
func (a *app) requireTrusted(bundles []*verify.Bundle) error {
	policy, err := a.trustPolicy()
	if err != nil {
		return err
	}
	ids := make([]string, len(bundles))
	for i, b := range bundles {
		ids[i] = b.ValidatorID()
	}
	i := policy.Untrusted(ids)
	if i < 0 {
		return nil
	}
	return &notTrustedError{preview.RunText(bundles[i]), ids[i], policy.Of(ids[i]), policy.Reason(ids[i])}
}
