package main

import (
	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/statecheck"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/savepoint"
)

// latestUnread is the error of latest where the newest commit may be one whose savepoint cannot be
// read, or is gone ([action.UnreadLatest]); nil elsewhere.
func latestUnread(state *statedir.Dir, root string, all *savepoint.Survey, standing []savepoint.Savepoint) error {
	unread, lost := action.UnreadLatest(root, all, standing, func() []*audit.Action {
		logged, _ := actionsOf(state, root) // of a damaged log, the entries before the damage
		return logged
	})
	switch {
	case unread != nil && unread.Attempt != "":
		return &action.UnreadError{Commit: unread.Attempt, Err: unread}
	case unread != nil:
		hint := statecheck.Mend(state.Path(), unread)
		if hint == "" {
			hint = statecheck.Aside(state, unread.RunDir)
		}
		return &refusedError{unread, hint}
	case lost != "":
		return savepointLost(state, lost)
	}
	return nil
}
