package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/staging"
)

// releasedBy is what the audit log has of the attempts that an emergency rollback releases.
const releasedBy = "rollback --emergency"

// enterHalted enters a root for an emergency rollback if the attempts that halt it cannot be
// resolved: the whole root returns to a snapshot, so nothing of such an attempt is needed. The
// attempts are released once the snapshot is found; the root stays halted for other commands until
// the rollback has succeeded.
func (a *app) enterHalted(ctx context.Context, state *statedir.Dir, opts rollbackOptions, halted *haltedError) (*action.Root, error) {
	name, err := nameOfRoot(state, halted.root, true)
	if err != nil {
		return nil, err
	}
	store, err := a.openSnapshots(state)
	if err != nil {
		return nil, err
	}
	bar := a.newBar("checking the snapshots")
	to, err := store.Target(ctx, name, a.knownHost(state))
	bar.done()
	_ = store.Close()
	if err != nil {
		return nil, err
	}
	if to.Snapshot == nil {
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
	entry := action.Entry{Wait: opts.wait, Foreign: opts.foreign, DryRun: opts.dryRun, Releases: opts.dryRun, Reason: opts.reason, Mode: staging.Acknowledged}
	if opts.dryRun {
		return a.enterNamed(ctx, state, halted.root, entry)
	}
	why := fmt.Sprintf("the root was halted when it began: %v", halted)
	if err := state.Bar(name, uuid.NewString(), string(audit.Emergency), why); err != nil {
		if _, halts := errors.AsType[*statedir.BarError](state.Unbarrable(name)); !halts { // what is in the way halts it too
			return nil, err
		}
	}
	entry.Acknowledge = func(attempt string, left error) (string, error) {
		if !halted.names(attempt) {
			return "", left
		}
		return releasedBy, nil
	}
	return a.enterNamed(ctx, state, halted.root, entry)
}
