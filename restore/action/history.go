package action

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
)

// history is what the audit log records of one root: each attempt begins there
// before anything is written, and ends there. Without a log it is silent.
type history struct {
	log        *audit.Log
	savepoints savepoints
	snapshots  *snapshot.Store
	took       func(*snapshot.Snapshot) // may be nil
	authority  Authority
	bars       Bars        // may be nil
	barStays   func(error) // may be nil
	dir        *pathsafe.Dir
	root       string // its path
	rootID     string // see [pathsafe.Dir.Identity]: a device number changes at a restart

	acknowledge func(attempt string, left error) (string, error)
	reason      string // why unfinished attempts are ended now, in the operator's words; "" for none

	snapped   bool   // a snapshot was begun
	entered   string // id of the savepoint that was active when the root was entered
	begun     bool   // an action has begun since
	published string // id of the savepoint of the last commit
	attempt   string // id of the last commit
	before    string // id of the snapshot before it
}

// newHistory returns the records of the root that is at a real path.
func newHistory(e *Entry, dir *pathsafe.Dir, real string) (*history, error) {
	st, err := dir.Stat()
	if err != nil {
		return nil, err
	}
	id, err := dir.Identity()
	if err != nil {
		return nil, err
	}
	root := real
	if e.Known != nil {
		if root, err = e.Known(real, id, st); err != nil {
			return nil, err
		}
	}
	return &history{
		log: e.Log, savepoints: savepoints{e.Savepoints, e.Host}, snapshots: e.Snapshots, took: e.Took,
		authority: e.Authority, acknowledge: e.Acknowledge, reason: e.Reason, bars: e.Bars, barStays: e.BarStays,
		dir: dir, root: root, rootID: id,
	}, nil
}

// A commitRecord is the data recorded of a commit.
type commitRecord struct {
	preview string
	reason  string // in the operator's words; "" for none
	draft   *savepoint.Draft
	scope   []pathsafe.Path // the names that it makes or displaces
	// replaces are the files that it displaces, removes or leaves as they are, by their paths.
	replaces map[string]*restore.Target
	gone     []pathsafe.Path // names that it would remove, and that are free
}

// begins requires, for the first action in a root since it was entered, that no other one was
// completed there in between.
func (h *history) begins() error {
	if h.begun {
		return nil
	}
	err := h.isSame()
	h.begun = err == nil
	return err
}

func (h *history) isSame() error {
	active, err := h.savepoints.active(h.root)
	if err == nil && active != h.entered {
		err = staging.ErrOvertaken
	}
	return err
}

// beginCommit records the beginning of a commit: earlier previews and approvals become void,
// whatever the outcome. A commit that could not be undone, or not be recorded, does not begin.
func (h *history) beginCommit(attempt string, rec *commitRecord) error {
	if err := h.begins(); err != nil {
		return err
	}
	if h.authority != nil {
		if err := h.authority.Attempt(h.root); err != nil {
			return err
		}
	}
	event := audit.Event{Kind: audit.CommitBegin, Action: attempt, Preview: rec.preview, Reason: rec.reason}
	if h.snapshots != nil {
		before, err := h.snap(context.Background(), attempt, rec.scope, nil, func(active string) map[string]string {
			return map[string]string{SavepointNow: active}
		})
		if err != nil {
			return err
		}
		if err := rec.checkSnapshot(before); err != nil {
			return err
		}
		event.Snapshot, h.before = before.ID(), before.ID()
	}
	if err := h.mark(rec.draft); err != nil {
		return err
	}
	if err := h.savepoints.prepare(h.root, h.rootID, attempt, rec.draft); err != nil {
		return err
	}
	return h.append(event)
}

// mark makes the savepoint sign the position of the log, so that the log cannot be rewritten
// up to there. The commit itself is not logged yet.
func (h *history) mark(draft *savepoint.Draft) error {
	if h.log == nil || draft == nil {
		return nil
	}
	mark, err := h.logged()
	draft.Said[LogMark] = mark
	return err
}

// logged returns the position of the log, see [audit.Log.Mark]; "" without a log.
func (h *history) logged() (string, error) {
	if h.log == nil {
		return "", nil
	}
	return h.log.Mark()
}

func (h *history) append(event audit.Event) error {
	if h.log == nil {
		return nil
	}
	event.Root = h.root
	return h.log.Append(event)
}

// completed records the end of an attempt that was found complete, while its journal exists.
func (h *history) completed(attempt, kind string) error {
	if kind == staging.KindCommit {
		return h.endCommit(attempt)
	}
	before, err := h.snapshotBefore(attempt)
	if err != nil {
		return err
	}
	return h.endBack(attempt, before)
}

// endCommit publishes the savepoint of a commit and records its end.
func (h *history) endCommit(attempt string) error {
	id, err := h.savepoints.publish(h.root, attempt)
	if err != nil {
		return err
	}
	h.published, h.attempt = id, attempt
	event := audit.Event{Kind: audit.CommitEnd, Action: attempt}
	if id != "" {
		event.Reason = h.why(audit.SavepointReason(id))
	}
	return h.once(event)
}

// maxStatement limits how many letters of a statement are logged: the reason must also have
// room for what is left.
const maxStatement = 2 << 10

// released records that an attempt is released, before its journal is made void. The
// operator's statement is in the reason, before the description of what is left, which may be
// cut.
func (h *history) released(attempt string, left error) error {
	if h.acknowledge == nil {
		return fmt.Errorf("%w (it was not accepted)", left)
	}
	statement, err := h.acknowledge(attempt, left)
	if err != nil {
		return err
	}
	reason := fmt.Sprintf("%s; left: %v", h.why(fmt.Sprintf("%.*q", maxStatement, statement)), left)
	return h.once(audit.Event{Kind: audit.Released, Action: attempt, Reason: reason})
}

// once logs what became of an attempt, unless that is known already.
func (h *history) once(event audit.Event) error {
	if h.log == nil {
		return nil
	}
	event.Root = h.root
	return h.log.Once(event)
}

// failed logs a failed attempt, and returns its failure. What cannot be logged
// here the next one to enter the root logs: the action is still open.
func (h *history) failed(failure error, err error) error {
	var e *staging.Error
	if !errors.As(err, &e) || e.Attempt == "" {
		return failure
	}
	var logged error
	if e.Rollback != nil {
		logged = h.halt(e.Attempt, failure)
	} else {
		logged = errors.Join(
			h.once(audit.Event{Kind: audit.RolledBack, Action: e.Attempt, Rollback: audit.Micro, Reason: failure.Error()}),
			h.savepoints.drop(h.root, e.Attempt))
	}
	var f *restore.Failure
	if errors.As(failure, &f) && logged != nil {
		f.Err = errors.Join(f.Err, logged)
	}
	return failure
}

// why adds the operator's reason to the logged one.
func (h *history) why(logged string) string {
	if h.reason == "" {
		return logged
	}
	return fmt.Sprintf("%s; %q", logged, h.reason)
}

func (h *history) halt(attempt string, why error) error {
	return h.once(audit.Event{Kind: audit.Halted, Action: attempt, Reason: why.Error()})
}

// halted logs that a recovery has failed, once, however often it is tried.
func (h *history) halted(err error) error {
	var logged error
	for _, halt := range HaltsOf(err) {
		if !errors.Is(halt.Err, staging.ErrHalted) {
			logged = errors.Join(logged, h.halt(halt.Attempt, halt.Err))
		}
	}
	return logged
}

// ended logs the outcome of an attempt that was found. Its completion or release was logged
// before its journal was removed.
func (h *history) ended(o staging.Outcome) error {
	event := audit.Event{Kind: audit.RolledBack, Action: o.Attempt, Root: h.root, Rollback: h.typeOf(o.Attempt), Reason: "it was found unfinished"}
	if o.Cause != nil {
		event.Reason = fmt.Sprintf("it was found committed, but its files changed afterwards: %v", o.Cause)
	}
	event.Reason = h.why(event.Reason)
	switch {
	case h.log == nil || o.Result == staging.Completed || o.Result == staging.Released:
		return nil
	case o.Result == staging.Cleared: // it may have ended before, one way or the other
		return h.log.End(event)
	}
	return h.once(event)
}

// logNewest logs the newest snapshot of the root if the log lacks it: the command that took it
// was killed before it could log it. If the end of the log was cut, the entry is marked as
// found.
func (h *history) logNewest() error {
	if h.log == nil || h.snapshots == nil {
		return nil
	}
	id, err := h.snapshots.Newest(h.root)
	if err != nil || id == "" {
		return err
	}
	return h.logSnapshot(id)
}

// logSnapshot logs a snapshot of the root if the log lacks it. It is called before the next
// snapshot is published, so at most the newest one is missing in the log, even if several
// concurrent commands that take snapshots are killed.
func (h *history) logSnapshot(id string) error {
	if h.log == nil {
		return nil
	}
	has, err := h.log.HasSnapshot(id)
	if err != nil || has {
		return err
	}
	return h.append(audit.Event{Kind: audit.SnapshotTaken, Action: uuid.NewString(), Snapshot: id, Reason: FoundUnlogged})
}

// FoundUnlogged is the reason of an entry for a snapshot that was found.
const FoundUnlogged = "it was found, but was not in the log"

// hasOpen reports whether there are records of an action that has not ended.
func (h *history) hasOpen() (bool, error) {
	pending, err := h.savepoints.pending(h.root, h.rootID)
	if err != nil || len(pending) > 0 {
		return err == nil, err
	}
	ids, err := h.open()
	return len(ids) > 0, err
}

// open returns the ids of the actions of which the log has the beginning and no end, sorted.
func (h *history) open() ([]string, error) {
	if h.log == nil {
		return nil, nil
	}
	return h.log.Open(h.root)
}

// trueEnd returns the end of an attempt of which nothing is left in the root. The end of a
// completed attempt was logged before its journal was removed, so if the log lacks it, the log
// was cut. The savepoints show it: that of a commit is in the chain, those of undone commits
// are retired, and those of redone ones are in the chain again. For any other attempt the
// caller passes the reason: it was rolled back, or had not written anything yet, when it was
// killed, unless it is half done, see [lost].
//
// The log identifies a root by its path alone. If another directory is there now, or the
// attempt was ended with another state directory, this end is a guess; the session that finds
// the attempt after all logs the true end behind it.
func (h *history) trueEnd(id string, all *savepoint.Survey) (event audit.Event, known bool) {
	for _, sp := range all.Standing {
		if sp.Attempt() == id {
			return audit.Event{Kind: audit.CommitEnd, Action: id, Reason: audit.SavepointReason(sp.ID())}, true
		}
	}
	for _, d := range all.Damaged {
		if d.Attempt == id && !d.Retired { // its id is not known
			return audit.Event{Kind: audit.CommitEnd, Action: id}, true
		}
	}
	before, err := h.snapshotBefore(id)
	if affected := strings.Fields(before.Texts[saidAffected]); err == nil && (AllRetired(all, affected) || hasBrought(all, before)) {
		return rolledBack(id, before), true
	}
	return audit.Event{Kind: audit.RolledBack, Action: id, Rollback: h.typeOf(id)}, false
}

// typeOf returns the type of the rollback that takes an attempt back which was found: that of the
// attempt itself if it is a rollback, which is not done then, and an emergency one of a commit.
func (h *history) typeOf(attempt string) audit.Rollback {
	before, err := h.snapshotBefore(attempt)
	if is := audit.Rollback(before.Texts[saidType]); err == nil && is != "" {
		return is
	}
	return audit.Emergency
}

// hasBrought reports whether the savepoints are in the chain that the action after a snapshot
// was to bring back, which it does after COMMITTED.
func hasBrought(all *savepoint.Survey, before snapshot.Header) bool {
	brings := Brings(before)
	if len(brings) == 0 || before.Texts[saidStays] != "" {
		return false
	}
	return !slices.ContainsFunc(brings, func(id string) bool {
		return !slices.ContainsFunc(all.Standing, func(sp savepoint.Savepoint) bool { return sp.Attempt() == id })
	})
}

// AllRetired reports whether there are commits of these ids, and each was taken out of the chain:
// the rollback of them was completed.
func AllRetired(all *savepoint.Survey, commits []string) bool {
	for _, id := range commits {
		is := func(sp savepoint.Savepoint) bool { return sp.Attempt() == id }
		isDamaged := func(d *savepoint.DamageError) bool { return d.Attempt == id && d.Retired }
		if slices.ContainsFunc(all.Standing, is) || !slices.ContainsFunc(all.Retired, is) && !slices.ContainsFunc(all.Damaged, isDamaged) {
			return false
		}
	}
	return len(commits) > 0
}
