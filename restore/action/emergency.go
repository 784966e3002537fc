package action

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
)

// ErrNoEmergencyTarget reports that a root has no snapshot for an emergency rollback.
var ErrNoEmergencyTarget = errors.New("no whole snapshot of it, taken by a user or a timer, verifies")

// ErrNeverTaken is an [ErrNoEmergencyTarget]: no such snapshot was ever taken, except for those
// that lack unreadable entries.
var ErrNeverTaken = fmt.Errorf("%w", ErrNoEmergencyTarget)

// ReleasedForEmergency is the statement in the audit log for attempts that an [EmergencyRelease] releases.
const ReleasedForEmergency = "rollback --emergency"

// An EmergencyRelease is the release of attempts that halt a root and cannot be undone, for an
// emergency rollback: the whole root goes back to a snapshot, so nothing of such an attempt is needed.
type EmergencyRelease struct {
	Root     string // as [Root.Path]
	Host     string // as for [Emergency]
	Attempts []*staging.HaltError
	Why      error // the halt
}

// IsPossible reports whether there is a snapshot that the rollback can restore; without one nothing is
// released.
func (e *EmergencyRelease) IsPossible(ctx context.Context, store *snapshot.Store) (bool, error) {
	to, err := store.Target(ctx, e.Root, e.Host)
	return to.Snapshot != nil, err
}

// Entry returns the entry into the root that releases these attempts, and no others. Before, it halts
// the root for other commands until the rollback has succeeded. A dry run halts and releases nothing.
func (e *EmergencyRelease) Entry(bars Bars, entry Entry) (Entry, error) {
	entry.Mode = staging.Acknowledged
	if entry.DryRun {
		entry.Releases = true
		return entry, nil
	}
	why := fmt.Sprintf("the root was halted when it began: %v", e.Why)
	if err := bars.Bar(e.Root, uuid.NewString(), string(audit.Emergency), why); err != nil && bars.Unbarrable(e.Root) == nil {
		return Entry{}, err // otherwise the obstacle halts the root too
	}
	entry.Acknowledge = func(attempt string, left error) (string, error) {
		if !slices.ContainsFunc(e.Attempts, func(h *staging.HaltError) bool { return h.Attempt == attempt }) {
			return "", left
		}
		return ReleasedForEmergency, nil
	}
	return entry, nil
}

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
