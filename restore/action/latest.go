package action

import (
	"slices"

	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/savepoint"
)

// UnreadLatest reports whether the newest commit, in the root of a name or in all if that is empty,
// may be one whose savepoint cannot be read, or is lost: then latest names no commit. Standing are the
// savepoints of that root which can be read. It returns the newest damage after those; if there is
// neither a readable nor a damaged one, the ID of the newest commit that stands by the audit log, whose
// actions are called for only then. With neither, the newest readable savepoint is the newest.
func UnreadLatest(root string, all *savepoint.Survey, standing []savepoint.Savepoint, actions func() []*audit.Action) (unread *savepoint.DamageError, lost string) {
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
	if unread != nil || len(standing) > 0 {
		return unread, ""
	}
	for _, c := range slices.Backward(actions()) {
		if c.IsCommit() && c.State == audit.Done && c.UndoneBy == "" {
			return nil, c.ID
		}
	}
	return nil, ""
}
