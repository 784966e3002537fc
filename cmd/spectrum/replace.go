package main

import (
	"context"
	"crypto/sha256"
	"errors"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/statecheck"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/preview"
)

// forRoot runs PREFLIGHT and PLAN. With --replace, or for a change set, it finds which files are
// replaced.
func (c *candidate) forRoot(ctx context.Context, state *statedir.Dir, bar *bar) (*restore.Restore, error) {
	plan := restore.ForRootOwning
	if c.asked.Replace {
		plan = restore.ForRootReplacing
	}
	return examine(ctx, c, func() (*restore.Restore, error) {
		return plan(ctx, c.restore(bar), c.origin.RestoreRoot, func(root *pathsafe.Dir) (map[string][sha256.Size]byte, error) {
			return ownArtifacts(state, root)
		})
	})
}

// ownArtifacts are the digests of the result artifacts that the commit of the active savepoint
// made, by their paths.
func ownArtifacts(state *statedir.Dir, root *pathsafe.Dir) (map[string][sha256.Size]byte, error) {
	real, err := root.RealPath()
	if errors.Is(err, pathsafe.ErrMoved) {
		err = errors.Join(preview.ErrUnsettled, err)
	}
	if err != nil {
		return nil, err
	}
	name, err := state.RootName(real)
	if err != nil {
		return nil, err
	}
	store, err := statecheck.Savepoints(state)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	own, err := action.OwnArtifacts(store, name)
	return own, savepointError(err)
}
