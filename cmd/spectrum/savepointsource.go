package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/kept"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/restore/trust"
)

// This file is a savepoint of this host as the candidate of a preview. A savepoint signs the files
// that a commit has restored, and holds none of them: they are in the restore root.

// openSavepoint opens the savepoint that was named as a candidate.
func (a *app) openSavepoint(ctx context.Context, state *statedir.Dir, opts previewOptions) (*candidate, error) {
	store, err := kept.Savepoints(state)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	sp, err := (&savepointShelf{a, state, store}).find(opts.savepoint)
	if err != nil {
		return nil, savepointError(err)
	}
	root, err := state.RootPath(sp.Root())
	if err != nil {
		return nil, err
	}
	return reopen(ctx, preview.Origin{ProjectRoot: root, RunDirs: []string{sp.RunDir()}, RestoreRoot: opts.restoreRoot, Savepoint: sp.ID()})
}

// savepointHint adds the next step to the rejection of a savepoint.
func (c *candidate) savepointHint(err error) error {
	if id := c.origin.Savepoint; id != "" {
		return refusedHint(err, fmt.Sprintf("the files of a savepoint are those in its restore root: \"spectrum savepoint verify %s\" names those that have changed since; \"spectrum snapshot list %s\" lists what keeps earlier contents",
			id[:shortest], shellQuote(c.origin.ProjectRoot)))
	}
	return err
}

// trustIn returns whom the operator trusts with a candidate. For a savepoint of this host that is
// its own key too, as long as nobody speaks against the validators of what was restored then.
func (c *candidate) trustIn(state *statedir.Dir) (trust.Policy, error) {
	policy, err := loadTrust(state)
	if err != nil || c.origin.Savepoint == "" {
		return policy, err
	}
	store, err := kept.Savepoints(state)
	if err != nil {
		return trust.Policy{}, err
	}
	defer store.Close()
	sp, err := store.Find(c.origin.Savepoint)
	if err != nil {
		return trust.Policy{}, savepointError(err)
	}
	host, err := hostID(state)
	if err != nil {
		return trust.Policy{}, err
	}
	signed, err := signersOf(state, store, sp, nil)
	if err != nil {
		return policy, nil // who signed what was restored is not known, so the key of the host counts as any other
	}
	for _, run := range signed {
		switch policy.Of(run.ValidatorID) {
		case trust.Revoked:
			of := fmt.Sprintf("run %q, which savepoint %s is of,", run.RunID, sp.ID()[:shortest])
			return trust.Policy{}, &notTrustedError{of, run.ValidatorID, trust.Revoked, policy.Reason(run.ValidatorID)}
		case trust.Unpinned:
			return policy, nil
		}
	}
	return policy.WithOwn(host), nil
}

// signersOf returns the runs, and who signed them, that a savepoint goes back to: through the
// savepoints that were restored in between.
func signersOf(state *statedir.Dir, store *savepoint.Store, sp savepoint.Savepoint, seen []string) ([]preview.Signed, error) {
	const deepest = 100
	if len(seen) == deepest {
		return nil, errors.New("too many savepoints of savepoints")
	}
	id := sp.Said("preview_id")
	raw, err := state.LoadPreview(id)
	if err != nil {
		return nil, err
	}
	record, err := preview.ParseRecord(raw, id)
	if err != nil {
		return nil, err
	}
	source := record.Origin().Savepoint
	if source == "" {
		return record.Signed(), nil
	}
	before, err := store.Find(source)
	if err != nil {
		return nil, err
	}
	return signersOf(state, store, before, append(seen, source))
}
