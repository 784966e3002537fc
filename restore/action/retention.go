package action

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
)

// A Retention is the reason why snapshots must stay. A commit that can be undone, or that a
// snapshot can bring back, needs the snapshot from before it. An unfinished action needs its
// own and its target. A halted root needs all of its snapshots.
type Retention struct {
	actions map[string]string // of those before an action
	ids     map[string]string
	roots   map[string]string // halted ones, and those that were looked at
	all     string            // "" where only some must
	path    func(root string) (string, error)
	bars    Bars
}

// Records are what the audit log and the state directory have of actions.
type Records struct {
	Open   []string          // actions that have not ended
	Halted []string          // attempts
	Roots  map[string]string // of actions and attempts
	// Path, unless nil, returns where a root is now that is known by a path, see [Entry].Known.
	Path func(root string) (string, error)
	Bars Bars // may be nil
}

// RetentionOf returns why snapshots must stay.
func RetentionOf(savepoints *savepoint.Store, snapshots *snapshot.Store, r Records) (*Retention, error) {
	keep := &Retention{actions: map[string]string{}, ids: map[string]string{}, roots: map[string]string{}, path: r.Path, bars: r.Bars}
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
	for _, sp := range retired { // these snapshots are small: they hold names that were not there
		keep.actions[sp.Attempt()] = "commit " + sp.Attempt() + " was undone, and can come back"
	}
	open := map[string]bool{}
	for _, id := range r.Open {
		keep.actions[id], open[id] = "action "+id+" has not ended", true
	}
	for _, attempt := range r.Halted {
		if root := r.Roots[attempt]; root != "" {
			keep.roots[root] = "its restore root is halted: attempt " + attempt + " could not be ended"
		} else {
			keep.all = "attempt " + attempt + " is halted, and the audit log does not know in which restore root"
		}
	}
	all, err := snapshots.List("")
	for _, h := range all {
		if open[h.Action] {
			keep.ids[TargetOf(h)] = keep.actions[h.Action]
		}
	}
	return keep, err
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
	return cmp.Or(keep.all, why, keep.actions[h.Action], keep.ids[h.ID])
}

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
		return fmt.Sprintf("it cannot be told whether its restore root is halted: %v", err)
	case len(left) > 0:
		return fmt.Sprintf("%q is unfinished in its restore root", left[0])
	}
	return ""
}
