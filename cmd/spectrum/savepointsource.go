package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/statecheck"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/restore/trust"
)

// This file is a savepoint of this host as the candidate of a preview. A savepoint signs the files
// that a commit has restored, and holds none of them: they are in the restore root.

// openSavepoint opens the savepoint that was named as a candidate.
func (a *app) openSavepoint(ctx context.Context, state *statedir.Dir, opts previewOptions) (*candidate, error) {
	store, err := statecheck.Savepoints(state)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	sp, err := (&savepointCommand{a, state, store}).find(opts.savepoint)
	if err != nil && opts.savepoint == latest && strings.Contains(err.Error(), "several restore roots") {
		err = refusedHint(err, "name the savepoint by an ID of \"spectrum savepoint list\", or run this in a directory of its restore root")
	}
	if err != nil {
		return nil, savepointError(err)
	}
	if err := isOfItself(state, sp, opts); err != nil {
		return nil, err
	}
	root, err := state.RootPath(sp.Root())
	if err != nil {
		return nil, err
	}
	return a.reopen(ctx, preview.Origin{ProjectRoot: root, RunDirs: []string{sp.RunDir()}, RestoreRoot: opts.restoreRoot, Savepoint: sp.ID()})
}

// isOfItself rejects the restore of a savepoint into the restore root that has its files.
func isOfItself(state *statedir.Dir, sp savepoint.Savepoint, opts previewOptions) error {
	if opts.replace || !filepath.IsAbs(opts.restoreRoot) || !isDir(opts.restoreRoot) {
		return nil
	}
	name, err := nameOfRoot(state, action.RootPath(opts.restoreRoot), true)
	if err != nil || name != sp.Root() {
		return nil //nolint:nilerr // the restore says it
	}
	return refusedHint(fmt.Errorf("nothing to do: savepoint %s is of this restore root, and its files are those in it", sp.ID()[:shortest]),
		fmt.Sprintf("\"spectrum savepoint verify %s\" names those that have changed since; \"spectrum snapshot list %s\" lists what keeps earlier contents; to restore them elsewhere, name another restore root",
			sp.ID()[:shortest], shellQuote(opts.restoreRoot)))
}

// savepointHint adds the next step to the rejection of a savepoint.
func (c *candidate) savepointHint(err error) error {
	var failed *restore.Failure
	if errors.As(err, &failed) && strings.HasPrefix(string(failed.Code), "RESTORE_TARGET_") {
		return err // it is about the restore root
	}
	if id := c.origin.Savepoint; id != "" {
		return refusedHint(err, fmt.Sprintf("the files of a savepoint are those in its restore root: \"spectrum savepoint verify %s\" names those that have changed since; \"spectrum snapshot list %s\" lists what keeps earlier contents",
			id[:shortest], shellQuote(c.origin.ProjectRoot)))
	}
	return err
}

// unpinnedHint names the validator to pin if a savepoint is rejected because of the signer of its
// files.
func (c *candidate) unpinnedHint(err error) error {
	if c.unpinned.ValidatorID == "" {
		return err
	}
	return refusedHint(err, fmt.Sprintf("validator %[1]s, which signed run %[2]q, from which the savepoint was restored, is not pinned: if you trust it, run \"spectrum trust add %[1]s\", then this again",
		c.unpinned.ValidatorID, c.unpinned.RunID))
}

// trustIn returns the trust policy for a candidate. For a savepoint of this host it includes the
// host's own key, unless a validator of the restored files is rejected.
func (c *candidate) trustIn(state *statedir.Dir) (trust.Policy, error) {
	policy, err := loadTrust(state)
	if err != nil || c.origin.Savepoint == "" {
		return policy, err
	}
	store, err := statecheck.Savepoints(state)
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
		return policy, nil // the signers of the restored files are unknown, so the host's key counts as any other
	}
	for _, run := range signed {
		switch policy.Of(run.ValidatorID) {
		case trust.Revoked:
			of := fmt.Sprintf("run %q, which savepoint %s is of,", run.RunID, sp.ID()[:shortest])
			return trust.Policy{}, &notTrustedError{of, run.ValidatorID, trust.Revoked, policy.Reason(run.ValidatorID)}
		case trust.Unpinned:
			c.unpinned = run
			return policy, nil
		}
	}
	return policy.WithOwn(host), nil
}

// signersOf returns the runs that a savepoint goes back to, with their signers: through the
// savepoints that were restored in between.
func signersOf(state *statedir.Dir, store *savepoint.Store, sp savepoint.Savepoint, seen []string) ([]preview.Signed, error) {
	const deepest = 100
	if len(seen) == deepest {
		return nil, errors.New("too many savepoints of savepoints")
	}
	id := sp.Said("preview_id")
	raw, err := state.LoadPreview(id)
	if errors.Is(err, fs.ErrNotExist) && len(sp.Texts(action.Signers)) > 0 {
		return signersIn(state, store, sp, seen)
	}
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

// signersIn is signersOf by what the savepoint itself has signed, where the record of the preview is
// gone.
func signersIn(state *statedir.Dir, store *savepoint.Store, sp savepoint.Savepoint, seen []string) ([]preview.Signed, error) {
	var all []preview.Signed
	for _, text := range sp.Texts(action.Signers) {
		validator, run, _ := strings.Cut(text, " ")
		all = append(all, preview.Signed{RunID: run, ValidatorID: validator})
	}
	source := sp.Said(action.SourceID)
	if before, err := store.Find(source); err == nil && before.ID() == source {
		return signersOf(state, store, before, append(seen, source))
	}
	return all, nil
}
