package action

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spectrumfs/spectrum/restore/snapshot"
)

// ErrNoWayBack says that a root has no snapshot that an emergency rollback can go back to.
var ErrNoWayBack = errors.New("there is no snapshot of all of it, taken by a person or a timer, that verifies")

// ErrNeverTaken is an ErrNoWayBack: no such snapshot was ever taken, but for those
// that lack what could not be read.
var ErrNeverTaken = fmt.Errorf("%w", ErrNoWayBack)

// Emergency returns the target of an emergency rollback of a root that was entered: the
// newest snapshot of all of it that a person or a timer has taken, and that verifies, see
// [snapshot.Store.Target]. One that was taken before an action is never the target, so another
// emergency rollback goes back to the same one. Beside ErrNoWayBack there is what was passed
// over.
func Emergency(ctx context.Context, in *Root, host string) (snapshot.Target, error) {
	to, err := in.Snapshots().Target(ctx, in.Path(), host)
	isDamaged := func(p snapshot.Passed) bool { return !p.Partial }
	switch {
	case err == nil && to.Snapshot == nil && !slices.ContainsFunc(to.Passed, isDamaged):
		err = fmt.Errorf("%q: %w", in.Path(), ErrNeverTaken)
	case err == nil && to.Snapshot == nil:
		err = fmt.Errorf("%q: %w", in.Path(), ErrNoWayBack)
	}
	return to, err
}
