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

// Target is the snapshot that an emergency rollback goes back to.
type Target struct {
	Snapshot *snapshot.Snapshot
	// Passed are the damaged snapshots that were passed over: those that are newer, the
	// newest first, and manifests that cannot be read, whatever they were.
	Passed []Passed
}

// Passed is a snapshot that is damaged.
type Passed struct {
	Header snapshot.Header // the zero one for a manifest that cannot be read
	Damage []*snapshot.DamageError
}

// Emergency returns the target of an emergency rollback of a root that was entered: the
// newest snapshot of all of it that a person or a timer has taken, and that verifies. One
// that was taken before an action is never the target, so another emergency rollback goes
// back to the same one. Beside ErrNoWayBack there is what was passed over.
func Emergency(ctx context.Context, in *Root) (Target, error) {
	all, damaged, err := in.Snapshots().Survey(in.Path())
	if err != nil {
		return Target{}, err
	}
	var to Target
	for _, d := range damaged {
		to.Passed = append(to.Passed, Passed{Damage: []*snapshot.DamageError{d}})
	}
	for _, h := range slices.Backward(all) {
		if !h.ForEmergency() {
			continue
		}
		found, err := in.Snapshots().Find(h.ID)
		var damage *snapshot.DamageError
		if errors.As(err, &damage) {
			to.Passed = append(to.Passed, Passed{h, []*snapshot.DamageError{damage}})
			continue
		}
		if err != nil {
			return Target{}, err
		}
		damages, err := in.Snapshots().Verify(ctx, found)
		if err != nil {
			return Target{}, err
		}
		if len(damages) == 0 {
			to.Snapshot = found
			return to, nil
		}
		to.Passed = append(to.Passed, Passed{h, damages})
	}
	return to, fmt.Errorf("%q: %w", in.Path(), ErrNoWayBack)
}
