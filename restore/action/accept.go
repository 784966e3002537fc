package action

import (
	"context"
	"errors"
	"fmt"

	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/staging"
)

// Accept is the last step before [Commit]: it requires enough free space, takes the lock of the root,
// and uses the preview up. The lock is the first write of EXECUTE, so a restore that is blocked takes
// none. An error before the preview is used up leaves it as it was: [preview.ErrStale] if another
// action ran in the root since it was entered, or the restore is not the approved one;
// [preview.ErrUsed]; a [*staging.BusyError]; for any other fault a [*restore.Failure].
func (r *Root) Accept(ctx context.Context, approval *preview.Approval, planned *restore.Restore, ledger preview.Ledger) (*preview.Approved, error) {
	if err := Room(planned, r.State()); err != nil {
		return nil, restore.Internal(restore.Execute, err)
	}
	isBlocked := planned.Blocked() != nil
	if !isBlocked {
		if err := r.holdFor(ctx, planned); err != nil {
			return nil, err
		}
	}
	approved, err := approval.Accept(planned, ledger)
	if err != nil && !isBlocked && !errors.Is(err, preview.ErrStale) && !errors.Is(err, preview.ErrUsed) {
		err = restore.Internal(restore.Execute, err)
	}
	return approved, err
}

// holdFor is Hold for a restore that was planned for this root. A faulty plan is found before
// anything is written.
func (r *Root) holdFor(ctx context.Context, planned *restore.Restore) error {
	if err := r.check(planned.Root()); err != nil {
		return restore.Internal(restore.Preflight, err)
	}
	err := r.Hold(ctx)
	var busy *staging.BusyError
	switch {
	case err == nil || errors.As(err, &busy) || ctx.Err() != nil:
		return err
	case errors.Is(err, staging.ErrOvertaken):
		return fmt.Errorf("%w: %s", preview.ErrStale, err.Error())
	}
	return restore.Internal(restore.Execute, err)
}
