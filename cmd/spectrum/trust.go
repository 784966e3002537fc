package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spectrumfs/spectrum/internal/dropin"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/trust"
	"github.com/spf13/cobra"
)

func newTrust(app *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trust",
		Short: "whom you trust: validators that are pinned or revoked",
		Long: `trust keeps the validators that you trust, and those that nobody should trust any
more. What is signed by whom is decided before that, by verify; trust decides
what may be restored:

  while nobody is pinned, every candidate that verifies, and its preview shows
  the validator_id as an authority_conflict that the approval acknowledges;
  once somebody is pinned, only what pinned validators have signed;
  never what a revoked one has signed.

Pinned and revoked are also those in ` + trust.System + `/trusted.d and revoked.d, where
each file begins with a validator_id. This command changes the state directory
only.`,
	}
	cmd.AddCommand(
		newTrustAdd(app),
		newTrustRevoke(app),
		&cobra.Command{
			Use:   "remove VALIDATOR_ID",
			Short: "pin a validator no longer",
			Long: `remove takes back "trust add": the validator is not pinned any more. VALIDATOR_ID is
its 64 digits, or the first four or more.`,
			Args: exactly(1),
			RunE: func(_ *cobra.Command, args []string) error { return app.removeTrust(args[0]) },
		},
		&cobra.Command{
			Use:   "list",
			Short: "list who is pinned and who is revoked, and where",
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
		Long: `add pins a validator. Once one is pinned, only what pinned validators have signed can
be restored. VALIDATOR_ID is its 64 digits; for a validator that signed what was
previewed or committed here, 16 or more of its first digits are enough.

Before that it prints the whole id in groups, to be compared with what the signer
says it is, and what this validator has signed of what is kept here.`,
		Args: exactly(1),
		RunE: func(_ *cobra.Command, args []string) error { return app.addTrust(args[0], note) },
	}
	cmd.Flags().StringVar(&note, "note", "", "`text` to remember with it")
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
	return a.changeTrust(v, trust.Unpin(v.place, v.id))
}

// changeTrust prints how a validator stands after a change, or why there was none.
func (a *app) changeTrust(v *validator, err error) error {
	if errors.Is(err, trust.ErrKnown) {
		return refusedHint(err, "no command is needed; \"spectrum trust list\" says who is pinned or revoked")
	}
	if err != nil {
		return refusedHint(err, namesValidator)
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
	return a.result(v.id+" "+standing, fields)
}

// loadTrust reads the places of the operator and of the machine.
func loadTrust(state *statedir.Dir) (trust.Policy, error) {
	place, err := state.TrustPlace()
	if err != nil {
		return trust.Policy{}, err
	}
	policy, err := trust.Load(place, trust.System)
	return policy, refusedHint(err, placeHint(err, "nobody is trusted"))
}

// placeHint is the way out where a file or directory of the operator does not count, with
// what that means until then.
func placeHint(err error, until string) string {
	var bad *dropin.Error
	switch {
	case !errors.As(err, &bad):
		return "fix the problem above and retry; until then " + until
	case errors.Is(err, dropin.ErrWritable):
		return fmt.Sprintf("look whether another user has changed it, then run chmod go-w %s; until then %s", shellQuote(bad.Path), until)
	case errors.Is(err, dropin.ErrOwner):
		return fmt.Sprintf("look at what it says; then, as root, run chown %d %s, or remove it; until then %s", os.Geteuid(), shellQuote(bad.Path), until)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("make %s readable for this user; until then %s", shellQuote(bad.Path), until)
	}
	return fmt.Sprintf("correct that file, or remove it: rm %s; until then %s", shellQuote(bad.Path), until)
}

func (a *app) listTrust() error {
	state, err := a.openState()
	if err != nil {
		return err
	}
	defer state.Close()
	policy, err := loadTrust(state)
	if err != nil {
		return err
	}
	lines, records := []string{}, []any{}
	add := func(r trust.Record, standing trust.Standing) {
		lines = append(lines, oneLine(strings.TrimSpace(fmt.Sprintf("%s %s %q %s", r.ID, standing, r.Path, r.Note))))
		records = append(records, map[string]any{"note": jsonText(r.Note), "path": jsonText(r.Path), "standing": string(standing), "validator_id": r.ID})
	}
	for _, r := range policy.Pinned() {
		add(r, policy.Of(r.ID)) // a pin that a revocation overrides is shown too: it counts again without that
	}
	for _, r := range policy.Revoked() {
		add(r, trust.Revoked)
	}
	return a.result(strings.Join(lines, "\n"), map[string]any{"code": "OK", "ok": true, "policy": policy.Digest(), "validators": records})
}
