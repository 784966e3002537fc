package main

import (
	"context"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/verify"
)

// derived is the approved part of a candidate, sealed as a candidate of its own
// and planned for the same restore root.
type derived struct {
	candidate *candidate
	restore   *restore.Restore
}

func (d *derived) close() {
	d.restore.Close()
	d.candidate.close()
}

// derive seals what is approved, and then treats it as any candidate: it is verified and
// planned whole.
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
	origin.RunDirs, err = action.Derive(ctx, d.approval, action.Host{Key: key, BuildID: buildID()}, place, func(run string) {
		a.hasDone("what is approved of %s was sealed", run)
	})
	if err != nil {
		return nil, err
	}
	if d.candidate.fetched != nil { // the parts are sealed in the state directory, over the fetched files
		origin.ProjectRoot = d.candidate.fetched.place()
	}
	part, err := a.planDerived(ctx, state, origin, d.candidate.asked)
	if err == nil {
		d.approval.Overrule(part.restore)
	}
	return part, err
}

func (a *app) planDerived(ctx context.Context, state *statedir.Dir, origin preview.Origin, asked preview.Requested) (*derived, error) {
	c, err := a.reopen(ctx, origin)
	if err != nil {
		return nil, err
	}
	c.asked, c.sources = asked, new(verify.Sources)
	bar := a.newBar("verifying what is approved")
	defer bar.done()
	r, err := c.forRoot(ctx, state, bar)
	if err != nil {
		c.close()
		return nil, err
	}
	return &derived{c, r}, nil
}
