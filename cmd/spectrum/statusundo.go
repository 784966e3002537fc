package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/statecheck"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/records"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/restore/snapshot"
)

// unrecorded returns the newest commit in place, by the error of reading its savepoint, or if that is lost;
// "" if it has one that can be used.
func unrecorded(actions []*audit.Action, tipError error, lost *audit.Action) string {
	if lost != nil {
		return lost.ID
	}
	if tipError == nil {
		return ""
	}
	if damage, is := errors.AsType[*savepoint.DamageError](tipError); is && damage.Attempt != "" {
		return damage.Attempt
	}
	if newest := action.NewestInForce(actions); newest != nil {
		return newest.ID
	}
	return ""
}

// undoesUnrecorded returns the command that undoes a commit without its savepoint, by the snapshots of its
// root, at path; "" if none can.
func undoesUnrecorded(state *statedir.Dir, store *snapshot.Store, commit, path string, all []snapshot.Header) string {
	before, hasWhole := action.SnapshotsFor(commit, all, logOf(state))
	if before != "" {
		if _, err := store.Find(before); err != nil {
			before = ""
		}
	}
	switch {
	case before != "":
		return "spectrum snapshot restore " + foreignOption(path) + before[:shortest]
	case hasWhole:
		return "spectrum rollback --emergency " + foreignOption(path) + shellQuote(path)
	}
	return ""
}

// unrecordedHint returns how to undo the newest commit in place in the root of a name, at path, if its
// savepoint cannot be used; "" otherwise.
func unrecordedHint(state *statedir.Dir, name, path string) string {
	store, err := statecheck.Savepoints(state)
	if err != nil {
		return ""
	}
	defer store.Close()
	actions, _ := actionsOf(state, name) // of a damaged log the part before the damage
	tip, _, err := store.Tip(name)
	var lost *audit.Action
	if err == nil {
		lost, _ = lostSavepoint(state, store, actions, tip)
	}
	commit := unrecorded(actions, err, lost)
	if commit == "" {
		return ""
	}
	snapshots, err := statecheck.Snapshots(state)
	if err != nil {
		return ""
	}
	defer snapshots.Close()
	all, _, _ := snapshots.Survey(name) // an unreadable snapshot cannot be restored
	if lost != nil && isUndoneBy(actions, lost, all, action.TakenBefore(lost.ID, logOf(state))) {
		return ""
	}
	undo := undoesUnrecorded(state, snapshots, commit, path, all)
	if undo == "" {
		return ""
	}
	return fmt.Sprintf("\"%s\" undoes commit %s, the newest one, without its record; do that first if it is to be undone", undo, commit[:shortest])
}

// isUndoneBy reports whether a restore has undone a commit, by the snapshots of its root: that of the
// snapshot from before it, or of an earlier one of the whole root. The log does not have that where the
// savepoint of the commit was lost.
func isUndoneBy(actions []*audit.Action, commit *audit.Action, all []snapshot.Header, earlier map[string]bool) (undone bool) {
	before := map[string]string{} // targets of the restores, by the snapshots from before these
	fromBefore := map[string]bool{commit.Snapshot: true}
	for _, h := range all {
		before[h.ID] = action.TargetOf(h)
		fromBefore[h.ID] = fromBefore[h.ID] || h.Whole && earlier[h.ID]
	}
	taken := map[string]bool{} // the snapshots from before restores that have undone it
	begun := slices.IndexFunc(actions, func(c *audit.Action) bool { return c.ID == commit.ID })
	for _, c := range actions[begun+1:] {
		if c.IsCommit() || c.State != audit.Done {
			continue
		}
		switch target := before[c.Snapshot]; {
		case target != "" && fromBefore[target]:
			undone, taken[c.Snapshot] = true, true
		case taken[target]:
			undone = false
		}
	}
	return undone
}

// isUndoneByRestore is isUndoneBy, by the log and the snapshots of the state directory.
func isUndoneByRestore(state *statedir.Dir, commit *audit.Action) bool {
	snapshots, err := statecheck.Snapshots(state)
	if err != nil {
		return false
	}
	defer snapshots.Close()
	root := audit.RootOf(commit.Root)
	all, _, _ := snapshots.Survey(root)  // a restore of which the snapshot cannot be read is not known
	actions, _ := actionsOf(state, root) // of a damaged log the part before the damage
	return isUndoneBy(actions, commit, all, action.TakenBefore(commit.ID, logOf(state)))
}

// undoText is what undoes the newest commit in place; "" for nothing. Path is that of the root, for a
// command.
func (st *rootStatus) undoText(path string) string {
	if st.state != rootClean && st.state != rootDamaged && (st.state != rootHalted || len(st.halted) > 0) {
		return ""
	}
	switch {
	case st.undo != "":
		return fmt.Sprintf("%s, from before commit %s, whose record cannot be used", st.undo, st.unrecorded[:shortest])
	case st.tip == nil:
		return ""
	case st.isUndoable:
		return "spectrum rollback " + foreignOption(st.path) + st.tip.Attempt()[:shortest]
	}
	text := "no longer possible: the snapshot from before the commit is lost"
	if st.hasWholeBefore {
		return fmt.Sprintf("%s; \"spectrum rollback --emergency %s\" restores the snapshot of the whole root, which is older", text, path)
	}
	if st.isLossAccepted {
		return text + ", and no older one of the whole root exists"
	}
	return fmt.Sprintf("%s; \"spectrum recover %s\" shows what is left", text, path)
}

// findUndo finds what undoes the newest commit in place, by the snapshots of the root.
func (st *rootStatus) findUndo(state *statedir.Dir, store *snapshot.Store, all []snapshot.Header) {
	st.isLostUndone = st.lost != nil && isUndoneBy(st.actions, st.lost, all, action.TakenBefore(st.lost.ID, logOf(state)))
	if st.unrecorded = unrecorded(st.actions, st.tipError, st.lost); st.unrecorded != "" && !st.isLostUndone {
		st.undo = undoesUnrecorded(state, store, st.unrecorded, st.path, all)
	}
	if st.tip == nil {
		return
	}
	before, hasWhole := action.SnapshotsFor(st.tip.Attempt(), all, logOf(state))
	st.isUndoable, st.hasWholeBefore = before != "", hasWhole
	for _, c := range st.actions {
		if c.ID == st.tip.Attempt() && c.Snapshot != "" && before == "" {
			st.isLossAccepted = records.Acceptances(state)(c.Snapshot)
		}
	}
}
