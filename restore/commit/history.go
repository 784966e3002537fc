package commit

import (
	"errors"

	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/staging"
)

// history is what the audit log hears of one root: each attempt begins there
// before anything is written, and ends there once. Without a log it is silent.
type history struct {
	log     *audit.Log
	root    string
	preview string // of the commit under way
}

// Began is [staging.Log].
func (h *history) Began(attempt string) error {
	if h.log == nil {
		return nil
	}
	return h.log.Append(audit.Event{Kind: audit.CommitBegin, Action: attempt, Root: h.root, Preview: h.preview})
}

// Completed is [staging.Log].
func (h *history) Completed(attempt string) error {
	return h.end(audit.Event{Kind: audit.CommitEnd, Action: attempt})
}

// end logs the end of an attempt, unless it is known already.
func (h *history) end(event audit.Event) error {
	if h.log == nil {
		return nil
	}
	event.Root = h.root
	return h.log.End(event)
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
		logged = h.end(audit.Event{Kind: audit.RolledBack, Action: e.Attempt, Rollback: audit.Micro, Reason: failure.Error()})
	}
	var f *restore.Failure
	if errors.As(failure, &f) && logged != nil {
		f.Err = errors.Join(f.Err, logged)
	}
	return failure
}

func (h *history) halt(attempt string, why error) error {
	if h.log == nil {
		return nil
	}
	return h.log.Append(audit.Event{Kind: audit.Halted, Action: attempt, Root: h.root, Reason: why.Error()})
}

// halted logs that a recovery has failed, once.
func (h *history) halted(err error) error {
	var halt *staging.HaltError
	if !errors.As(err, &halt) || errors.Is(err, staging.ErrHalted) {
		return nil
	}
	return h.halt(halt.Attempt, halt.Err)
}

// ended logs what became of an attempt that was found.
func (h *history) ended(o staging.Outcome) error {
	switch o.Result {
	case staging.Completed:
		return h.Completed(o.Attempt)
	case staging.Released:
		return h.end(audit.Event{Kind: audit.Released, Action: o.Attempt, Reason: o.Left.Error()})
	}
	return h.end(audit.Event{Kind: audit.RolledBack, Action: o.Attempt, Rollback: audit.Emergency, Reason: "it was found unfinished"})
}

// endStale ends the attempts of which nothing is left in the root: they were
// rolled back, or had not written anything yet, when they were killed. One that
// was completed has its end in the log before its journal goes.
func (h *history) endStale() error {
	if h.log == nil {
		return nil
	}
	ids, err := h.log.Open(h.root)
	for _, id := range ids {
		err = errors.Join(err, h.end(audit.Event{Kind: audit.RolledBack, Action: id, Rollback: audit.Emergency, Reason: "nothing of it was found"}))
	}
	return err
}
