package action

import (
	"context"
	"fmt"
	"slices"

	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
)

// How has the reason and the options of a restore.
type How struct {
	Type   audit.Rollback // Session or Emergency
	Reason string
	// Only are the names that are restored, with all that is in them; nil is everything that
	// the snapshot is of. No commit is undone then, and no savepoint becomes active.
	Only []pathsafe.Path
}

// Restored is the result of the restore of a snapshot.
type Restored struct {
	Result
	Commits []savepoint.Savepoint // that were undone with it, the newest first
	Changed []string              // paths of what went of them and had another content than they gave it, sorted
	// Same: nothing differs from the snapshot but the time of the root itself, which the work in
	// it changes, no commit is undone or brought back, and no halt would end.
	Same bool
}

// Restore makes everything that a snapshot is of as it was, in a root that was
// entered. The savepoint that was active then is active again.
func Restore(ctx context.Context, in *Root, t *snapshot.Snapshot, how How) (*Restored, error) {
	tight, err := mayNotFit(in, t)
	partial := t.Scope() != nil           // what it does not hold may be gone, as the directories to its names
	if err == nil && (tight || partial) { // so that it is known before anything is written
		_, err = ForeseeRestore(ctx, in, t, how)
	}
	var done *Restored
	if err == nil {
		done, err = undisturbed(func() (*Restored, error) { return restored(ctx, in, t, how, false) })
	}
	return done, in.refused(how.Type, nil, how.Only == nil, err)
}

// ForeseeRestore returns what Restore would do, and writes nothing.
func ForeseeRestore(ctx context.Context, in *Root, t *snapshot.Snapshot, how How) (*Restored, error) {
	return restored(ctx, in, t, how, true)
}

func restored(ctx context.Context, in *Root, t *snapshot.Snapshot, how How, dry bool) (*Restored, error) {
	if root := t.Header().Root; root != in.Path() {
		return nil, fmt.Errorf("the snapshot was taken of %q, which now leads to %q: %w", root, in.Path(), ErrElsewhere)
	}
	err := in.mayChange()
	if err != nil {
		return nil, err
	}
	result, part := &Restored{}, t
	b := back{Type: how.Type, Reason: how.Reason, Target: t.ID()}
	if how.Only != nil { // later commits keep their files
		if part, err = narrowed(in.Dir(), t, how.Only); err != nil {
			return nil, err
		}
		b.Stays = true
	} else {
		way, err := in.Savepoints().SwitchTo(in.Path(), t.Header().Texts[SavepointNow])
		if err != nil {
			return nil, err
		}
		if err := onlyOf(t.Header(), way.Attempts()); err != nil {
			return nil, err
		}
		b.Affected, b.Brings, result.Commits = way.Attempts(), attemptsOf(way.Ahead), way.Behind
	}
	b.Scope, b.Becomes = part.Scope(), part
	err = in.copyUp(ctx, b, dry, func(look *snapshot.Snapshot) ([]staging.Swap, error) {
		d, err := differenceOf(in.Dir(), part, look)
		return slices.Concat(d.swaps, d.stays), err
	})
	if err != nil {
		return nil, err
	}
	done, err := in.before(ctx, b, dry)
	if err != nil {
		return nil, err
	}
	d, err := differenceOf(in.Dir(), part, done.Snapshot)
	if err != nil {
		return nil, err
	}
	result.Same = d.same() && len(b.Affected)+len(b.Brings) == 0 && (how.Only != nil || !in.isBarred())
	swaps := slices.Concat(d.swaps, d.stays)
	result.Done, result.Left = done, d.left
	result.InPart = slices.ContainsFunc(d.left, func(l Left) bool { return l.Unread || l.Fixed != "" })
	if result.Changed, err = editedOf(result.Commits, done.Snapshot, d.swaps); err != nil {
		return nil, err
	}
	err = in.goBack(ctx, &result.Result, b, work{
		kind: "snapshot_restore", swaps: swaps, target: part.Tree,
		check: func(ctx context.Context) error { return in.Snapshots().CheckParts(ctx, part, d.parts) },
		fill: func(ctx context.Context, dir *pathsafe.Dir) error {
			return in.Snapshots().WriteParts(ctx, part, d.parts, dir)
		},
	}, dry)
	if err != nil {
		return nil, err
	}
	return result, nil
}

// editedOf returns the paths of those files of commits that swaps displace and that have another
// content than the newest of the commits gave them, sorted.
func editedOf(commits []savepoint.Savepoint, before *snapshot.Snapshot, swaps []staging.Swap) (edited []string, err error) {
	goes, seen := map[pathsafe.Path]bool{}, map[string]bool{}
	for _, s := range swaps {
		goes[s.Path] = s.Old != nil
	}
	for _, sp := range commits {
		created, err := createdBy(sp)
		if err != nil {
			return nil, err
		}
		for _, e := range created {
			now, err := before.At(e.Path)
			if err != nil || seen[now.Path] || now.Type != snapshot.File { // what is not covered stays
				continue
			}
			seen[now.Path] = true
			at, err := pathsafe.Found(now.Path)
			if err == nil && now.Digest != e.Digest && (goes[at] || isBeneath(goes, at)) {
				edited = append(edited, now.Path)
			}
		}
	}
	slices.Sort(edited)
	return edited, nil
}

// ErrElsewhere reports that the path of a root now leads to another directory.
var ErrElsewhere = machine.Disturbed("it is another directory")

// onlyOf rejects the snapshot of a part of a root if commits were made since that are not of
// the action after the snapshot: their files would stay, and could not be undone any more.
func onlyOf(h snapshot.Header, gone []string) error {
	if h.Whole {
		return nil
	}
	own := append(Brings(h), h.Action)
	later := slices.DeleteFunc(slices.Clone(gone), func(id string) bool { return slices.Contains(own, id) })
	if len(later) > 0 {
		return &LaterError{h.Action, later}
	}
	return nil
}
