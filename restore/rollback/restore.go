package rollback

import (
	"context"
	"fmt"
	"slices"

	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/commit"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
)

// How says why a snapshot is restored.
type How struct {
	Type   audit.Rollback // Session or Emergency
	Reason string
}

// Restored says what the restore of a snapshot has done.
type Restored struct {
	Done    commit.Done
	Commits []savepoint.Savepoint // that were undone with it, the newest first
	Left    []Left                // directories that came since, in the order of their paths
}

// Restore makes everything that a snapshot is of as it was, in a root that was
// entered. The savepoint that was active then is active again.
func Restore(ctx context.Context, in *commit.Root, t *snapshot.Snapshot, how How) (*Restored, error) {
	if root := t.Header().Root; root != in.Path() {
		return nil, fmt.Errorf("the snapshot is of %q, and that leads to %q now: %w", root, in.Path(), ErrElsewhere)
	}
	active := t.Header().Said[commit.SavepointNow]
	way, err := in.Savepoints().WayTo(in.Path(), active)
	if err != nil {
		return nil, err
	}
	if err := onlyOf(t.Header(), way.Attempts()); err != nil {
		return nil, err
	}
	d := &difference{root: in.Dir(), target: t}
	done, err := in.GoBack(ctx, commit.Back{
		Type: how.Type, Reason: how.Reason, Target: t.ID(), Affected: way.Attempts(), Brings: attemptsOf(way.Ahead), Savepoint: active,
		Scope: t.Scope(),
		Plan: func(before *snapshot.Snapshot) (staging.Exchange, error) {
			d.before = before
			if err := d.plan(); err != nil {
				return staging.Exchange{}, err
			}
			if err := room(in, d); err != nil {
				return staging.Exchange{}, err
			}
			return staging.Exchange{
				Kind: "snapshot_restore", Swaps: d.swaps, Dirs: d.dirs,
				Stage: func(ctx context.Context, dir *pathsafe.Dir) error {
					return in.Snapshots().WriteParts(ctx, t, d.parts, dir)
				},
				Settled: func(ctx context.Context, old *pathsafe.Dir) error {
					return in.Snapshots().Unchanged(ctx, before, pathsOf(d.swaps), old)
				},
			}, nil
		},
	})
	if err != nil {
		return nil, err
	}
	return &Restored{done, way.Behind, d.left}, nil
}

func pathsOf(swaps []staging.Swap) []pathsafe.Path {
	paths := make([]pathsafe.Path, len(swaps))
	for i, swap := range swaps {
		paths[i] = swap.Path
	}
	return paths
}

// ErrElsewhere says that the path of a root leads somewhere else than it did.
var ErrElsewhere = machine.Disturbed("it is another directory")

// onlyOf refuses the snapshot of a part of a root when commits were made since that
// are not of the action that it comes before: their files would stay, and nobody could
// undo them any more.
func onlyOf(h snapshot.Header, gone []string) error {
	if h.Whole {
		return nil
	}
	own := append(commit.Brings(h), h.Action)
	later := slices.DeleteFunc(slices.Clone(gone), func(id string) bool { return slices.Contains(own, id) })
	if len(later) > 0 {
		return &LaterError{h.Action, later}
	}
	return nil
}
