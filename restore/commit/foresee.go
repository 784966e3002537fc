package commit

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
)

// Foresee does of [Root.GoBack] what comes before anything is written: it looks at what may
// change, and has the way back planned. Nothing is written, in the root or elsewhere. The
// snapshot of what is done is not taken, and has no ID; there is no action.
func (r *Root) Foresee(ctx context.Context, b Back) (Done, error) {
	if r == nil || r.session == nil {
		return Done{}, fmt.Errorf("the restore root was not entered: %w", r.reason())
	}
	h := r.history
	if h.snapshots == nil {
		return Done{}, errors.New("there is no store of snapshots")
	}
	before, err := h.snapshots.Look(ctx, snapshot.Request{Root: h.root, Dir: h.dir, Kind: snapshot.PreAction, Scope: b.Scope})
	if err != nil {
		return Done{}, err
	}
	if _, err := b.Plan(before); err != nil {
		return Done{}, err
	}
	return Done{Snapshot: before}, nil
}

// ErrUnended says that an attempt stands in a root which is not to be written to, and so
// cannot be ended.
var ErrUnended = errors.New("something in it has to be ended first")

// look requires that nothing stands in the root that would have to be ended. A halt is the
// error that it is for everybody.
func (r *Root) look(ctx context.Context) error {
	r.session.Refuse = ErrUnended
	_, err := r.session.Recover(ctx, staging.Automatic)
	var stands []string
	for _, halt := range HaltsOf(err) {
		if r.isHalted(&staging.HaltError{Attempt: halt.Attempt, Staging: halt.Staging}) {
			halt.Err = staging.ErrHalted
			return halt
		}
		stands = append(stands, fmt.Sprintf("%q", halt.Staging))
	}
	if len(stands) == 0 {
		return err
	}
	return fmt.Errorf("%q: %w: %s", r.history.root, ErrUnended, strings.Join(stands, ", "))
}
