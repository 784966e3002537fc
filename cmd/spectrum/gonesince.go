package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/snapshot"
)

var errGone = errors.New("the audit log has that it was taken, and not that it was pruned; \"spectrum doctor\" says more")

// goneSince returns the snapshots of a root that a person or a timer has taken after the target of an
// emergency rollback, and that are not in the store, though they were not pruned: the newest first.
// As far as the audit log, or the store, cannot be read, none is known to be gone.
func goneSince(state *statedir.Dir, in *action.Root, target *snapshot.Snapshot) (gone []snapshot.Passed) {
	there := map[string]bool{}
	all, damaged, err := in.Snapshots().Survey(in.Path())
	if err != nil {
		return nil
	}
	for _, h := range all {
		there[h.ID] = true
	}
	for _, d := range damaged { // which is named as that
		there[d.Path[strings.LastIndexByte(d.Path, '-')+1:]] = true
	}
	_, _ = readLog(state, func(e audit.Entry) error {
		is := func(p snapshot.Passed) bool { return p.Header.ID == e.Snapshot }
		switch {
		case audit.RootOf(e.Root) != in.Path():
		case target != nil && e.Kind == audit.SnapshotTaken && e.Snapshot == target.ID():
			gone = nil // what was taken before it is not passed over
		case e.Kind == audit.SnapshotPruned:
			gone = slices.DeleteFunc(gone, is)
		case e.Kind == audit.SnapshotTaken && !there[e.Snapshot] && !slices.ContainsFunc(gone, is):
			damage := &snapshot.DamageError{Path: "roots", Err: errGone}
			gone = append(gone, snapshot.Passed{Header: snapshot.Header{ID: e.Snapshot, Time: e.Time}, Damage: []*snapshot.DamageError{damage}, Gone: true})
		}
		return nil
	})
	slices.Reverse(gone)
	return gone
}
