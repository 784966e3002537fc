package commit

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/staging"
)

// An UnfinishedError is an attempt that could not be ended for a fault of the machine. Nothing
// halts the root: the next one to enter it goes on where this one had to stop.
type UnfinishedError struct {
	Of *staging.HaltError // what stands in the root, and why; not wrapped, since it halts nothing
}

func (e *UnfinishedError) Error() string {
	return fmt.Sprintf("an unfinished %s in %q could not be ended: %v", strings.ReplaceAll(e.Of.Kind, "_", " "), e.Of.Staging, e.Of.Err)
}

// Unwrap returns the fault.
func (e *UnfinishedError) Unwrap() error { return e.Of.Err }

// UnfinishedOf are the attempts that an error of [Enter] says are not ended, those of
// [HaltsOf] too; each once, in the order of their names.
func UnfinishedOf(err error) (all []*staging.HaltError) {
	return attemptsOf(err, true)
}

// HaltsOf are the attempts that an error of [Enter] says cannot be ended without a
// person; each once, in the order of their names.
func HaltsOf(err error) (halts []*staging.HaltError) {
	return attemptsOf(err, false)
}

func attemptsOf(err error, unfinished bool) (all []*staging.HaltError) {
	switch e := err.(type) { //nolint:errorlint // errors.As finds the first, and all are wanted
	case *staging.HaltError:
		return []*staging.HaltError{e}
	case *UnfinishedError:
		if unfinished {
			return []*staging.HaltError{e.Of}
		}
		return attemptsOf(e.Of.Err, unfinished)
	case interface{ Unwrap() error }:
		return attemptsOf(e.Unwrap(), unfinished)
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			all = append(all, attemptsOf(err, unfinished)...)
		}
	}
	return all
}

// unhalted returns the error that an attempt cannot be ended: an [*UnfinishedError] where a
// fault of the machine is the cause, and no mark halts the root.
func (r *Root) unhalted(halt *staging.HaltError) error {
	if isRefused(halt.Err) && !r.isHalted(halt) {
		return &UnfinishedError{halt}
	}
	return halt
}

// isRefused reports whether the system has refused a call, so that the same may succeed the
// next time. What is wrong with a journal, or stands in the way, is no such error.
func isRefused(err error) bool {
	var errno syscall.Errno
	return machine.IsFault(err) || errors.As(err, &errno) && machine.IsOrdinary(err)
}

// unmarked is an attempt that failed and could not be rolled back, and that nothing halts the
// root for: neither the root nor the state directory has taken a mark of it. It is nil of any
// other error.
func (r *Root) unmarked(err error, kind string) error {
	var e *staging.Error
	if !errors.As(err, &e) || e.Rollback == nil {
		return nil
	}
	stands := &staging.HaltError{Attempt: e.Attempt, Kind: kind, Staging: e.Staging}
	if r.isHalted(stands) {
		return nil
	}
	stands.Err = err
	return &UnfinishedError{stands}
}

// isHalted reports whether the next one to enter the root will find it halted. A mark that
// cannot be looked up is none, for all that is known.
func (r *Root) isHalted(halt *staging.HaltError) bool {
	return errors.Is(halt.Err, staging.ErrHalted) || r.isMarked(halt)
}

// isMarked reports whether there is a mark that halts the root.
func (r *Root) isMarked(halt *staging.HaltError) bool {
	if r.entry.Halts != nil {
		if halted, err := r.entry.Halts.Halted(halt.Attempt); halted && err == nil {
			return true
		}
	}
	stage, err := r.dir.OpenDir(halt.Staging)
	if err != nil {
		return false
	}
	defer stage.Close()
	_, err = stage.Lstat(staging.HaltedName)
	return err == nil
}
