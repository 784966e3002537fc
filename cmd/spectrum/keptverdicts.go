package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/statecheck"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
)

// This file is the part of the table for what is kept of restore roots: savepoints, snapshots, and
// rollbacks. Whether an error of the packages below is a verdict on one of them depends on the
// command, which therefore calls the function for it. The commands give the details, and the next
// steps where they have found out more than the error says.

// isSettled reports whether an error has a verdict that must stay: a code of its own, or a root in
// which something is unfinished.
func isSettled(err error) bool {
	_, isCoded := errors.AsType[*codedError](err)
	_, isHalt := errors.AsType[*staging.HaltError](err)
	_, isUnfinished := errors.AsType[*action.UnfinishedError](err)
	return isCoded || isHalt || isUnfinished
}

// coded returns a verdict with a code and its next steps.
func coded(c code, err error, details map[string]any, steps []string) error {
	return &codedError{code: c, details: details, err: err, hint: steps[0], hints: steps[1:]}
}

// keepSavepoints is for savepoints that cannot be read.
const keepSavepoints = "check which users can write the state directory, and keep the savepoints as they are"

// savepointError adds its code to an error of package savepoint.
func savepointError(err error) error {
	damage, is := errors.AsType[*savepoint.DamageError](err)
	if !is || isSettled(err) || cannotRead(damage) {
		return err
	}
	return damagedSavepoint(err, damage, nil)
}

// damagedSavepoint is the verdict on a savepoint that cannot be read. More are details that the
// command has; steps are next steps instead of the usual one.
func damagedSavepoint(err error, damage *savepoint.DamageError, more map[string]any, steps ...string) error {
	details := map[string]any{"run_dir": jsonText(damage.RunDir)}
	for name, value := range more {
		details[name] = value
	}
	if len(steps) == 0 {
		steps = []string{keepSavepoints}
	}
	return coded(codeInvalid, err, details, steps)
}

// unreadSavepoint is damagedSavepoint for the rollback of a commit in root. Before are the IDs of the snapshots
// from before it.
func unreadSavepoint(err error, unread *action.UnreadError, root string, before []string) error {
	hint := fmt.Sprintf("\"spectrum rollback --emergency %s\" does not require it", root)
	for _, id := range before {
		hint = fmt.Sprintf("\"spectrum snapshot restore %s\" undoes the commit without it; or %s", id[:shortest], hint)
	}
	return damagedSavepoint(err, unread.Err, nil, hint)
}

// cannotRead reports whether the machine failed, and not the savepoint.
func cannotRead(err error) bool {
	var errno syscall.Errno
	forms := []syscall.Errno{syscall.ENOENT, syscall.ENOTDIR, syscall.EISDIR, syscall.ELOOP}
	return errors.As(err, &errno) && !slices.Contains(forms, errno)
}

// snapshotError adds its code to an error of package snapshot.
func snapshotError(err error) error {
	if errors.Is(err, action.ErrNoRoot) || isSettled(err) || errors.Is(err, snapshot.ErrHoles) {
		return err
	}
	if isRefused(err) {
		return coded(codeSnapshotRefused, err, map[string]any{}, []string{snapshotHint})
	}
	if damage, is := errors.AsType[*snapshot.DamageError](err); is {
		return damagedSnapshot(err, map[string]any{}, damageHint(damage))
	}
	return err
}

// damagedSnapshot is the verdict on damage among the snapshots.
func damagedSnapshot(err error, details map[string]any, steps ...string) error {
	return coded(codeSnapshotDamaged, err, details, steps)
}

// snapshotHint is for what no snapshot can be taken of.
const snapshotHint = unchanged + "; move the file named above away, end the process that writes to it, make it writable (chmod u+rwx), or run as its owner; then retry"

// damageHint is the way out of damage in the store.
func damageHint(d *snapshot.DamageError) string {
	const others = "\"spectrum snapshot list\" lists the others"
	if d.Part != "" {
		return statecheck.PartRemedy(d) + "; " + others
	}
	return "check which users can write the state directory; " + others
}

// isRefused reports whether the root cannot have a snapshot, or cannot be written, because of its
// entries or their owners.
func isRefused(err error) bool {
	if _, is := errors.AsType[*statedir.PartError](err); is {
		return false
	}
	for _, why := range []error{snapshot.ErrRefused, pathsafe.ErrCrossesMount, pathsafe.ErrTooLong, fs.ErrPermission} {
		if errors.Is(err, why) {
			return true
		}
	}
	return false
}

// rollbackError adds its code to the error of a rollback that did not happen, or reports that the
// root is halted.
func rollbackError(err error) error {
	failed, isFailed := errors.AsType[*staging.Error](err)
	_, isUnfinished := errors.AsType[*action.UnfinishedError](err)
	_, isCoded := errors.AsType[*codedError](err)
	later, isLater := errors.AsType[*action.LaterError](err)
	switch {
	case isUnfinished:
		return err
	case isFailed && failed.Rollback != nil:
		return &staging.HaltError{Attempt: failed.Attempt, Kind: "rollback", Staging: failed.Staging, Err: err}
	case isCoded:
		return err
	case isLater:
		return laterCommits(err, later, later.Commit)
	case isFailed && errors.Is(err, pathsafe.ErrCrossesMount): // whose it is the operator can find out, and end
		return err
	case isFailed && failed.IsDisturbance(), errors.Is(err, snapshot.ErrUnsettled):
		return notUndone(err, map[string]any{}, "; stop other processes that write there, then retry")
	case errors.Is(err, action.ErrElsewhere):
		return notUndone(err, map[string]any{}, "; there is a link or another directory on the path to it now: find out which process created it")
	case errors.Is(err, fs.ErrNotExist) && !isFailed:
		return refusedHint(err, "\"spectrum snapshot list\" lists the snapshots, \"spectrum savepoint list\" the commits in place")
	}
	return snapshotError(err)
}

// undoError is rollbackError for the undo of a commit.
func undoError(ctx context.Context, state *statedir.Dir, in *action.Root, commit string, err error) error {
	err = withoutBefore(ctx, state, in, commit, withoutContents(ctx, in, commit, err))
	return rollbackError(fixedRoot(in.Real(), err))
}

// restoreError is rollbackError for the restore of a snapshot, target.
func restoreError(ctx context.Context, in *action.Root, target *snapshot.Snapshot, err error) error {
	if later, is := errors.AsType[*action.LaterError](err); is {
		return laterCommits(err, later, later.Later[len(later.Later)-1])
	}
	err = hinted(withNextSteps(ctx, in.Snapshots(), target, in.Real(), "", err), notInSnapshotHint(err, target.ID()))
	return rollbackError(fixedRoot(in.Real(), withoutParent(in, err)))
}

// notUndone is the verdict on a rollback that has changed nothing.
func notUndone(err error, details map[string]any, next string) error {
	return coded(codeNotUndone, err, details, []string{unchanged + next})
}

// noSnapshot is the verdict on a rollback for which there is no snapshot.
func noSnapshot(err error, details map[string]any, steps ...string) error {
	return coded(codeNoSnapshot, err, details, steps)
}

// withoutBefore adds to the error of the rollback of a commit without a snapshot from before it the
// remaining alternatives that work now.
func withoutBefore(ctx context.Context, state *statedir.Dir, in *action.Root, commit string, err error) error {
	if _, is := errors.AsType[*codedError](err); is || !errors.Is(err, action.ErrNoSnapshot) {
		return err
	}
	root := foreignOption(in.Real()) + shellQuote(in.Real())
	to, unknown := in.Snapshots().Target(ctx, in.Path(), "")
	all, _, _ := in.Snapshots().Survey(in.Path()) // an unreadable snapshot cannot be restored
	before := action.TakenBefore(commit, logOf(state))
	var hints []string
	switch {
	case unknown == nil && to.Snapshot != nil && (before == nil || before[to.Snapshot.ID()]):
		hints = known(fmt.Sprintf("\"spectrum rollback --emergency %s\" does not require it, and restores snapshot %s; \"spectrum snapshot list %[1]s\" lists all", root, to.Snapshot.ID()[:shortest]))
	case unknown == nil && to.Snapshot != nil:
		hints = known(fmt.Sprintf("\"spectrum rollback --emergency %s\" restores snapshot %s, which was taken after the commit, and leaves the commit in place", root, to.Snapshot.ID()[:shortest]))
		if h := action.NewestWhole(ctx, in.Snapshots(), all, before); h != nil {
			hints = append(hints, fmt.Sprintf("\"spectrum snapshot restore %s%s\" undoes it: that is the newest whole snapshot from before the commit, of %s (%s)", foreignOption(in.Real()), h.ID[:shortest], h.Time.Format(time.RFC3339), whyTaken(*h)))
		}
	case len(all) > 0:
		hints = lostBefore(in)
	default:
		hints = known(noneLeft(in))
	}
	return noSnapshot(err, map[string]any{}, hints...)
}

// withoutContents adds to the error of the rollback of a commit, whose snapshot has damaged contents,
// the next steps.
func withoutContents(ctx context.Context, in *action.Root, commit string, err error) error {
	if _, is := errors.AsType[*snapshot.DamageError](err); !is {
		return err
	}
	all, _, _ := in.Snapshots().Survey(in.Path()) // an unreadable snapshot has no contents to name
	h := action.BeforeCommit(commit, all, nil)
	if h == nil {
		return err
	}
	target, unread := in.Snapshots().Find(h.ID)
	if unread != nil {
		return err
	}
	return withNextSteps(ctx, in.Snapshots(), target, in.Real(), "", err)
}

// lostBefore returns the next steps where the snapshot from before a commit is lost.
func lostBefore(in *action.Root) []string {
	return []string{
		"if a backup has the state directory, restore its directory \"snapshots\" from there, and retry",
		fmt.Sprintf("\"spectrum recover --acknowledge %s%s\" accepts that the commit cannot be undone, and releases the root", foreignOption(in.Real()), shellQuote(in.Real())),
	}
}

// noneLeft returns the next step for a root without snapshots.
func noneLeft(in *action.Root) string {
	return fmt.Sprintf("the root has no snapshot to restore: if a backup has the state directory, restore its directory \"snapshots\" from there; otherwise \"spectrum snapshot take %s%s\" saves the root as it is now",
		foreignOption(in.Real()), shellQuote(in.Real()))
}

// lesserWay names the alternatives if no snapshot fits an emergency rollback: the newest of those
// with damaged contents, of those without unreadable files, then what leads back to before a commit.
func lesserWay(ctx context.Context, state *statedir.Dir, in *action.Root, to snapshot.Target, err error) error {
	if !errors.Is(err, action.ErrNoEmergencyTarget) {
		return err
	}
	details := map[string]any{"passed": passedFields(in, to.Passed)}
	isContent := func(d *snapshot.DamageError) bool { return len(d.Names) > 0 }
	for _, p := range to.Passed {
		if p.Foreign || !slices.ContainsFunc(p.Damage, isContent) {
			continue
		}
		if snap, unread := in.Snapshots().Find(p.Header.ID); unread == nil {
			details["damaged"] = p.Header.ID
			return noSnapshot(err, details, nextSteps(ctx, in.Snapshots(), statecheck.Broken{Snapshot: snap, Damaged: p.Damage, Path: in.Real()})...)
		}
	}
	all, _, _ := in.Snapshots().Survey(in.Path()) // an unreadable snapshot cannot be restored
	for _, h := range slices.Backward(all) {
		if h.IsPartial() {
			details["partial"] = h.ID
			return noSnapshot(err, details, fmt.Sprintf("\"spectrum snapshot restore %s%s\" restores the newest snapshot that is not whole: of %s, without %s that could not be read, which would stay as they are now",
				foreignOption(in.Real()), h.ID[:shortest], h.Time.Format(time.RFC3339), numberOf(h.Unread, "name")))
		}
	}
	return noSnapshot(err, details, beforeCommit(ctx, state, in, all)...)
}

// beforeCommit returns the steps that lead back to before the newest commit of a root, with the snapshots
// of a part of it that can be read.
func beforeCommit(ctx context.Context, state *statedir.Dir, in *action.Root, all []snapshot.Header) []string {
	option, root := foreignOption(in.Real()), shellQuote(in.Real())
	newest := ""
	if found, err := in.Savepoints().Survey(in.Path()); err == nil && len(found.Standing) > 0 {
		newest = found.Standing[len(found.Standing)-1].Attempt()
	}
	h := action.BeforeCommit(newest, all, logOf(state))
	switch {
	case h == nil && newest != "":
		return lostBefore(in)
	case h == nil && len(all) > 0:
		return []string{fmt.Sprintf("\"spectrum snapshot list %s%s\" lists the snapshots of parts of it", option, root)}
	case h == nil:
		return []string{fmt.Sprintf("the root has neither snapshots nor commits; \"spectrum snapshot take %s%s\" saves it as it is now", option, root)}
	}
	target, err := in.Snapshots().Find(h.ID)
	if err != nil {
		return lostBefore(in)
	}
	damaged, _ := in.Snapshots().Verify(ctx, target) // what cannot be verified is not known to be damaged
	if slices.ContainsFunc(damaged, func(d *snapshot.DamageError) bool { return len(d.Names) > 0 }) {
		return nextSteps(ctx, in.Snapshots(), statecheck.Broken{Snapshot: target, Damaged: damaged, Path: in.Real()})
	}
	if newest != "" {
		return []string{fmt.Sprintf("\"spectrum rollback %s%s\" undoes the newest commit", option, newest)}
	}
	return []string{fmt.Sprintf("\"spectrum snapshot restore %s%s\" goes back to before commit %s; \"spectrum snapshot list %s%s\" lists all snapshots",
		option, h.ID[:shortest], h.Action[:shortest], option, root)}
}

// laterCommits are in the way: all of them go from this one on.
func laterCommits(err error, later *action.LaterError, from string) error {
	return coded(codeLater, err, map[string]any{"commit": later.Commit, "later": later.Later}, []string{
		fmt.Sprintf("\"spectrum rollback --with-later %s\" undoes all of them in one step, the newest first", from),
	})
}

// fixedRoot is the verdict on a rollback of a root that is immutable or append-only itself.
func fixedRoot(root string, err error) error {
	if _, is := errors.AsType[*action.FixedError](err); !is {
		return err
	}
	return notUndone(err, map[string]any{}, fmt.Sprintf("; as root: chattr -ia %s; then run this again", shellQuote(root)))
}

// withNextSteps gives the error of the restore of a snapshot, contents of which are damaged, the next
// steps. To is as that of [statecheck.NextSteps].
func withNextSteps(ctx context.Context, store *snapshot.Store, target *snapshot.Snapshot, path, to string, err error) error {
	one, is := errors.AsType[*snapshot.DamageError](err)
	if !is || len(one.Names) == 0 {
		return err
	}
	all, failed := store.Verify(ctx, target)
	if failed != nil || len(all) == 0 {
		all = []*snapshot.DamageError{one}
	}
	steps := nextSteps(ctx, store, statecheck.Broken{Snapshot: target, Damaged: all, Path: path, To: to})
	return damagedSnapshot(err, damagesOf(target.ID(), all), slices.Insert(steps, 0, changedNothing(to))...)
}

// changedNothing names what a failed command left unchanged: the root, or the directory beside it.
func changedNothing(to string) string {
	if to != "" {
		return fmt.Sprintf("%s was not written, and the restore root was not touched", shellQuote(to))
	}
	return unchanged
}

// nextSteps returns the next steps for a snapshot with damaged contents.
func nextSteps(ctx context.Context, store *snapshot.Store, b statecheck.Broken) []string {
	b.Option = foreignOption(b.Path)
	if to, err := store.Target(ctx, b.Snapshot.Header().Root, ""); b.To == "" && err == nil && to.Snapshot != nil {
		b.Another = fmt.Sprintf("\"spectrum rollback --emergency %s%s\" skips the damaged one and restores snapshot %s", b.Option, shellQuote(b.Path), to.Snapshot.ID()[:shortest])
	}
	return statecheck.NextSteps(ctx, store, b)
}

// withoutParent adds to the error of a restore into a directory that does not exist the command
// that makes it: a snapshot of a part of the root does not have the metadata of that directory.
func withoutParent(in *action.Root, err error) error {
	failed, is := errors.AsType[*staging.Error](err)
	if !is || failed.Rollback != nil || failed.Step != staging.StepConflict {
		return err
	}
	path, unfit := pathsafe.Found(failed.Path)
	parent, hasOne := path.Parent()
	if unfit != nil || !hasOne || parent == (pathsafe.Path{}) {
		return err
	}
	if _, gone := in.Dir().StatPath(parent, pathsafe.LinksBeneath); !errors.Is(gone, fs.ErrNotExist) {
		return err
	}
	return notUndone(err, map[string]any{"missing": jsonText(parent.String())},
		fmt.Sprintf(": the directory that it goes to is gone, and this snapshot does not hold it; a later one may (\"spectrum snapshot list\"), or make it: mkdir -p %s", shellQuote(filepath.Join(in.Real(), parent.String()))))
}
