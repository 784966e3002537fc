package main

import (
	"slices"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/kept"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/savepoint"
)

// latestUnread is the error of latest where what may be the newest commit, in the root of a name or
// in all where that is empty, has a savepoint that cannot be read, or that is gone. It is nil where
// the newest of those that stand is the newest.
func latestUnread(state *statedir.Dir, root string, all *savepoint.Survey, standing []savepoint.Savepoint) error {
	var unread *savepoint.DamageError
	for _, d := range all.Damaged {
		if d.Retired || root != "" && !d.IsOf(root) {
			continue
		}
		if len(standing) > 0 {
			newest := standing[len(standing)-1]
			if !d.IsOf(newest.Root()) || d.Sequence <= newest.Sequence() {
				continue
			}
		}
		if unread == nil || d.Sequence >= unread.Sequence {
			unread = d
		}
	}
	switch {
	case unread != nil && unread.Attempt != "":
		return &action.UnreadError{Commit: unread.Attempt, Err: unread}
	case unread != nil:
		hint := kept.Mend(state.Path(), unread)
		if hint == "" {
			hint = kept.Aside(state, unread.RunDir)
		}
		return &refusedError{unread, hint}
	case len(standing) > 0:
		return nil
	}
	logged, _ := actionsOf(state, root) // of a damaged log what comes before the damage
	for _, c := range slices.Backward(logged) {
		if c.IsCommit() && c.State == audit.Done && c.UndoneBy == "" {
			return savepointLost(state, c.ID)
		}
	}
	return nil
}
