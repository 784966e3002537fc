package action

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
)

// Bars remembers, durably and outside of every restore root, in which of them a rollback could
// not begin, or has failed (rollback contract, section 12): nothing is previewed, committed or
// pruned there until a rollback succeeds, or a person has looked.
type Bars interface {
	Bar(root, id, kind, reason string) error
	// Barred counts as true where it cannot be looked up, which the error is about.
	Barred(root string) (bool, error)
	Unbar(root string) error
	// Unbarrable returns an error if Unbar would fail: then the root stays halted.
	Unbarrable(root string) error
}

// A BarredError reports a restore root in which a rollback could not begin, or has failed. It
// blocks commits there, and no rollback.
type BarredError struct {
	Root string // as [Root.Path]
	Err  error  // why that is not known; nil where it is
}

func (e *BarredError) Error() string {
	msg := fmt.Sprintf("%q is halted: a requested rollback could not be carried out", e.Root)
	if e.Err != nil {
		msg += fmt.Sprintf(", as far as is known: %v", e.Err)
	}
	return msg
}

// Unwrap returns why it is not known.
func (e *BarredError) Unwrap() error { return e.Err }

// barred returns a [*BarredError] if the root is halted for commits, and a [*OverlapError] if
// another halted root shares directories with it.
func (r *Root) barred() error {
	if r.entry.Bars == nil || !r.entry.Previewed {
		return nil
	}
	if is, err := r.entry.Bars.Barred(r.history.root); is {
		return &BarredError{r.history.root, err}
	}
	return r.checkOverlapping()
}

// isBarred reports whether a rollback that could not be carried out halts the root.
func (r *Root) isBarred() bool {
	if r.entry.Bars == nil {
		return false
	}
	is, _ := r.entry.Bars.Barred(r.history.root) // what cannot be looked up halts it
	return is
}

// errOthers reports that a restore root belongs to another user.
var errOthers = errors.New("this user may not write in it")

// harmless are the errors of a rollback that halt nothing: the operator's request was wrong,
// or another command was running. Every other error is caused by the state of the root, of its
// records, or of the machine, and so halts the root.
var harmless = []struct {
	why string
	is  func(error) bool
}{
	{"it was interrupted by the user", isErr(context.Canceled)},
	{"another command is working in the root: run the command again", isA[*staging.BusyError]},
	{"another command changed the root at the same time: run the command again", isErr(staging.ErrOvertaken)},
	{"it is already halted by an attempt that cannot be finished", isA[*staging.HaltError]},
	{"it is halted by the attempt itself, which could not be undone", func(err error) bool {
		failed, is := errors.AsType[*staging.Error](err)
		return is && failed.Rollback != nil
	}},
	{"the commit does not belong to this root, or is already undone", isErr(errNoCommit)},
	{"commits were made later, and --with-later was not given", isA[*LaterError]},
	{"the snapshot has no entry at the given paths", isErr(ErrNothingThere)},
	{"the snapshot does not cover the given paths", isErr(snapshot.ErrNotCovered)},
	{"the path does not lead to the intended root", isErr(ErrElsewhere)},
	{"another root was named with --foreign-root", isA[*OtherRootError]},
	{"another user can rename the root, and --foreign-root was not given", isA[*ForeignError]},
	{"the root belongs to another user", isErr(errOthers)},
	{"the root is not at its path, so no action is continued there", func(err error) bool {
		return errors.Is(err, ErrNoRoot) && errors.Is(err, fs.ErrNotExist)
	}},
	{"the root may not be opened by this user", func(err error) bool {
		return errors.Is(err, ErrNoRoot) && errors.Is(err, fs.ErrPermission)
	}},
	{"no snapshot of all of the root was ever taken", isErr(ErrNeverTaken)},
	{"it was a dry run, or an unfinished attempt must be recovered first", isErr(ErrUnended)},
}

func isErr(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func isA[E error](err error) bool {
	_, is := errors.AsType[E](err)
	return is
}

// IsBarring reports whether the error of a rollback halts its root: the request was valid, and
// the rollback could not begin or has failed.
func IsBarring(err error) bool {
	if isA[*UnfinishedError](err) { // no other mark halts the root
		return true
	}
	for _, h := range harmless {
		if h.is(err) {
			return false
		}
	}
	return err != nil
}

// unbar ends the halt of a root that was taken back. That is recorded by now, so a halt that stays
// fails nothing.
func (h *history) unbar() {
	if h.bars == nil {
		return
	}
	if err := h.bars.Unbar(h.root); err != nil && h.barStays != nil {
		h.barStays(err)
	}
}
