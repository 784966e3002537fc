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
	// Only are the names that are restored, with all that is in them; nil is everything that
	// the snapshot is of. No commit is undone then, and no savepoint becomes active.
	Only []pathsafe.Path
}

// Restored says what the restore of a snapshot has done.
type Restored struct {
	Done    commit.Done
	Commits []savepoint.Savepoint // that were undone with it, the newest first
	Left    []Left                // directories that came since, in the order of their paths
	Changes []Change              // in the order of their paths
	Spaces  []Space               // that it needs, of a dry run with what the snapshot before it needs
}

// Restore makes everything that a snapshot is of as it was, in a root that was
// entered. The savepoint that was active then is active again.
func Restore(ctx context.Context, in *commit.Root, t *snapshot.Snapshot, how How) (*Restored, error) {
	tight, err := mayNotFit(in, t)
	if err == nil && tight { // so that it is known before anything is written
		_, err = ForeseeRestore(ctx, in, t, how)
	}
	if err != nil {
		return nil, in.Refused(how.Type, nil, err)
	}
	done, err := restored(ctx, in, t, how, in.GoBack)
	return done, in.Refused(how.Type, nil, err)
}

// ForeseeRestore returns what Restore would do, and writes nothing.
func ForeseeRestore(ctx context.Context, in *commit.Root, t *snapshot.Snapshot, how How) (*Restored, error) {
	return restored(ctx, in, t, how, in.Foresee)
}

// goBack is [commit.Root.GoBack], or [commit.Root.Foresee] in place of it.
type goBack func(context.Context, commit.Back) (commit.Done, error)

func restored(ctx context.Context, in *commit.Root, t *snapshot.Snapshot, how How, do goBack) (*Restored, error) {
	if root := t.Header().Root; root != in.Path() {
		return nil, fmt.Errorf("the snapshot is of %q, and that leads to %q now: %w", root, in.Path(), ErrElsewhere)
	}
	if how.Only != nil {
		return someRestored(ctx, in, t, how, do)
	}
	active := t.Header().Said[commit.SavepointNow]
	way, err := in.Savepoints().WayTo(in.Path(), active)
	if err != nil {
		return nil, err
	}
	if err := onlyOf(t.Header(), way.Attempts()); err != nil {
		return nil, err
	}
	result, err := swapped(ctx, in, t, commit.Back{
		Type: how.Type, Reason: how.Reason, Target: t.ID(), Affected: way.Attempts(), Brings: attemptsOf(way.Ahead), Savepoint: active,
	}, do)
	if err != nil {
		return nil, err
	}
	result.Commits = way.Behind
	return result, nil
}

// someRestored restores some names of a snapshot. What commits have made stays theirs.
func someRestored(ctx context.Context, in *commit.Root, t *snapshot.Snapshot, how How, do goBack) (*Restored, error) {
	some, err := narrowed(in.Dir(), t, how.Only)
	if err != nil {
		return nil, err
	}
	return swapped(ctx, in, some, commit.Back{Type: how.Type, Reason: how.Reason, Target: t.ID(), Stays: true}, do)
}

// swapped has what differs from a snapshot swapped.
func swapped(ctx context.Context, in *commit.Root, t *snapshot.Snapshot, b commit.Back, do goBack) (*Restored, error) {
	result := &Restored{}
	b.Scope = t.Scope()
	b.Plan = func(before *snapshot.Snapshot) (staging.Exchange, error) {
		d := &difference{root: in.Dir(), target: t, before: before}
		if err := d.plan(); err != nil {
			return staging.Exchange{}, err
		}
		var err error
		result.Left = d.left
		if result.Changes, err = changesOf(d.swaps, d.dirs, before, t); err != nil {
			return staging.Exchange{}, err
		}
		if result.Spaces, err = roomFor(in, before, t, result.Changes); err != nil {
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
	}
	var err error
	if result.Done, err = do(ctx, b); err != nil {
		return nil, err
	}
	return result, nil
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
