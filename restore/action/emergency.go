package action

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spectrumfs/spectrum/restore/snapshot"
)

// ErrNoEmergencyTarget reports that a root has no snapshot for an emergency rollback.
var ErrNoEmergencyTarget = errors.New("no whole snapshot of it, taken by a user or a timer, verifies")

// ErrNeverTaken is an [ErrNoEmergencyTarget]: no such snapshot was ever taken, except for those
// that lack unreadable entries.
var ErrNeverTaken = fmt.Errorf("%w", ErrNoEmergencyTarget)

// Emergency returns the target of an emergency rollback of an entered root: the newest
// snapshot of the whole root that a person or a timer has taken, and that verifies, see
// [snapshot.Store.Target]. A snapshot taken before an action is never the target, so a second
// emergency rollback goes back to the same one. With ErrNoEmergencyTarget it returns the snapshots
// that were skipped. Newer snapshots that are gone, though they were not pruned, count as skipped.
func Emergency(ctx context.Context, in *Root, host string) (snapshot.Target, error) {
	to, err := in.Snapshots().Target(ctx, in.Path(), host)
	isDamaged := func(p snapshot.Passed) bool { return !p.Partial }
	switch {
	case err == nil && to.Snapshot == nil && !slices.ContainsFunc(to.Passed, isDamaged):
		err = fmt.Errorf("%q: %w", in.Path(), ErrNeverTaken)
	case err == nil && to.Snapshot == nil:
		err = fmt.Errorf("%q: %w", in.Path(), ErrNoEmergencyTarget)
	}
	to.Passed = slices.Concat(in.goneSince(to.Snapshot), to.Passed)
	return to, err
}
