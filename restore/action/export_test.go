package action

import (
	"context"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
)

// Check is what a commit asks first: whether the root that was entered is dir.
func Check(in *Root, dir *pathsafe.Dir) error { return in.check(dir) }

// The steps of a rollback.

type Back = back

func (r *Root) Before(ctx context.Context, b Back) (Done, error) { return r.before(ctx, b, false) }

func (r *Root) GoBack(ctx context.Context, done Done, b Back, change staging.Change, fill fill) error {
	none := func(string) []snapshot.Entry { return nil }
	return r.goBack(ctx, &Result{Done: done}, b, work{kind: change.Kind, swaps: change.Swaps, target: none, fill: fill}, false)
}
