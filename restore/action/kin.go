package action

import (
	"errors"
	"fmt"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/staging"
)

// A Kin is another restore root that shares directories with a root: it is the same directory at
// another path, is in the root, or has the root in it.
type Kin struct {
	Name string // the path under which its records are kept
	Path string // where it was found last
}

// A KinError reports that a root is halted because a halted root shares directories with it: a
// change of one changes the other. It wraps the halt of that root.
type KinError struct {
	Root string // the real path of the root that was to be entered
	Kin  Kin
	Err  error
}

func (e *KinError) Error() string {
	return fmt.Sprintf("%q is halted, since it shares directories with %q: %v", e.Root, e.Kin.Path, e.Err)
}

// Unwrap returns the halt of the other root.
func (e *KinError) Unwrap() error { return e.Err }

// kinHalted returns a [*KinError] where a root is halted that shares directories with this one.
func (r *Root) kinHalted() error {
	if r.entry.Kin == nil {
		return nil
	}
	for _, kin := range r.entry.Kin(r.history.root, r.real, r.dir) {
		if err := HaltOf(kin, r.entry.Bars, r.entry.Halts, r.history.log); err != nil {
			return &KinError{r.real, kin, err}
		}
	}
	return nil
}

// HaltOf returns the error that halts a root; nil if it is not halted. An attempt that was
// merely killed does not halt it. It takes no lock. Without a log, attempts whose staging
// directories were removed are not found.
func HaltOf(root Kin, bars Bars, marks Halts, log *audit.Log) error {
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
