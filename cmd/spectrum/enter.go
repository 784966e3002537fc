package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/commit"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/staging"
)

// enter enters a restore root with all that the state directory keeps of it.
func (a *app) enter(ctx context.Context, state *statedir.Dir, root string, e commit.Entry) (*commit.Root, []staging.Outcome, error) {
	var err error
	if e.Key, err = state.JournalKey(); err != nil {
		return nil, nil, fmt.Errorf("journal key: %w", err)
	}
	if e.Savepoints, err = openSavepoints(state); err != nil {
		return nil, nil, err
	}
	if e.Log, err = openLog(state); err != nil {
		_ = e.Savepoints.Close()
		return nil, nil, err
	}
	e.Halts, e.Authority = state, state
	e.Host = func() (commit.Host, error) {
		key, err := a.hostKey(state)
		return commit.Host{Key: key, BuildID: buildID()}, err
	}
	in, ended, err := commit.Enter(ctx, root, e)
	return in, ended, savepointError(err)
}

// enterFor enters the restore root of a command that goes on there. What is
// wrong with a root that cannot be opened the restore says, in the order of its
// law.
func (a *app) enterFor(ctx context.Context, state *statedir.Dir, root string, wait time.Duration) (*commit.Root, error) {
	in, ended, err := a.enter(ctx, state, root, commit.Entry{Wait: wait})
	if errors.Is(err, commit.ErrNoRoot) {
		return commit.NotEntered(err), nil
	}
	a.tellEnded(ended)
	return in, err
}

func openSavepoints(state *statedir.Dir) (*savepoint.Store, error) {
	place, err := state.Savepoints()
	if err != nil {
		return nil, err
	}
	return savepoint.Open(place)
}

// activeSavepoint is the last savepoint of a restore root, if there is one.
func activeSavepoint(state *statedir.Dir, root string) (preview.Savepoint, error) {
	store, err := openSavepoints(state)
	if err != nil {
		return preview.Savepoint{}, err
	}
	defer store.Close()
	tip, ok, err := store.Tip(root)
	if err != nil || !ok {
		return preview.Savepoint{}, savepointError(err)
	}
	completed, _ := time.Parse(time.RFC3339Nano, tip.Said(preview.CandidateCompleted)) // what cannot be read is not known
	return preview.Savepoint{ID: tip.ID(), Completed: completed}, nil
}
