package staging

import (
	"errors"
	"fmt"

	"github.com/spectrumfs/spectrum/internal/machine"
)

// Step is the part of a commit in which an error arose.
type Step int

const (
	// StepBegin means that the spec is wrong, the root is locked (pathsafe.ErrLocked)
	// or a target cannot be surveyed (pathsafe.ErrEscape, ErrCrossesMount, ...).
	// Nothing was written.
	StepBegin Step = iota + 1
	// StepConflict means that an existing entry is at the name of a target or of one of its
	// parents. Nothing was written.
	StepConflict
	// StepStage means that a copy could not be made or made durable, or ctx was
	// cancelled before the first move.
	StepStage
	// StepCheck means that a copy in staging is not as expected.
	StepCheck
	// StepFinalize means that a copy could not be moved to its target.
	StepFinalize
	// StepMissing means that a target was not found after the move.
	StepMissing
	// StepVerify means that a target is not what was moved there, or cannot be read.
	StepVerify
	// StepPublish means that an artifact could not be put in place.
	StepPublish
)

var stepNames = [...]string{
	StepBegin: "begin", StepConflict: "conflict", StepStage: "stage", StepCheck: "check", StepFinalize: "finalize",
	StepMissing: "missing", StepVerify: "verify", StepPublish: "publish",
}

// String returns the step as a word.
func (s Step) String() string {
	if s < StepBegin || s > StepPublish {
		return fmt.Sprintf("step %d", int(s))
	}
	return stepNames[s]
}

// Error is the reason why a commit failed, and reports whether everything was rolled back.
type Error struct {
	Step Step
	// Path is the target concerned, or the name that represents all of them.
	Path string
	// Err is the cause; errors.Is and errors.As see through to it.
	Err error
	// Rollback is nil when nothing of the attempt is left and no target exists. Otherwise it
	// is the reason why the rollback failed.
	Rollback error
	// Attempt is the identity of the attempt, a UUID; "" before it began.
	Attempt string
	// Staging is the name of its staging directory, which is left when Rollback is
	// not nil, in the root.
	Staging string
	// Kept lists the entries that other processes put at the names during the change; for a
	// commit, displaced entries with a newer entry at their name.
	Kept []Kept
}

// Error names the step, the path and the cause, and a failed rollback.
func (e *Error) Error() string {
	text := fmt.Sprintf("%v %q: %v", e.Step, e.Path, e.Err)
	if e.Path == "" {
		text = fmt.Sprintf("%v: %v", e.Step, e.Err)
	}
	if e.Rollback != nil {
		text += fmt.Sprintf("; rollback failed: %v", e.Rollback)
	}
	for _, k := range e.Kept {
		what := "the file that another process put at %q is kept in %q"
		if k.Old {
			what = "another process put a newer file at %q; the earlier file is kept in %q"
		}
		text += "; " + fmt.Sprintf(what, k.Path, k.At)
	}
	return text
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// IsDisturbance reports whether the cause is what another process has done at a name that is
// swapped, or to the directories that lead there: another try may find it at rest.
func (e *Error) IsDisturbance() bool {
	moved := e.Step == StepFinalize || e.Step == StepVerify || e.Step == StepPublish
	return e.Step == StepConflict || isMount(e.Err) || isLink(e.Err) || moved && (isMismatch(e.Err) || errors.Is(e.Err, errNotEmpty) || errors.Is(e.Err, errFlips))
}

// fail makes an Error, or nil of a nil err.
func fail(step Step, path string, err error) *Error {
	if err == nil {
		return nil
	}
	return &Error{Step: step, Path: path, Err: err}
}

// ErrStagingReplaced reports that a staging directory was replaced before it was opened. The
// replacement stays; the attempt's own directory, which is empty, is where it was moved to.
var ErrStagingReplaced = machine.Disturbed("another process replaced the staging directory; the replacement is left there")

// errTaken is the cause of a StepConflict.
var errTaken = machine.Disturbed("it already exists")
