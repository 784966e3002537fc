package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/restore/trust"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spf13/cobra"
)

// errNotRevoked reports that the operator did not confirm a revocation.
var errNotRevoked = errors.New("not confirmed: nothing was revoked")

func newTrustRevoke(app *app) *cobra.Command {
	reason := ""
	cmd := &cobra.Command{
		Use:   "revoke --reason TEXT VALIDATOR_ID",
		Short: "revoke a validator permanently, even if it is pinned",
		Long: `revoke rejects a validator whose key was stolen or lost. Nothing that it signed, at
any time, can be restored any more, even if it is pinned. A revocation cannot be
undone.

The reason is stored with the validator and shown whenever it is rejected. On a
terminal, revoke asks for the reason if --reason is missing, and for confirmation.
Without a terminal, --reason is required, and there is no confirmation.

VALIDATOR_ID is its 64 digits. For a pinned validator the first four or more are
enough; for one that signed what was previewed or committed here, 16 or more.`,
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkReason(cmd, reason); err != nil {
				return err
			}
			asks, err := app.asksFirst(cmd)
			if err != nil {
				return err
			}
			if reason == "" && !asks {
				return usage(cmd, "--reason is required: a revocation cannot be undone, and its reason is kept")
			}
			return app.revokeTrust(cmd.Context(), args[0], reason, asks)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "reason, in `words`; stored and shown with the validator")
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
	if v.seen == nil {
		v.seen = seenValidators(v.state)
	}
	lines := v.lines()
	if len(v.seen[v.id]) > 0 {
		lines = lines[:groupLines]
	}
	for _, line := range lines {
		a.tell("%s", line)
	}
	if near := v.near(); near != "" {
		hint := fmt.Sprintf("did you mean %s, which differs in few digits", near)
		if !asks {
			return refusedHint(fmt.Errorf("validator %s is neither pinned, nor has it signed anything that is kept here: nothing was revoked", v.id), hint)
		}
		a.tell("spectrum: %s", hint)
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
	err = a.changeTrust(v, trust.Revoke(v.place, v.id, reason))
	if next := v.nextKey(); err == nil && next != "" {
		a.tell("hint: %s", oneLine(next))
	}
	return err
}

// maxSlips is in how many digits a validator_id with typing mistakes differs from the one that is meant.
const maxSlips = 4

// near returns the ID of a pinned or seen validator that differs in few digits from this one, of
// which nothing is known here; "" for none.
func (v *validator) near() string {
	known := maps.Clone(v.seen)
	for _, r := range v.policy.Pinned() {
		known[r.ID] = nil
	}
	for _, path := range []string{v.state.KeyPath(), v.state.HostKey()} {
		if key, err := bundle.LoadKey(path); err == nil {
			known[key.ValidatorID()] = nil
		}
	}
	if _, isKnown := known[v.id]; isKnown {
		return ""
	}
	best, fewest := "", maxSlips+1
	for _, id := range slices.Sorted(maps.Keys(known)) {
		slips := 0
		for i := range len(id) {
			if i >= len(v.id) || id[i] != v.id[i] {
				slips++
			}
		}
		if slips < fewest {
			best, fewest = id, slips
		}
	}
	return best
}

// nextKey is the next step after one's own signing key was revoked; "" where it was another one.
func (v *validator) nextKey() string {
	key, err := bundle.LoadKey(v.state.KeyPath())
	if err != nil || key.ValidatorID() != v.id {
		return ""
	}
	path := shellQuote(v.state.KeyPath())
	return fmt.Sprintf("move the key away: mv %s %s; the next \"spectrum seal\" or \"spectrum run\" makes a new one, with which you can seal the good files again",
		path, shellQuote(v.state.KeyPath()+".revoked"))
}

// own describes which of this host's keys it is; "" if it is none.
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

// confirmRevoke asks for the reason, if none was given, and for the word that revokes, and returns
// the reason.
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
