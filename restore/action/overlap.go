package action

import (
	"errors"
	"fmt"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/staging"
)

// A RootRef names a restore root, mostly one that shares directories with another root: it is the
// same directory at another path, is in that root, or has that root in it.
type RootRef struct {
	Name string // the path under which its records are kept
	Path string // where it was found last
}

// An OverlapError reports that a root is halted because a halted root shares directories with it: a
// change of one changes the other. It wraps the halt of that root.
type OverlapError struct {
	Root  string // the real path of the root that was to be entered
	Other RootRef
	Err   error
}

func (e *OverlapError) Error() string {
	return fmt.Sprintf("%q is halted, since it shares directories with %q: %v", e.Root, e.Other.Path, e.Err)
}

// Unwrap returns the halt of the other root.
func (e *OverlapError) Unwrap() error { return e.Err }

// checkOverlapping returns a [*OverlapError] where a root is halted that shares directories with this one.
func (r *Root) checkOverlapping() error {
	if r.entry.Overlapping == nil {
		return nil
	}
	for _, other := range r.entry.Overlapping(r.history.root, r.real, r.dir) {
		if err := HaltOf(other, r.entry.Bars, r.entry.Halts, r.history.log); err != nil {
			return &OverlapError{r.real, other, err}
		}
	}
	return nil
}

// HaltOf returns the error that halts a root; nil if it is not halted. An attempt that was
// merely killed does not halt it. It takes no lock. Without a log, attempts whose staging
// directories were removed are not found.
func HaltOf(root RootRef, bars Bars, marks Halts, log *audit.Log) error {
	if bars != nil {
		if is, err := bars.Barred(root.Name); is {
			return &BarredError{root.Name, err}
		}
	}
	if way, err := pathsafe.WayTo(root.Path); err == nil && !way.Missing { // asks no server of another user
		if halts, err := HaltsAt(root.Path, marks); err == nil && len(halts) > 0 {
			return halts[0]
		}
	}
	if log == nil || marks == nil {
		return nil
	}
	open, err := log.Open(root.Name)
	for _, id := range open {
		halted, unknown := marks.Halted(id)
		err = errors.Join(err, unknown)
		if halted && unknown == nil {
			return &staging.HaltError{Attempt: id, Kind: "action", Err: errRemoved}
		}
	}
	return err
}
