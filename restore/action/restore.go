package action

import (
	"cmp"
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
	Done    Done
	Commits []savepoint.Savepoint // that were undone with it, the newest first
	Changed []string              // paths of what went of them and had another content than they gave it, sorted
	Left    []Left                // in the order of their paths
	Changes []Change              // in the order of their paths
	Parted  []Parted              // in the order of their paths
	Spaces  []Space               // that it needs, of a dry run with what the snapshot before it needs
	Open    []pathsafe.Path       // of a dry run, files that would be kept as things stand: a process has them open to write to
	// InPart: names could not be read, and so neither be kept nor taken away, or are immutable or
	// append-only, see [Left].
	InPart bool
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
		return nil, fmt.Errorf("the snapshot is of %q, and that leads to %q now: %w", root, in.Path(), ErrElsewhere)
	}
	if err := in.mayChange(); err != nil {
		return nil, err
	}
	result, part := &Restored{}, t
	b := back{Type: how.Type, Reason: how.Reason, Target: t.ID()}
	if how.Only != nil { // later commits keep their files
		var err error
		if part, err = narrowed(in.Dir(), t, how.Only); err != nil {
			return nil, err
		}
		b.Stays = true
	} else {
		way, err := in.Savepoints().WayTo(in.Path(), t.Header().Said[SavepointNow])
		if err != nil {
			return nil, err
		}
		if err := onlyOf(t.Header(), way.Attempts()); err != nil {
			return nil, err
		}
		b.Affected, b.Brings, result.Commits = way.Attempts(), attemptsOf(way.Ahead), way.Behind
	}
	b.Scope = part.Scope()
	err := in.copyUp(ctx, b, dry, func(look *snapshot.Snapshot) ([]staging.Swap, error) {
		d := &difference{root: in.Dir(), target: part, before: look}
		err := d.plan()
		return slices.Concat(d.swaps, d.stays), err
	})
	if err != nil {
		return nil, err
	}
	done, err := in.before(ctx, b, dry)
	if err != nil {
		return nil, err
	}
	d := &difference{root: in.Dir(), target: part, before: done.Snapshot}
	if err := d.plan(); err != nil {
		return nil, err
	}
	result.Same = d.same() && len(b.Affected)+len(b.Brings) == 0 && (how.Only != nil || !in.isBarred())
	swaps := slices.Concat(d.swaps, d.stays)
	slices.SortStableFunc(d.left, func(a, b Left) int { return cmp.Compare(a.Path, b.Path) })
	result.Done, result.Left = done, d.left
	result.InPart = slices.ContainsFunc(d.left, func(l Left) bool { return l.Unread || l.Fixed != "" })
	if result.Changed, err = editedOf(result.Commits, done.Snapshot, d.swaps); err != nil {
		return nil, err
	}
	if result.Changes, err = changesOf(swaps, done.Snapshot, part.Tree); err != nil {
		return nil, err
	}
	if result.Spaces, err = roomFor(in, done.Snapshot, part.Tree, result.Changes); err != nil {
		return nil, err
	}
	result.Parted = partedOf(result.Changes, result.Left, part.Tree)
	if in.entry.DryRun { // what is to be done reads it when it writes it
		if err := in.Snapshots().CheckParts(ctx, part, d.parts); err != nil {
			return nil, err
		}
	}
	if dry {
		result.Open = staging.HeldOpen(in.Dir(), swaps)
		return result, nil
	}
	stayed, err := in.goBack(ctx, &result.Done, b, staging.Change{Kind: "snapshot_restore", Swaps: swaps}, func(ctx context.Context, dir *pathsafe.Dir) error {
		return in.Snapshots().WriteParts(ctx, part, d.parts, dir)
	})
	if err != nil {
		return nil, err
	}
	result.Left = append(result.Left, stayed...)
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
