package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// derived is the approved part of a candidate, sealed as a candidate of its own
// and planned for the same restore root (decision D13).
type derived struct {
	candidate *candidate
	restore   *restore.Restore
}

func (d *derived) close() {
	d.restore.Close()
	d.candidate.close()
}

// derive seals what is approved of each run with the host's key, under the run's
// own id, and then treats it as any candidate: it is verified and planned whole.
func (a *app) derive(ctx context.Context, state *statedir.Dir, d decided) (*derived, error) {
	key, err := a.hostKey(state)
	if err != nil {
		return nil, err
	}
	place, err := state.Derived(d.approval.PreviewID())
	if err != nil {
		return nil, err
	}
	origin := d.candidate.origin
	origin.RunDirs = nil
	for _, part := range d.approval.Parts() {
		dir := filepath.Join(place, part.RunID)
		_, err := bundle.SealKnown(ctx, bundle.KnownOptions{
			RunDir: dir, Outputs: part.Outputs, Constraints: part.Constraints, Key: key, BuildID: buildID(),
		})
		if err != nil {
			return nil, fmt.Errorf("sealing what is approved of %s: %w", part.Text, err)
		}
		a.hasDone("what is approved of %s was sealed", part.Text)
		origin.RunDirs = append(origin.RunDirs, dir)
	}
	return a.planDerived(ctx, origin)
}

func (a *app) planDerived(ctx context.Context, origin preview.Origin) (*derived, error) {
	c, err := reopen(ctx, origin)
	if err != nil {
		return nil, err
	}
	bar := a.newBar("verifying what is approved")
	defer bar.done()
	r, err := examine(ctx, c, func() (*restore.Restore, error) {
		return restore.ForRoot(ctx, c.restore(bar), origin.RestoreRoot)
	})
	if err != nil {
		c.close()
		return nil, err
	}
	return &derived{c, r}, nil
}
