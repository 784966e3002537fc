package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/statecheck"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/records"
	"github.com/spectrumfs/spectrum/restore/savepoint"
)

// latest is the newest commit, savepoint or snapshot.
const latest = action.Latest

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
	survey := func() (savepoint.Survey, error) {
		all, err := store.Survey("")
		return all, savepointError(err)
	}
	if id == latest {
		return a.newestCommit(state, survey)
	}
	all, err := survey()
	if err != nil {
		return savepoint.Savepoint{}, err
	}
	named := action.NamedCommit(id, &all, logOf(state))
	if named.Kind == action.NamesCommit {
		return named.Savepoint, nil
	}
	if err := cannotUndo(state, &named); err != nil {
		return savepoint.Savepoint{}, err
	}
	err = fmt.Errorf("there is no commit %.100q that could be undone", id)
	if named.Kind == action.NamesSeveral {
		err = fmt.Errorf("%s begin with %q", numberOf(len(named.Several), "commit"), id)
	}
	if len(id) < least {
		err = fmt.Errorf("%q is too short for a commit: %d digits or more are needed", id, least)
	}
	hint := findsCommits
	if _, err := pathsafe.ResolveDir(id); err == nil {
		path := foreignOption(id) + shellQuote(id)
		hint = fmt.Sprintf("\"spectrum rollback latest %s\" undoes the newest commit there; to take all of that directory back: \"spectrum rollback --emergency %s\"", path, path)
	}
	if other := otherID(state, id); other != "" {
		hint = other
	}
	return savepoint.Savepoint{}, refusedHint(err, hint)
}

// cannotUndo is the error of the rollback of what is known, and is not a commit that could be undone; nil for
// what is not known.
func cannotUndo(state *statedir.Dir, named *action.Named) error {
	switch named.Kind {
	case action.NamesUnread:
		return unreadCommit(state, named.Damage)
	case action.NamesUndone:
		if named.Savepoint.ID() == "" {
			return everyUndone(state, named.Rollback)
		}
		return alreadyUndone(state, named.Savepoint.Attempt(), named.Rollback)
	case action.NamesRollback:
		return isRollback(state, named.Action)
	}
	if named.Action == nil {
		return nil
	}
	path, err := state.RootPath(audit.RootOf(named.Action.Root))
	if err != nil {
		return nil
	}
	switch named.Kind {
	case action.NamesUnfinished:
		if named.Action.State == audit.Unresolved {
			return refusedHint(fmt.Errorf("commit %s was neither completed nor undone, so %q is halted", named.Action.ID, path), endsHalt(path))
		}
		return refusedHint(fmt.Errorf("commit %s has not ended: it is still running, or was killed", named.Action.ID),
			fmt.Sprintf("\"spectrum recover %s%s\" undoes or completes it", foreignOption(path), shellQuote(path)))
	case action.NamesLost:
		if isUndoneByRestore(state, named.Action) {
			hint := findsCommits
			if !records.Acceptances(state)(named.Action.Savepoint) {
				hint = fmt.Sprintf("\"spectrum recover %s%s\" shows what is lost, and how to accept that", foreignOption(path), shellQuote(path))
			}
			return refusedHint(fmt.Errorf("commit %s was undone by the restore of a snapshot from before it; its savepoint is lost", named.Action.ID), hint)
		}
		return savepointLost(state, named.Action, path)
	}
	return notCompleted(state, named.Action, path)
}

// unreadCommit is the error of a commit whose savepoint cannot be read.
func unreadCommit(state *statedir.Dir, damage *savepoint.DamageError) error {
	if damage.Attempt != "" {
		return &action.UnreadError{Commit: damage.Attempt, Err: damage}
	}
	return refusedHint(damage, unnamedHint(state, damage))
}

// isRollback is the error of the rollback of a rollback, or of the restore of a snapshot: the
// restore of the snapshot that was taken before it undoes it.
func isRollback(state *statedir.Dir, c *audit.Action) error {
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

// savepointLost is the error of the rollback of a commit that the audit log has and that has lost
// its savepoint.
func savepointLost(state *statedir.Dir, c *audit.Action, path string) error {
	root, ways := foreignOption(path)+shellQuote(path), []string{}
	before, hasWhole := snapshotsFor(state, c)
	if before != "" {
		ways = append(ways, fmt.Sprintf("\"spectrum snapshot restore %s%s\" restores the snapshot from before it", foreignOption(path), before[:shortest]))
	}
	if hasWhole {
		ways = append(ways, fmt.Sprintf("\"spectrum rollback --emergency %s\" does not require it", root))
	}
	hint := strings.Join(append(ways, fmt.Sprintf("\"spectrum recover %s\" shows what is lost", root)), "; ")
	return refusedHint(fmt.Errorf("the savepoint of commit %s, which lists the files that it created, is lost", c.ID), hint)
}

// notCompleted is the error of the rollback of a commit that failed and was undone, or that was
// released as it was.
func notCompleted(state *statedir.Dir, c *audit.Action, path string) error {
	if c.State == audit.Failed {
		return refusedHint(fmt.Errorf("commit %s failed, and was undone: %s", c.ID, c.Reason), fmt.Sprintf("the root has no trace of it, so there is nothing to undo; \"spectrum status %s\" shows the state of the root", shellQuote(path)))
	}
	err := fmt.Errorf("commit %s was not completed, and was released: %s", c.ID, c.Reason)
	if before, _ := snapshotsFor(state, c); before != "" {
		return refusedHint(err, fmt.Sprintf("the files that it left are still there: \"spectrum snapshot diff %[2]s\" compares the root with the snapshot from before it, and \"spectrum snapshot restore %[1]s%[2]s\" restores that", foreignOption(path), before[:shortest]))
	}
	return refusedHint(err, fmt.Sprintf("\"spectrum snapshot list %s\" lists the snapshots that can be restored", shellQuote(path)))
}

// snapshotsFor is [action.SnapshotsFor] with the snapshots of the state directory.
func snapshotsFor(state *statedir.Dir, c *audit.Action) (before string, hasWhole bool) {
	store, err := statecheck.Snapshots(state)
	if err != nil {
		return "", false
	}
	defer store.Close()
	all, _, _ := store.Survey(audit.RootOf(c.Root)) // an unreadable snapshot cannot be restored
	return action.SnapshotsFor(c.ID, all, logOf(state))
}

// takesBack is the command that takes a rollback back; if its snapshot was removed, it says so.
func takesBack(state *statedir.Dir, rollback *audit.Entry) string {
	if store, err := statecheck.Snapshots(state); err == nil {
		defer store.Close()
		if _, err := store.Find(rollback.Snapshot); errors.Is(err, fs.ErrNotExist) {
			return fmt.Sprintf("the snapshot from before that rollback, %s, is no longer there, so that rollback cannot be undone", rollback.Snapshot[:shortest])
		}
	}
	option := ""
	if path, err := state.RootPath(audit.RootOf(rollback.Root)); err == nil {
		option = foreignOption(path)
	}
	return fmt.Sprintf("\"spectrum snapshot restore %s%s\" undoes that rollback", option, rollback.Snapshot[:shortest])
}

// everyUndone is the error of latest where all commits are undone: which rollback was the last, and how
// to take it back.
func everyUndone(state *statedir.Dir, last *audit.Entry) error {
	return refusedHint(fmt.Errorf("every commit is undone; the last one, %s, was undone at %s", last.Actions[0], last.Time.Format(time.RFC3339)),
		takesBack(state, last)+"; \"spectrum log\" lists every commit and rollback")
}

// alreadyUndone is the error of the rollback of a commit that was rolled back before: when that
// was, and how to take it back. By is nil where the log does not have the rollback.
func alreadyUndone(state *statedir.Dir, commit string, by *audit.Entry) error {
	if by == nil {
		return refusedHint(fmt.Errorf("commit %s was already undone", commit), findsCommits)
	}
	return refusedHint(fmt.Errorf("commit %s was already undone at %s", commit, by.Time.Format(time.RFC3339)), takesBack(state, by))
}
