package action

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
)

// A Retention is the reason why snapshots must stay. A commit that can be undone, or that a
// snapshot can bring back, needs the snapshot from before it. An unfinished action needs its
// own and its target. A halted root needs all of its snapshots. A snapshot from before a rollback may
// be the only place of edits that the rollback removed.
type Retention struct {
	actions map[string]string // of those before an action
	ids     map[string]string
	edits   map[string]string // by ID: snapshots that hold what a rollback removed
	unique  map[string]bool   // those of them with contents that no newer snapshot has
	roots   map[string]string // halted ones, and those that were looked at
	all     string            // "" where only some must
	path    func(root string) (string, error)
	bars    Bars
}

// Records are what the audit log and the state directory have of actions.
type Records struct {
	Open   []string // actions that have not ended
	Halted []string // attempts
	// RolledBack are the rollbacks that were done. Their snapshots stay as long as they hold edits that
	// no newer snapshot has; the newest of each root stays in any case.
	RolledBack []string
	Roots      map[string]string // of actions and attempts
	// Path, unless nil, returns where a root is now that is known by a path, see [Entry].Known.
	Path func(root string) (string, error)
	Bars Bars // may be nil
}

// RetentionOf returns why snapshots must stay.
func RetentionOf(savepoints *savepoint.Store, snapshots *snapshot.Store, r Records) (*Retention, error) {
	keep := &Retention{actions: map[string]string{}, ids: map[string]string{}, edits: map[string]string{}, unique: map[string]bool{}, roots: map[string]string{}, path: r.Path, bars: r.Bars}
	standing, err := savepoints.List("")
	if err != nil {
		return nil, err
	}
	for _, sp := range standing {
		keep.actions[sp.Attempt()] = "commit " + sp.Attempt() + " can be undone"
	}
	retired, err := savepoints.Retired("")
	if err != nil {
		return nil, err
	}
	all, err := snapshots.List("")
	if err != nil {
		return nil, err
	}
	returns := broughtBack(all, slices.Concat(standing, retired))
	for _, sp := range retired { // these snapshots are small: they hold names that were not there
		keep.actions[sp.Attempt()] = "commit " + sp.Attempt() + " was undone"
		if returns[sp.ID()] {
			keep.actions[sp.Attempt()] += ", and can come back"
		}
	}
	open := map[string]bool{}
	for _, id := range r.Open {
		keep.actions[id], open[id] = "action "+id+" has not ended", true
	}
	for _, attempt := range r.Halted {
		if root := r.Roots[attempt]; root != "" {
			keep.roots[root] = "its restore root is halted: attempt " + attempt + " could not be ended"
		} else {
			keep.all = "attempt " + attempt + " is halted, and the audit log does not name its restore root"
		}
	}
	for _, h := range all {
		if open[h.Action] {
			keep.ids[TargetOf(h)] = keep.actions[h.Action]
		}
	}
	if len(r.RolledBack) > 0 {
		err = keep.findEdits(snapshots, all, r.RolledBack, slices.Concat(standing, retired))
	}
	return keep, err
}

// broughtBack returns the IDs of the savepoints that the restore of one of these snapshots makes
// active again.
func broughtBack(all []snapshot.Header, savepoints []savepoint.Savepoint) map[string]bool {
	parents, found := map[string]string{}, map[string]bool{}
	for _, sp := range savepoints {
		parents[sp.ID()] = sp.Parent()
	}
	for _, h := range all {
		for id := h.Texts[SavepointNow]; id != "" && !found[id]; id = parents[id] {
			found[id] = true
		}
	}
	return found
}

// findEdits finds the snapshots from before these rollbacks that must stay: the newest of each root,
// and those with the content of a file that no commit has made and no newer snapshot of them has, nor
// the newest snapshot of the root.
func (keep *Retention) findEdits(snapshots *snapshot.Store, all []snapshot.Header, rolledBack []string, commits []savepoint.Savepoint) error {
	known := map[snapshot.Digest]bool{}
	for _, sp := range commits {
		created, err := createdBy(sp)
		if err != nil {
			return err
		}
		for _, e := range created {
			known[e.Digest] = true
		}
	}
	newest, undoes := map[string]bool{}, map[string]bool{} // roots that have a newer snapshot, or one from before a rollback
	for _, h := range slices.Backward(all) {
		isRollback := h.Kind == snapshot.PreAction && slices.Contains(rolledBack, h.Action)
		if newest[h.Root] && !isRollback {
			continue
		}
		snap, err := snapshots.Find(h.ID)
		if err != nil {
			return err
		}
		hasEdits := false
		for e := range snap.Entries() {
			if e.Type == snapshot.File && !known[e.Digest] {
				known[e.Digest], hasEdits = true, true
			}
		}
		switch {
		case isRollback && hasEdits:
			keep.unique[h.ID] = true
			keep.edits[h.ID] = "it has contents from before rollback " + h.Action + " that no newer snapshot has"
		case isRollback && !undoes[h.Root]:
			keep.edits[h.ID] = "it takes back rollback " + h.Action + ", the newest of its root"
		}
		newest[h.Root], undoes[h.Root] = true, undoes[h.Root] || isRollback
	}
	return nil
}

// Of returns why a snapshot must stay; "" where nothing refers to it.
func (keep *Retention) Of(h snapshot.Header) string {
	why, looked := keep.roots[h.Root]
	if !looked {
		why = keep.unfinishedIn(h.Root)
		if keep.bars != nil && why == "" {
			if is, _ := keep.bars.Barred(h.Root); is {
				why = "its restore root is halted: a rollback could not be carried out"
			}
		}
		keep.roots[h.Root] = why
	}
	return cmp.Or(keep.all, why, keep.actions[h.Action], keep.ids[h.ID], keep.edits[h.ID])
}

// HoldsEdits reports whether a snapshot has contents that a rollback removed and no newer snapshot has.
func (keep *Retention) HoldsEdits(h snapshot.Header) bool { return keep.unique[h.ID] }

// unfinishedIn describes what an attempt has left in a root, whatever the records have of it;
// "" for nothing, also if the root does not exist any more.
func (keep *Retention) unfinishedIn(root string) string {
	var left []string
	var err error
	if keep.path != nil {
		root, err = keep.path(root)
	}
	if err == nil {
		var dir *pathsafe.Dir
		if dir, err = pathsafe.OpenRoot(root); err == nil {
			defer dir.Close()
			left, err = staging.Leftovers(dir)
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ""
	case err != nil:
		return fmt.Sprintf("cannot determine whether its restore root is halted: %v", err)
	case len(left) > 0:
		return fmt.Sprintf("%q is unfinished in its restore root", left[0])
	}
	return ""
}
