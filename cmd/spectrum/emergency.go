package main

import (
	"context"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/action"
)

// enterHalted enters a root for an emergency rollback if the attempts that halt it cannot be
// resolved: they are released ([action.EmergencyRelease]).
func (a *app) enterHalted(ctx context.Context, state *statedir.Dir, opts rollbackOptions, halted *haltedError) (*action.Root, error) {
	name, err := nameOfRoot(state, halted.root, true)
	if err != nil {
		return nil, err
	}
	store, err := a.openSnapshots(state)
	if err != nil {
		return nil, err
	}
	release := action.EmergencyRelease{Root: name, Host: a.knownHost(state), Attempts: action.HaltsOf(halted), Why: halted}
	bar := a.newBar("checking the snapshots")
	possible, err := release.IsPossible(ctx, store)
	bar.done()
	_ = store.Close()
	if err != nil {
		return nil, err
	}
	if !possible {
		halted.inEmergency = true
		return nil, halted
	}
	verb := "undoes or releases"
	if opts.dryRun {
		verb = "would undo or release"
	}
	for i := range halted.attempts {
		at := &halted.attempts[i]
		a.tell("spectrum: %s", oneLine(at.where()))
		a.tell("spectrum: it could not be undone; this rollback %s it, since it restores the whole root: %s", verb, oneLine(at.Err.Error()))
	}
	entry, err := release.Entry(state, action.Entry{Wait: opts.wait, Foreign: opts.foreign, DryRun: opts.dryRun, Reason: opts.reason})
	if err != nil {
		return nil, err
	}
	return a.enterNamed(ctx, state, halted.root, entry)
}
