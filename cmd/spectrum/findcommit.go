package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/statecheck"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/restore/snapshot"
)

// latest is the newest commit, savepoint or snapshot.
const latest = "latest"

// findsCommits is the next step for an operator without the ID of a commit.
const findsCommits = "find the ID with \"spectrum log\", which lists every commit and rollback, or with \"spectrum savepoint list\", which lists the commits in place by their savepoints"

// findCommit is the savepoint of the commit with this ID, or with these digits of
// it; or of which this is the ID.
func (a *app) findCommit(state *statedir.Dir, id string) (savepoint.Savepoint, error) {
	store, err := statecheck.Savepoints(state)
	if err != nil {
		return savepoint.Savepoint{}, err
	}
	defer store.Close()
	all, err := store.Survey("")
	if err != nil {
		return savepoint.Savepoint{}, savepointError(err)
	}
	var found []savepoint.Savepoint
	if id == latest {
		return a.newestCommit(state, &all)
	}
	for _, sp := range all.Standing {
		if isNamed(sp, id) {
			found = append(found, sp)
		}
	}
	for _, d := range all.Damaged {
		if len(found) == 0 && len(id) >= least && !d.Retired && strings.HasPrefix(d.Attempt, id) {
			return savepoint.Savepoint{}, &action.UnreadError{Commit: d.Attempt, Err: d}
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		for _, sp := range all.Retired {
			if isNamed(sp, id) {
				return savepoint.Savepoint{}, alreadyUndone(state, sp)
			}
		}
		isMeant := func(begun audit.Entry) bool { return len(id) >= least && strings.HasPrefix(begun.Action, id) }
		known := cmp.Or(unfinishedCommit(state, isMeant), isRollback(state, id), savepointLost(state, id), notCompleted(state, id))
		if known != nil {
			return savepoint.Savepoint{}, known
		}
		err = fmt.Errorf("there is no commit %.100q that could be undone", id)
	default:
		err = fmt.Errorf("%s begin with %q", numberOf(len(found), "commit"), id)
	}
	if len(id) < least {
		err = fmt.Errorf("%q is too short for a commit: %d digits or more are needed", id, least)
	}
	hint := findsCommits
	if _, err := pathsafe.ResolveDir(id); err == nil {
		hint = fmt.Sprintf("%s; to take all of that directory back: \"spectrum rollback --emergency %s\"", findsCommits, shellQuote(id))
	}
	if other := otherID(state, id); other != "" {
		hint = other
	}
	return savepoint.Savepoint{}, refusedHint(err, hint)
}

// unfinishedCommit is the error of the rollback of a commit that has begun and not ended, as after
// a kill: recover undoes or completes it. isMeant is called for each commit that has begun. It
// returns nil if the log has no such commit.
func unfinishedCommit(state *statedir.Dir, isMeant func(begun audit.Entry) bool) error {
	began := map[string]string{}
	head, _ := readLog(state, func(e audit.Entry) error {
		if e.Kind == audit.CommitBegin && isMeant(e) {
			began[e.Action] = e.Root
		}
		return nil
	})
	for _, attempt := range slices.Sorted(maps.Keys(began)) {
		if _, open := head.Open[attempt]; !open {
			continue
		}
		path, err := state.RootPath(audit.RootOf(began[attempt]))
		if err != nil {
			return nil
		}
		return refusedHint(fmt.Errorf("commit %s has not ended: it was killed, or is at work", attempt),
			fmt.Sprintf("\"spectrum recover %s%s\" undoes or completes it", foreignOption(path), shellQuote(path)))
	}
	return nil
}

// isRollback is the error of the rollback of a rollback, or of the restore of a snapshot: the
// restore of the snapshot that was taken before it undoes it. It is nil where the log has no such one.
func isRollback(state *statedir.Dir, id string) error {
	all, _ := actionsOf(state, "") // of a damaged log, the entries before the damage
	for _, c := range all {
		if c.IsCommit() || len(id) < least || !strings.HasPrefix(c.ID, id) {
			continue
		}
		err := fmt.Errorf("%s is a rollback or the restore of a snapshot, and not a commit", c.ID)
		if c.State != audit.Done || len(c.Snapshot) < shortest {
			return refusedHint(err, findsCommits)
		}
		option := ""
		if path, unknown := state.RootPath(audit.RootOf(c.Root)); unknown == nil {
			option = foreignOption(path)
		}
		return refusedHint(err, fmt.Sprintf("\"spectrum snapshot restore %s%s\" undoes it: that is the snapshot from before it", option, c.Snapshot[:shortest]))
	}
	return nil
}

// savepointLost is the error of the rollback of a commit that the audit log has and that has lost
// its savepoint. It returns nil if the log has no such commit.
func savepointLost(state *statedir.Dir, id string) error {
	all, _ := actionsOf(state, "") // of a damaged log, the entries before the damage
	for _, c := range all {
		if !c.IsCommit() || c.State != audit.Done || c.UndoneBy != "" || len(id) < least || !strings.HasPrefix(c.ID, id) {
			continue
		}
		path, err := state.RootPath(audit.RootOf(c.Root))
		if err != nil {
			return nil
		}
		root, ways := foreignOption(path)+shellQuote(path), []string{}
		before, hasWhole := snapshotsFor(state, c)
		if before != "" {
			ways = append(ways, fmt.Sprintf("\"spectrum snapshot restore %s%s\" goes back to the snapshot from before it", foreignOption(path), before[:shortest]))
		}
		if hasWhole {
			ways = append(ways, fmt.Sprintf("\"spectrum rollback --emergency %s\" goes back without it", root))
		}
		hint := strings.Join(append(ways, fmt.Sprintf("\"spectrum recover %s\" says what is lost", root)), "; ")
		return refusedHint(fmt.Errorf("commit %s stands by the audit log, and its savepoint, which says what it has created, is lost", c.ID), hint)
	}
	return nil
}

// notCompleted is the error of the rollback of a commit that failed and was taken back, or that was
// released as it was. It is nil where the log has no such one.
func notCompleted(state *statedir.Dir, id string) error {
	all, _ := actionsOf(state, "") // of a damaged log, the entries before the damage
	for _, c := range all {
		if !c.IsCommit() || len(id) < least || !strings.HasPrefix(c.ID, id) {
			continue
		}
		path, unknown := state.RootPath(audit.RootOf(c.Root))
		if unknown != nil {
			return nil
		}
		switch before, _ := snapshotsFor(state, c); {
		case c.State == audit.Failed:
			return refusedHint(fmt.Errorf("commit %s failed, and was taken back: %s", c.ID, c.Reason), fmt.Sprintf("the root has no trace of it, so there is nothing to undo; \"spectrum status %s\" says the state of the root", shellQuote(path)))
		case c.State == audit.LeftAsIs && before != "":
			return refusedHint(fmt.Errorf("commit %s was not completed, and was released: %s", c.ID, c.Reason),
				fmt.Sprintf("what it left has stayed: \"spectrum snapshot diff %[2]s\" shows what differs from before it, and \"spectrum snapshot restore %[1]s%[2]s\" brings that back", foreignOption(path), before[:shortest]))
		case c.State == audit.LeftAsIs:
			return refusedHint(fmt.Errorf("commit %s was not completed, and was released: %s", c.ID, c.Reason), fmt.Sprintf("\"spectrum snapshot list %s\" lists what the root can go back to", shellQuote(path)))
		}
	}
	return nil
}

// snapshotsFor returns the ID of the snapshot from before a commit, "" if it is gone, and whether
// an emergency rollback would restore one from before it. It verifies none.
func snapshotsFor(state *statedir.Dir, c *audit.Action) (before string, hasWhole bool) {
	store, err := statecheck.Snapshots(state)
	if err != nil {
		return "", false
	}
	defer store.Close()
	all, _, _ := store.Survey(audit.RootOf(c.Root)) // an unreadable snapshot cannot be restored
	earlier := takenBefore(state, c.ID)
	for _, h := range all {
		if h.Action == c.ID && h.Kind == snapshot.PreAction {
			before = h.ID
		}
		if h.ForEmergency() { // the newest counts
			hasWhole = earlier == nil || earlier[h.ID]
		}
	}
	return before, hasWhole
}

// lastUndone is the error where all commits are undone, in the root of a name or in all where that is empty: which was the last, and how to take its rollback
// back. It is nil where the log has no rollback.
func lastUndone(state *statedir.Dir, root string) error {
	var last *audit.Entry
	_, _ = readLog(state, func(e audit.Entry) error {
		if e.Kind == audit.RolledBack && e.Snapshot != "" && len(e.Actions) > 0 && (root == "" || e.Root == audit.RootText(root)) {
			last = &e
		}
		return nil
	})
	if last == nil {
		return nil
	}
	return refusedHint(fmt.Errorf("every commit is undone; the last one, %s, was undone at %s", last.Actions[0], last.Time.Format(time.RFC3339)),
		takesBack(state, last)+"; \"spectrum log\" lists every commit and rollback")
}

// takesBack is the command that takes a rollback back; if its snapshot was removed, it says so.
func takesBack(state *statedir.Dir, rollback *audit.Entry) string {
	if store, err := statecheck.Snapshots(state); err == nil {
		defer store.Close()
		if _, err := store.Find(rollback.Snapshot); errors.Is(err, fs.ErrNotExist) {
			return fmt.Sprintf("the snapshot from before that rollback, %s, is no longer there, so it cannot be taken back", rollback.Snapshot[:shortest])
		}
	}
	return fmt.Sprintf("\"spectrum snapshot restore %s\" undoes that rollback", rollback.Snapshot[:shortest])
}

// alreadyUndone is the error of the rollback of a commit that was rolled back before: when that
// was, and how to take it back. What the log does not have is not known.
func alreadyUndone(state *statedir.Dir, sp savepoint.Savepoint) error {
	when, hint := "", findsCommits
	var last *audit.Entry
	_, _ = readLog(state, func(e audit.Entry) error {
		if e.Kind == audit.RolledBack && e.Snapshot != "" && slices.Contains(e.Actions, sp.Attempt()) {
			last = &e
		}
		return nil
	})
	if last != nil {
		when, hint = " at "+last.Time.Format(time.RFC3339), takesBack(state, last)
	}
	return refusedHint(fmt.Errorf("commit %s was already undone%s", sp.Attempt(), when), hint)
}
