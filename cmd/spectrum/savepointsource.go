package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/statecheck"
	"github.com/spectrumfs/spectrum/internal/statedir"
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
	if id := c.origin.Savepoint; id != "" {
		return hinted(err, savepointSourceHint(err, id, c.origin.ProjectRoot))
	}
	return err
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
	policy, c.unpinned, err = action.Source{Savepoint: sp, Savepoints: store, Preview: state.LoadPreview}.Trust(policy, host)
	if of, is := errors.AsType[*action.SignerError](err); is {
		run := fmt.Sprintf("run %q, which savepoint %s is of,", of.Run.RunID, sp.ID()[:shortest])
		err = &notTrustedError{run, of.Run.ValidatorID, trust.Revoked, of.Reason}
	}
	return policy, err
}
