package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spectrumfs/spectrum/restore/trust"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spf13/cobra"
)

// errNotRevoked is the answer of an operator who was asked whether a validator is to be revoked.
var errNotRevoked = errors.New("not confirmed: nothing was revoked")

func newTrustRevoke(app *app) *cobra.Command {
	reason := ""
	cmd := &cobra.Command{
		Use:   "revoke --reason TEXT VALIDATOR_ID",
		Short: "revoke a validator for good, also where it is pinned",
		Long: `revoke is for a key that was stolen or lost. Nothing that the validator has signed can
be restored any more, whenever it was signed, and no pin overrides that. No command
takes a revocation back.

The reason is kept with the validator, and shown wherever it is rejected. On a
terminal it is asked for where --reason does not give it, and revoke asks for
confirmation. Elsewhere --reason is required, and enough.

VALIDATOR_ID is its 64 digits. The first four or more are enough for a validator that
is pinned, and the first 16 or more for one that signed what was previewed or
committed here.`,
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkReason(cmd, reason); err != nil {
				return err
			}
			asks := !app.json && onTerminal(os.Stdin) && onTerminal(app.stderr)
			if reason == "" && !asks {
				return usage(cmd, "--reason is required: a revocation cannot be undone, and its reason is kept")
			}
			return app.revokeTrust(cmd.Context(), args[0], reason, asks)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, in `words`; kept and shown with the validator")
	return cmd
}

func (a *app) revokeTrust(ctx context.Context, id, reason string, asks bool) error {
	v, err := a.openValidator(id)
	if err != nil {
		return err
	}
	defer v.state.Close()
	if err := trust.CheckID(v.id); err != nil {
		return refusedHint(err, namesValidator)
	}
	for _, r := range v.policy.Revoked() {
		if r.ID == v.id && strings.HasPrefix(r.Path, v.place+"/") {
			return a.changeTrust(v, fmt.Errorf("validator %s is revoked already: %w", v.id, trust.ErrKnown))
		}
	}
	for _, line := range v.lines()[:groupLines] {
		a.tell("%s", line)
	}
	if own := v.own(); own != "" {
		a.tell("spectrum: %s", oneLine(own))
	}
	a.tell("spectrum: revoking cannot be undone: what this validator has signed is never restored again, also where it is pinned")
	if asks {
		if reason, err = a.confirmRevoke(ctx, v.id, reason); err != nil {
			return err
		}
	}
	return a.changeTrust(v, trust.Revoke(v.place, v.id, reason))
}

// own says whether the key is one that signs here; "" where it is not.
func (v *validator) own() string {
	var own []string
	if key, err := bundle.LoadKey(v.state.KeyPath()); err == nil && key.ValidatorID() == v.id {
		own = append(own, fmt.Sprintf("this is your own signing key %q: what you have sealed and seal with it is no longer restored", v.state.KeyPath()))
	}
	if key, err := bundle.LoadKey(v.state.HostKey()); err == nil && key.ValidatorID() == v.id {
		own = append(own, fmt.Sprintf("this is the key of this host %q: its savepoints can no longer be previewed", v.state.HostKey()))
	}
	return strings.Join(own, "; ")
}

// confirmRevoke asks for the reason, where none was given, and for the word that revokes, and
// returns the reason.
func (a *app) confirmRevoke(ctx context.Context, id, reason string) (string, error) {
	if reason == "" {
		line, err := a.newPrompt("reason: ").read(ctx)
		if err != nil {
			return "", err
		}
		if isRefusal(line) || len(line) > maxReasonText {
			return "", errNotRevoked
		}
		reason = line
	}
	a.tell("spectrum: type revoke, or the first %d digits of the validator, to revoke it", shortest)
	line, err := a.newPrompt("revoke: ").read(ctx)
	if err != nil {
		return "", err
	}
	if line != "revoke" && (len(line) < shortest || !strings.HasPrefix(id, strings.ReplaceAll(line, " ", ""))) {
		return "", errNotRevoked
	}
	return reason, nil
}
