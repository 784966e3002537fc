package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/kept"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
	"github.com/spf13/cobra"
)

type snapshotRestoreOptions struct {
	to      string
	without bool
	dryRun  bool
	reason  string
	foreign []string
	wait    time.Duration
}

func newSnapshotRestore(app *app) *cobra.Command {
	var opts snapshotRestoreOptions
	cmd := &cobra.Command{
		Use:   "restore [--to DIR] ID [PATH...]",
		Short: "make a restore root, or some files of it, as in a snapshot, all of it or nothing",
		Long: `restore makes everything that the snapshot is of as it was: what came since goes,
what went comes back. The root is compared with the snapshot, and only the names that
differ are swapped: all of them or none. What comes is made and checked first. What is
there before is kept in a snapshot, so that this can be undone in the same way.

Others may go on working in the root. What they change meanwhile at a name that is
swapped is kept in its last content, and named; a directory that was to go and in which
they made something stays. Sockets, devices and mounts stay where they are; a directory
that came since and holds one stays, and is named.

With PATHs only these files and directories are restored, with all that is in them,
and the directories to them where these are missing. A PATH is one beneath the
restore root; an absolute one is taken too. What commits have made stays theirs: none
is undone. A file that had other names beside it comes back as a file of its own.

With --to what the snapshot holds, or the PATHs of it, is written to DIR, which must not
exist: the restore root is not touched, nor looked at, and it may be halted or gone.
"spectrum snapshot export" does the same for a whole root, and adds a signed bundle, to
mount or restore it elsewhere.

A snapshot that lacks a content, or has a damaged one, is not restored: the answer names the
ways that are left. With --without-damaged all the rest of it is restored, and the files with
damaged contents stay as they are now, and are named.

The commits that were made since are undone with the restore of a snapshot. What was previewed or
approved for the root before is void, and views that show it are detached.

With --dry-run nothing is written: what would be removed, created and replaced is
listed with its size, what would stay and why, and how much room it needs.`,
		Args: atLeast(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkReason(cmd, opts.reason); err != nil {
				return err
			}
			app.dryRun = opts.dryRun
			if opts.to != "" && (opts.dryRun || opts.reason != "") {
				return usage(cmd, "--to changes nothing in a restore root: --dry-run and --reason do not go with it")
			}
			if opts.to != "" {
				return app.withSnapshots(func(s *snapshotShelf) error { return s.writeTo(cmd.Context(), args, opts) })
			}
			unopened := func(state *statedir.Dir, err error) {
				app.unreadable(state, args[0], opts.dryRun || len(args) > 1, err)
			}
			return app.withSnapshotsOr(unopened, func(s *snapshotShelf) error { return s.restore(cmd.Context(), args, opts) })
		},
	}
	cmd.Flags().StringVar(&opts.to, "to", "", "write it to this new `directory`, and change no restore root")
	cmd.Flags().BoolVar(&opts.without, "without-damaged", false, "leave files as they are whose contents the snapshot has no more")
	dryRunFlag(cmd, &opts.dryRun)
	reasonFlag(cmd, &opts.reason)
	foreignFlag(cmd, &opts.foreign)
	lockFlag(cmd, &opts.wait)
	return cmd
}

func (s *snapshotShelf) restore(ctx context.Context, args []string, opts snapshotRestoreOptions) error {
	target, err := s.findFor(ctx, args[0], opts.without)
	if err != nil {
		_ = s.store.Close() // the halt may need its descriptors
		s.unreadable(s.state, args[0], opts.dryRun || len(args) > 1, err)
		return err
	}
	only, err := pathsIn(target, args[1:])
	if err != nil {
		return err
	}
	verb := "restoring"
	if opts.dryRun {
		verb = "would restore"
	}
	name := target.Header().Root
	path, err := s.state.RootPath(name)
	if err != nil {
		return err
	}
	of := shellQuote(path)
	if path != name {
		of += ", known as " + shellQuote(name)
	}
	s.say("%s snapshot %s of %s", verb, identified(target.Header()), of)
	in, err := s.enterKnown(ctx, s.state, target.Header().Root, action.Entry{Wait: opts.wait, Foreign: opts.foreign, DryRun: opts.dryRun})
	if err != nil {
		return s.notBegun(s.state, target.Header().Root, opts.dryRun, audit.Event{Rollback: audit.Session}, err)
	}
	defer in.Leave()
	return s.notDone(s.state, in, s.restoreSnapshot(ctx, in, restoring{
		target: target, kind: audit.Session, reason: restoreReason(target.ID(), opts.reason), only: only, dryRun: opts.dryRun,
	}))
}

// findFor finds a snapshot that is to be restored; without its damaged contents, which it
// looks for then.
func (s *snapshotShelf) findFor(ctx context.Context, id string, without bool) (*snapshot.Snapshot, error) {
	found, err := s.find(id)
	if err != nil || !without {
		return found, err
	}
	bar := s.newBar("checking")
	damaged, err := s.store.Verify(ctx, found)
	bar.done()
	if err != nil {
		return nil, err
	}
	return found.Without(damaged), nil
}

// withWayOut gives the error of the restore of a snapshot, contents of which are damaged, the next
// steps. To is as that of [kept.WayOut].
func withWayOut(ctx context.Context, store *snapshot.Store, target *snapshot.Snapshot, path, to string, err error) error {
	var one *snapshot.DamageError
	if !errors.As(err, &one) || len(one.Names) == 0 {
		return err
	}
	all, failed := store.Verify(ctx, target)
	if failed != nil || len(all) == 0 {
		all = []*snapshot.DamageError{one}
	}
	return &codedError{
		code: codeSnapshotDamaged, details: damagesOf(target.ID(), all), err: err,
		hint: changedNothing(to), hints: wayOut(ctx, store, kept.Broken{Snapshot: target, Damaged: all, Path: path, To: to}),
	}
}

// changedNothing says what was left alone by what failed: the root, or the directory beside it.
func changedNothing(to string) string {
	if to != "" {
		return fmt.Sprintf("%s was not written, and the restore root was not touched", shellQuote(to))
	}
	return unchanged
}

// wayOut returns the next steps for a snapshot with damaged contents.
func wayOut(ctx context.Context, store *snapshot.Store, b kept.Broken) []string {
	b.Option = foreignOption(b.Path)
	if to, err := store.Target(ctx, b.Snapshot.Header().Root, ""); b.To == "" && err == nil && to.Snapshot != nil {
		b.Another = fmt.Sprintf("\"spectrum rollback --emergency %s%s\" passes over what is damaged, and goes back to snapshot %s", b.Option, shellQuote(b.Path), to.Snapshot.ID()[:shortest])
	}
	return kept.WayOut(ctx, store, b)
}

// withoutParent gives the error of a restore into a directory that is not there any more the
// command that makes it: a snapshot of a part of the root does not know what that was like.
func withoutParent(in *action.Root, err error) error {
	var failed *staging.Error
	if !errors.As(err, &failed) || failed.Rollback != nil || failed.Step != staging.StepConflict {
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
	return &codedError{
		code: codeNotUndone, details: map[string]any{"missing": jsonText(parent.String())}, err: err,
		hint: fmt.Sprintf("%s: the directory that it goes to is gone, and this snapshot does not hold it; a later one may (\"spectrum snapshot list\"), or make it: mkdir -p %s", unchanged, shellQuote(filepath.Join(in.Real(), parent.String()))),
	}
}

// restoring is the restore of a snapshot, and why.
type restoring struct {
	target *snapshot.Snapshot
	kind   audit.Rollback
	reason string
	passed []snapshot.Passed // that it is restored instead of
	ended  []string          // names in the root that an attempt has left, and that go before it begins
	only   []pathsafe.Path   // nil is all of it
	dryRun bool
}

func (a *app) restoreSnapshot(ctx context.Context, in *action.Root, r restoring) error {
	bar := a.newBar("looking at the restore root")
	restore := action.Restore
	if r.dryRun {
		restore = action.ForeseeRestore
	}
	how := action.How{Type: r.kind, Reason: r.reason, Only: r.only}
	if !r.dryRun {
		if foreseen, err := action.ForeseeRestore(ctx, in, r.target, how); err == nil && foreseen.Same {
			bar.done()
			return a.nothingDiffers(in, r, foreseen.Left)
		}
	}
	done, err := restore(ctx, in, r.target, how)
	bar.done()
	var later *action.LaterError
	if errors.As(err, &later) {
		return laterCommits(err, later, later.Later[len(later.Later)-1])
	}
	if err != nil {
		return rollbackError(fixedRoot(in.Real(), withoutParent(in, notInSnapshot(r.target, withWayOut(ctx, in.Snapshots(), r.target, in.Real(), "", err)))))
	}
	if r.dryRun {
		done.Left = slices.DeleteFunc(done.Left, func(l action.Left) bool { return slices.Contains(r.ended, l.Path) })
	}
	what := "restore"
	if r.kind == audit.Emergency {
		what = "rollback"
	}
	return a.rolledBack(in, rollbackReport{
		kind: r.kind, what: what, done: done.Done, commits: done.Commits, changed: done.Changed, left: done.Left, changes: done.Changes, parted: done.Parted, spaces: done.Spaces, open: done.Open,
		target: r.target, passed: r.passed, unreadable: done.InPart, only: r.only,
	})
}
