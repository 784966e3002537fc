package main

import (
	"context"
	"slices"
	"time"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/snapshot"
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
		Short: "restore a root, or some of its files, to a snapshot: all or nothing",
		Long: `restore makes a restore root as it was in a snapshot: files that were added since
are removed, and removed ones come back. It compares the root with the snapshot and
swaps only the names that differ: all of them or none. New files are written and
checked first. The current state is saved in a snapshot, so you can undo the
restore in the same way.

Other processes may work in the root meanwhile. The last content that they write
at a swapped name is kept, and named. A directory that was to be removed stays if
they add files to it. Sockets, devices and mounts stay where they are, as does a
new directory that contains one; it is named.

With PATHs, restore brings back only these files and directories, and missing
parent directories. A PATH is relative to the restore root, or absolute. No commit
is undone. A file with several hard links comes back as a separate file.

With --to, restore writes the snapshot, or the PATHs, to DIR, which must not exist.
It does not read or change the restore root, which may be halted or gone.
"spectrum snapshot export" does the same for a whole root and adds a signed bundle.

restore rejects a snapshot with missing or damaged contents, and prints what you
can do. With --without-damaged it restores the rest; files whose contents are
damaged stay as they are now, and are named.

Restoring a snapshot undoes the commits that were made after it, makes earlier
previews and approvals of the root void, and detaches views that show it.

--dry-run writes nothing. It lists what would be removed, created and replaced, with
sizes, what would stay and why, and how much space is required.`,
		Args: atLeast(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkReason(cmd, opts.reason); err != nil {
				return err
			}
			app.dryRun = opts.dryRun
			if opts.to != "" && (opts.dryRun || opts.reason != "") {
				return usage(cmd, "--to changes nothing in a restore root, so it cannot be combined with --dry-run or --reason")
			}
			if opts.to != "" {
				return app.withSnapshots(func(s *snapshotCommand) error { return s.writeTo(cmd.Context(), args, opts) })
			}
			unopened := func(state *statedir.Dir, err error) {
				app.unreadable(state, args[0], opts.dryRun || len(args) > 1, err)
			}
			return app.withSnapshotsOr(unopened, func(s *snapshotCommand) error { return s.restore(cmd.Context(), args, opts) })
		},
	}
	cmd.Flags().StringVar(&opts.to, "to", "", "write the files to this new `directory` instead of the restore root")
	cmd.Flags().BoolVar(&opts.without, "without-damaged", false, "restore the rest if contents of the snapshot are damaged")
	dryRunFlag(cmd, &opts.dryRun)
	reasonFlag(cmd, &opts.reason)
	foreignFlag(cmd, &opts.foreign)
	lockFlag(cmd, &opts.wait)
	return cmd
}

func (s *snapshotCommand) restore(ctx context.Context, args []string, opts snapshotRestoreOptions) error {
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
		return s.notBegun(s.state, opts.dryRun, action.Refusal{Root: target.Header().Root, Kind: audit.Session, Why: err})
	}
	defer in.Leave()
	return s.notDone(s.state, in, s.restoreSnapshot(ctx, in, restoreRequest{
		target: target, kind: audit.Session, reason: restoreReason(target.ID(), opts.reason), only: only, dryRun: opts.dryRun,
	}))
}

// findFor finds a snapshot that is to be restored; without its damaged contents, which it
// looks for then.
func (s *snapshotCommand) findFor(ctx context.Context, id string, without bool) (*snapshot.Snapshot, error) {
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

// A restoreRequest is the restore of a snapshot, and why.
type restoreRequest struct {
	target *snapshot.Snapshot
	kind   audit.Rollback
	reason string
	passed []snapshot.Passed // that it is restored instead of
	ended  []string          // names in the root that an attempt has left, and that go before it begins
	only   []pathsafe.Path   // nil is all of it
	dryRun bool
}

func (a *app) restoreSnapshot(ctx context.Context, in *action.Root, r restoreRequest) error {
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
	if err != nil {
		return restoreError(ctx, in, r.target, err)
	}
	if r.dryRun {
		done.Left = slices.DeleteFunc(done.Left, func(l action.Left) bool { return slices.Contains(r.ended, l.Path) })
	}
	what := "restore"
	if r.kind == audit.Emergency {
		what = "rollback"
	}
	return a.rolledBack(in, rollbackReport{
		kind: r.kind, what: what, done: done.Done, commits: done.Commits, changed: done.Changed, left: done.Left, changes: done.Changes, parted: done.Parted, rights: rights{done.Owners, done.Programs}, spaces: done.Spaces, open: done.Open,
		target: r.target, passed: r.passed, unreadable: done.InPart, only: r.only,
	})
}
