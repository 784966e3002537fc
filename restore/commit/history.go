package commit

import (
	"errors"

	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/staging"
)

// history is what the audit log hears of one root: each attempt begins there
// before anything is written, and ends there. Without a log it is silent.
type history struct {
	log        *audit.Log
	savepoints savepoints
	authority  Authority
	root       string // its path
	rootID     string // device and inode

	preview   string           // of the commit under way
	draft     *savepoint.Draft // of its savepoint
	published string           // id of the savepoint of the last one
}

// Began is [staging.Log]. The savepoint is prepared first: a commit of which there
// could be no record does not begin.
func (h *history) Began(attempt string) error {
	if h.authority != nil {
		if err := h.authority.Attempt(h.root); err != nil {
			return err
		}
	}
	if err := h.savepoints.prepare(h.root, h.rootID, attempt, h.draft); err != nil {
		return err
	}
	if h.log == nil {
		return nil
	}
	return h.log.Append(audit.Event{Kind: audit.CommitBegin, Action: attempt, Root: h.root, Preview: h.preview})
}

// Completed is [staging.Log].
func (h *history) Completed(attempt string) error {
	id, err := h.savepoints.publish(h.root, attempt)
	if err != nil {
		return err
	}
	h.published = id
	event := audit.Event{Kind: audit.CommitEnd, Action: attempt}
	if id != "" {
		event.Reason = "savepoint " + id
	}
	return h.once(event)
}

// Released is [staging.Log].
func (h *history) Released(attempt string, left error) error {
	return h.once(audit.Event{Kind: audit.Released, Action: attempt, Reason: left.Error()})
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

func (h *history) halt(attempt string, why error) error {
	return h.once(audit.Event{Kind: audit.Halted, Action: attempt, Reason: why.Error()})
}

// halted logs that a recovery has failed, once, however often it is tried.
func (h *history) halted(err error) error {
	var halt *staging.HaltError
	if !errors.As(err, &halt) || errors.Is(err, staging.ErrHalted) {
		return nil
	}
	return h.halt(halt.Attempt, halt.Err)
}

// ended logs what became of an attempt that was found. That it is complete, or
// was released, was logged before its journal went.
func (h *history) ended(o staging.Outcome) error {
	event := audit.Event{Kind: audit.RolledBack, Action: o.Attempt, Root: h.root, Rollback: audit.Emergency, Reason: "it was found unfinished"}
	switch {
	case h.log == nil || o.Result == staging.Completed || o.Result == staging.Released:
		return nil
	case o.Result == staging.Cleared: // it may have ended before, one way or the other
		return h.log.End(event)
	}
	return h.once(event)
}

// endStale ends the attempts of which nothing is left in the root: they were
// rolled back, or had not written anything yet, when they were killed. One that
// was completed or released has its end in the log before its journal goes.
//
// The log knows a root by its path alone. Where another directory stands there
// now, or another state directory has ended the attempt, this end is a guess;
// whoever finds the attempt after all logs the true one behind it.
func (h *history) endStale() error {
	if h.log == nil {
		return nil
	}
	ids, err := h.log.Open(h.root)
	for _, id := range ids {
		err = errors.Join(err, h.once(audit.Event{Kind: audit.RolledBack, Action: id, Rollback: audit.Emergency, Reason: "nothing of it was found"}))
	}
	return err
}
