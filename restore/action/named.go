package action

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/spectrumfs/spectrum/internal/hexdigits"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/restore/snapshot"
)

// A ReadLog calls visit with each entry of an audit log, of a damaged log with those before the damage,
// and returns where the log stands.
type ReadLog func(visit func(audit.Entry) error) (audit.Head, error)

// OpenLog opens the audit log, which is closed after its use.
type OpenLog func() (*audit.Log, error)

// append logs an event, in a log that is opened for that.
func (open OpenLog) append(event audit.Event) error {
	log, err := open()
	if err != nil {
		return err
	}
	return errors.Join(log.Append(event), log.Close())
}

// Latest names the newest commit of a root, in place of its ID.
const Latest = "latest"

// Naming is what an ID, or "latest", names among the commits.
type Naming int

// The values of Naming.
const (
	NamesNothing      Naming = iota
	NamesCommit              // one that can be undone: Savepoint
	NamesSeveral             // Several; for "latest" Roots, the restore roots of these commits
	NamesUnread              // one whose savepoint cannot be read: Damage
	NamesUndone              // one that was undone (Savepoint), or all were: Rollback, nil where the log does not have it
	NamesUnfinished          // one that has begun and not ended: Action
	NamesRollback            // a rollback, or the restore of a snapshot: Action
	NamesLost                // one that stands by the log, and whose savepoint is lost: Action
	NamesNotCompleted        // one that failed, or was released: Action
)

// Named is a commit by its name. The fields of its kind are set.
type Named struct {
	Kind      Naming
	Savepoint savepoint.Savepoint
	Several   []savepoint.Savepoint
	Roots     []string
	Damage    *savepoint.DamageError
	Action    *audit.Action
	Rollback  *audit.Entry
}

// NamedCommit finds the commit that an ID names, or the first digits of one; of commit and savepoint
// alike. A commit that can be undone comes first, then what is known of it by its savepoint, and then
// by the log.
func NamedCommit(id string, all *savepoint.Survey, read ReadLog) Named {
	var found []savepoint.Savepoint
	for _, sp := range all.Standing {
		if sp.IsNamed(id) {
			found = append(found, sp)
		}
	}
	switch len(found) {
	case 0:
	case 1:
		return Named{Kind: NamesCommit, Savepoint: found[0]}
	default:
		return Named{Kind: NamesSeveral, Several: found}
	}
	for _, d := range all.Damaged {
		if !d.Retired && hexdigits.Begins(d.Attempt, id) {
			return Named{Kind: NamesUnread, Damage: d}
		}
	}
	for _, sp := range all.Retired {
		if sp.IsNamed(id) {
			return Named{Kind: NamesUndone, Savepoint: sp, Rollback: RollbackOf(sp.Attempt(), read)}
		}
	}
	actions, open := read.actions("")
	if c := unfinished(actions, open, func(c *audit.Action) bool { return hexdigits.Begins(c.ID, id) }); c != nil {
		return Named{Kind: NamesUnfinished, Action: c}
	}
	for _, last := range []struct {
		kind Naming
		is   func(*audit.Action) bool
	}{
		{NamesRollback, func(c *audit.Action) bool { return !c.IsCommit() }},
		{NamesLost, inForce},
		{NamesNotCompleted, func(c *audit.Action) bool {
			return c.IsCommit() && (c.State == audit.Failed || c.State == audit.LeftAsIs)
		}},
	} {
		for _, c := range actions {
			if hexdigits.Begins(c.ID, id) && last.is(c) {
				return Named{Kind: last.kind, Action: c}
			}
		}
	}
	return Named{}
}

// Newest returns the record that "latest" names among these, of which the oldest is the first: the newest
// if all are of one restore root, otherwise nil. Roots are the names of their restore roots.
func Newest[T any](all []T, rootOf func(T) string) (newest *T, roots []string) {
	for _, record := range all {
		roots = append(roots, rootOf(record))
	}
	slices.Sort(roots)
	if roots = slices.Compact(roots); len(roots) == 1 {
		newest = &all[len(all)-1]
	}
	return newest, roots
}

// LatestCommit finds the newest commit in the root of a name, or in all if that is "". It names none if
// there are commits in several roots, nor if a newer one may be one whose savepoint cannot be read or is
// lost.
func LatestCommit(root string, all *savepoint.Survey, read ReadLog) Named {
	standing := slices.Clone(all.Standing)
	if root != "" {
		standing = slices.DeleteFunc(standing, func(sp savepoint.Savepoint) bool { return sp.Root() != root })
	}
	if d := newestUnread(root, all.Damaged, standing); d != nil {
		return Named{Kind: NamesUnread, Damage: d}
	}
	newest, roots := Newest(standing, savepoint.Savepoint.Root)
	switch {
	case newest != nil:
		if c := lostSince(newest, read); c != nil {
			return Named{Kind: NamesLost, Action: c}
		}
		return Named{Kind: NamesCommit, Savepoint: *newest}
	case len(roots) > 1:
		return Named{Kind: NamesSeveral, Roots: roots}
	}
	actions, open := read.actions(root)
	if c := NewestInForce(actions); c != nil {
		return Named{Kind: NamesLost, Action: c}
	}
	if c := unfinished(actions, open, func(*audit.Action) bool { return true }); c != nil {
		return Named{Kind: NamesUnfinished, Action: c}
	}
	last := lastRollback(read, func(e *audit.Entry) bool { return len(e.Actions) > 0 && (root == "" || e.Root == audit.RootText(root)) })
	if last == nil {
		return Named{}
	}
	return Named{Kind: NamesUndone, Rollback: last}
}

// lostSince returns the newest commit in force by the log that is newer than the one of a savepoint; nil for
// none. Its savepoint is lost, and no person has accepted that.
func lostSince(sp *savepoint.Savepoint, read ReadLog) *audit.Action {
	var ledger audit.Ledger
	_, _ = read(ledger.Add) // of a damaged log the part before the damage
	actions, _ := read.actions(sp.Root())
	for _, c := range slices.Backward(actions) {
		if c.ID == sp.Attempt() {
			break
		}
		if inForce(c) && c.Savepoint != "" && !ledger.Accepts(c.Savepoint) {
			return c
		}
	}
	return nil
}

// newestUnread returns the newest savepoint that cannot be read, in the root of a name or in all if that
// is "", and that may be newer than those that can be read.
func newestUnread(root string, damaged []*savepoint.DamageError, standing []savepoint.Savepoint) (unread *savepoint.DamageError) {
	for _, d := range damaged {
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
	return unread
}

// NewestInForce returns the newest commit that is in force by the log, of which these are the actions; nil
// for none.
func NewestInForce(actions []*audit.Action) *audit.Action {
	for _, c := range slices.Backward(actions) {
		if inForce(c) {
			return c
		}
	}
	return nil
}

// inForce reports whether an action is a commit that is in force by the log.
func inForce(c *audit.Action) bool { return c.IsCommit() && c.State == audit.Done && c.UndoneBy == "" }

// actions returns what the log has of commits and rollbacks in the root of a name, or in all if that is
// "", and the IDs of the actions that have not ended; of a damaged log none of these.
func (read ReadLog) actions(root string) ([]*audit.Action, map[string]string) {
	var history audit.History
	head, _ := read(func(e audit.Entry) error {
		if root == "" || e.Root == audit.RootText(root) {
			history.See(&e)
		}
		return nil
	})
	return history.Actions(), head.Open
}

// unfinished returns the first by its ID of the meant commits that have begun and not ended, as after a
// kill; nil for none.
func unfinished(actions []*audit.Action, open map[string]string, isMeant func(*audit.Action) bool) *audit.Action {
	for _, id := range slices.Sorted(maps.Keys(open)) {
		for _, c := range actions {
			if c.ID == id && c.IsCommit() && !c.Began.IsZero() && isMeant(c) {
				return c
			}
		}
	}
	return nil
}

// RollbackOf returns the entry of the last rollback that has undone a commit; nil where the log has none.
func RollbackOf(commit string, read ReadLog) *audit.Entry {
	return lastRollback(read, func(e *audit.Entry) bool { return slices.Contains(e.Actions, commit) })
}

// lastRollback returns the last entry of a rollback that was carried out, and that is meant.
func lastRollback(read ReadLog, isMeant func(*audit.Entry) bool) (last *audit.Entry) {
	_, _ = read(func(e audit.Entry) error {
		if e.Kind == audit.RolledBack && e.Snapshot != "" && isMeant(&e) {
			last = &e
		}
		return nil
	})
	return last
}

// TakenBefore returns the IDs of the snapshots that the log has from before a commit; nil where it does
// not have the commit.
func TakenBefore(commit string, read ReadLog) map[string]bool {
	ids, hasBegun := map[string]bool{}, false
	_, _ = read(func(e audit.Entry) error {
		hasBegun = hasBegun || e.Kind == audit.CommitBegin && e.Action == commit
		ids[e.Snapshot] = ids[e.Snapshot] || !hasBegun
		return nil
	})
	if !hasBegun {
		return nil
	}
	return ids
}

// SnapshotsFor returns, of the snapshots of its root, the ID of the one from before a commit, "" if it is
// gone, and whether an emergency rollback would restore one from before it. It verifies none.
func SnapshotsFor(commit string, all []snapshot.Header, read ReadLog) (before string, hasWhole bool) {
	earlier := TakenBefore(commit, read)
	for _, h := range all {
		if h.IsBefore(commit) {
			before = h.ID
		}
	}
	newest := snapshot.NewestForEmergency(all)
	return before, newest != nil && (earlier == nil || earlier[newest.ID])
}

// SnapshotOf finds, among all snapshots, the one from before the action that an ID names, or the first
// digits of one; a commit is named by its savepoint, too. It returns the IDs of both, "" for none; two
// actions are several.
func SnapshotOf(id string, all []snapshot.Header, read ReadLog) (before, of string, isSeveral bool) {
	commits := map[string]bool{}
	actions, _ := read.actions("")
	for _, c := range actions {
		if c.IsCommit() && hexdigits.Begins(c.Savepoint, id) {
			commits[c.ID] = true
		}
	}
	for _, h := range all {
		if h.Kind != snapshot.PreAction || h.Action == "" || !commits[h.Action] && !hexdigits.Begins(h.Action, id) {
			continue
		}
		if of != "" && of != h.Action {
			return "", "", true
		}
		before, of = h.ID, h.Action
	}
	return before, of, false
}

// BeforeCommit returns, of the snapshots of a root, the newest from before this commit, or from before any
// commit of the log if commit is ""; nil for none. The log is read only then.
func BeforeCommit(commit string, all []snapshot.Header, read ReadLog) *snapshot.Header {
	commits := map[string]bool{commit: commit != ""}
	if commit == "" {
		_, _ = read(func(e audit.Entry) error { // of a damaged log the part before the damage
			commits[e.Action] = commits[e.Action] || e.Kind == audit.CommitBegin
			return nil
		})
	}
	for _, h := range slices.Backward(all) {
		if h.Kind == snapshot.PreAction && commits[h.Action] {
			return &h
		}
	}
	return nil
}

// NewestWhole returns the newest snapshot of a whole root among these that verifies; nil for none.
func NewestWhole(ctx context.Context, store *snapshot.Store, all []snapshot.Header, among map[string]bool) *snapshot.Header {
	for _, h := range slices.Backward(all) {
		if !h.IsComplete() || !among[h.ID] {
			continue
		}
		found, err := store.Find(h.ID)
		if err != nil {
			continue
		}
		if damaged, err := store.Verify(ctx, found); err == nil && len(damaged) == 0 {
			return &h
		}
	}
	return nil
}
