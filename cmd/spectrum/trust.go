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
		newTrustEdit(app, trustEdit{"add", "pin a validator", "note", "what is to be remembered of it", trust.Pin}),
		newTrustEdit(app, trustEdit{"revoke", "trust a validator never again, whoever has pinned it", "reason", "why", trust.Revoke}),
		newTrustEdit(app, trustEdit{use: "remove", short: "pin a validator no longer", edit: func(place, id, _ string) error { return trust.Unpin(place, id) }}),
		&cobra.Command{
			Use:   "list",
			Short: "list who is pinned and who is revoked, and where",
			Args:  exactly(0),
			RunE:  func(*cobra.Command, []string) error { return app.listTrust() },
		})
	return cmd
}

// trustEdit is a command that changes one thing.
type trustEdit struct {
	use, short, flag, about string
	edit                    func(place, id, note string) error
}

func newTrustEdit(app *app, e trustEdit) *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use:   e.use + " VALIDATOR_ID",
		Short: e.short,
		Args:  exactly(1),
		RunE:  func(_ *cobra.Command, args []string) error { return app.editTrust(e, args[0], note) },
	}
	if e.flag != "" {
		cmd.Flags().StringVar(&note, e.flag, "", e.about)
	}
	return cmd
}

func (a *app) editTrust(e trustEdit, id, note string) error {
	state, err := a.openState()
	if err != nil {
		return err
	}
	defer state.Close()
	place, err := state.TrustPlace()
	if err != nil {
		return err
	}
	if policy, err := loadTrust(state); e.use == "add" && err == nil && policy.Of(id) == trust.Revoked {
		return refusedHint(fmt.Errorf("validator %s is revoked, which no pin overrides", id), "\"spectrum trust list\" names the file that revokes it")
	}
	err = e.edit(place, id, note)
	if errors.Is(err, trust.ErrKnown) {
		return refusedHint(err, "no command is needed; \"spectrum trust list\" says who is pinned or revoked")
	}
	if err != nil {
		return refusedHint(err, "a validator_id is 64 hex digits, as \"spectrum keygen\" prints it; \"spectrum trust list\" says who is pinned or revoked")
	}
	policy, err := loadTrust(state)
	if err != nil {
		return err
	}
	standing := string(policy.Of(id))
	return a.result(id+" "+standing, map[string]any{"code": "OK", "ok": true, "standing": standing, "validator_id": id})
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
