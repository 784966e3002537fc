package main

import (
	"fmt"
	"strings"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/trust"
	"github.com/spf13/cobra"
)

func newTrust(app *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trust",
		Short: "list, pin and revoke validators",
		Long: `trust lists, pins and revokes validators. A signature identifies the signer of a bundle;
trust decides whose bundles may be restored:

  - if no validator is pinned: every candidate that verifies. The preview shows
    its validator_id as an authority_conflict, which the approval acknowledges.
  - if one is pinned: only candidates of pinned validators.
  - never a candidate of a revoked validator.

Files in ` + trust.System + `/trusted.d and revoked.d
that begin with
a validator_id pin and revoke too. This command changes only the state directory.`,
	}
	cmd.AddCommand(
		newTrustAdd(app),
		newTrustRevoke(app),
		&cobra.Command{
			Use:   "remove VALIDATOR_ID",
			Short: "unpin a validator",
			Long: `remove undoes "trust add": the validator is no longer pinned. VALIDATOR_ID is its 64
digits, or the first four or more.`,
			Args: exactly(1),
			RunE: func(_ *cobra.Command, args []string) error { return app.removeTrust(args[0]) },
		},
		&cobra.Command{
			Use:   "list",
			Short: "list the pinned and revoked validators",
			Args:  exactly(0),
			RunE:  func(*cobra.Command, []string) error { return app.listTrust() },
		})
	return cmd
}

func newTrustAdd(app *app) *cobra.Command {
	note := ""
	cmd := &cobra.Command{
		Use:   "add VALIDATOR_ID",
		Short: "pin a validator",
		Long: `add pins a validator. As soon as one is pinned, only bundles of pinned validators can
be restored. VALIDATOR_ID is its 64 digits. For a validator that signed what was
previewed or committed here, the first 16 or more are enough.

add first prints the whole ID in groups, to compare with the one that the signer sent you,
and what this validator has signed here.`,
		Args: exactly(1),
		RunE: func(_ *cobra.Command, args []string) error { return app.addTrust(args[0], note) },
	}
	cmd.Flags().StringVar(&note, "note", "", "`text` to store with it")
	return cmd
}

func (a *app) addTrust(id, note string) error {
	v, err := a.openValidator(id)
	if err != nil {
		return err
	}
	defer v.state.Close()
	if err := trust.CheckID(v.id); err != nil {
		return refusedHint(err, namesValidator)
	}
	if v.policy.Of(v.id) == trust.Revoked {
		return refusedHint(fmt.Errorf("validator %s is revoked, which no pin overrides", v.id), "\"spectrum trust list\" names the file that revokes it")
	}
	if len(v.id) == len(id) {
		v.seen = seenValidators(v.state)
	}
	for _, line := range v.lines() {
		a.say("%s", line)
	}
	return a.changeTrust(v, trust.Pin(v.place, v.id, note))
}

func (a *app) removeTrust(id string) error {
	v, err := a.openValidator(id)
	if err != nil {
		return err
	}
	defer v.state.Close()
	wasPinned := len(v.policy.Pinned()) > 0
	if err := a.changeTrust(v, trust.Unpin(v.place, v.id)); err != nil {
		return err
	}
	policy, err := loadTrust(v.state)
	if err == nil && wasPinned && len(policy.Pinned()) == 0 {
		a.tell("spectrum: warning: %s", oneLine(nonePinned))
	}
	return err
}

// nonePinned says what it means that no validator is pinned.
const nonePinned = "no validator is pinned now: candidates of every validator that is not revoked can be restored; \"spectrum trust add VALIDATOR_ID\" limits that to pinned ones"

// changeTrust prints the state of a validator after a change, or why nothing was changed.
func (a *app) changeTrust(v *validator, err error) error {
	if err != nil {
		return refusedHint(err, trustChangeHint(err))
	}
	policy, err := loadTrust(v.state)
	if err != nil {
		return err
	}
	standing := string(policy.Of(v.id))
	fields := map[string]any{"code": "OK", "ok": true, "standing": standing, "validator_id": v.id}
	if reason := policy.Reason(v.id); reason != "" {
		fields["reason"] = jsonText(reason)
	}
	return a.result(v.id+" "+statusText(policy.Of(v.id)), fields)
}

// statusText is how a validator stands, in words for a person.
func statusText(standing trust.Status) string {
	if standing == trust.Unknown || standing == trust.Unpinned {
		return "not pinned"
	}
	return string(standing)
}

// loadTrust reads the places of the operator and of the machine.
func loadTrust(state *statedir.Dir) (trust.Policy, error) {
	place, err := state.TrustPlace()
	if err != nil {
		return trust.Policy{}, err
	}
	policy, err := trust.Load(place, trust.System)
	return policy, refusedHint(err, placeHint(err, "no validator is trusted"))
}

// trustPolicy is loadTrust for a command that needs nothing else of the state directory.
func (a *app) trustPolicy() (trust.Policy, error) {
	state, err := a.openState()
	if err != nil {
		return trust.Policy{}, err
	}
	defer state.Close()
	return loadTrust(state)
}

func (a *app) listTrust() error {
	policy, err := a.trustPolicy()
	if err != nil {
		return err
	}
	lines, records := []string{}, []any{}
	add := func(r trust.Record, standing trust.Status) {
		lines = append(lines, oneLine(strings.TrimSpace(fmt.Sprintf("%s %s %q %s", r.ID, standing, r.Path, r.Note))))
		records = append(records, map[string]any{"note": jsonText(r.Note), "path": jsonText(r.Path), "standing": string(standing), "validator_id": r.ID})
	}
	for _, r := range policy.Pinned() {
		add(r, policy.Of(r.ID)) // a pin that a revocation overrides is shown too: it counts again without that
	}
	for _, r := range policy.Revoked() {
		add(r, trust.Revoked)
	}
	if len(policy.Pinned()) == 0 {
		a.say("%s", nonePinned)
	}
	return a.result(strings.Join(lines, "\n"), map[string]any{"code": "OK", "ok": true, "policy": policy.Digest(), "validators": records})
}
