package main

import (
	"context"
	"errors"
	"time"

	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/commit"
	"github.com/spectrumfs/spectrum/restore/rollback"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spf13/cobra"
)

type snapshotRestoreOptions struct {
	dryRun  bool
	reason  string
	foreign []string
	wait    time.Duration
}

func newSnapshotRestore(app *app) *cobra.Command {
	var opts snapshotRestoreOptions
	cmd := &cobra.Command{
		Use:   "restore ID",
		Short: "make a restore root as it was in a snapshot, all of it or nothing",
		Long: `restore makes everything that the snapshot is of as it was: what came since goes,
what went comes back. The root is compared with the snapshot, and only the names that
differ are swapped: all of them or none. What comes is made and checked first. What is
there before is kept in a snapshot, so that this can be undone in the same way.

Others may go on working in the root, but for the names that are swapped. Sockets,
devices and mounts stay where they are; a directory that came since and holds one
stays, and is named.

The commits that were made since are undone with it. What was previewed or
approved for the root before is void, and views that show it are detached.

With --dry-run nothing is written: what would be removed, created and replaced is
listed with its size, what would stay and why, and how much room it needs.`,
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkReason(cmd, opts.reason); err != nil {
				return err
			}
			return app.withSnapshots(func(s *snapshotShelf) error { return s.restore(cmd.Context(), args[0], opts) })
		},
	}
	dryRunFlag(cmd, &opts.dryRun)
	reasonFlag(cmd, &opts.reason)
	foreignFlag(cmd, &opts.foreign)
	lockFlag(cmd, &opts.wait)
	return cmd
}

func (s *snapshotShelf) restore(ctx context.Context, id string, opts snapshotRestoreOptions) error {
	target, err := s.find(id)
	if err != nil {
		return err
	}
	in, err := s.enterNamed(ctx, s.state, target.Header().Root, commit.Entry{Wait: opts.wait, Foreign: opts.foreign, DryRun: opts.dryRun})
	if err != nil {
		return err
	}
	defer in.Leave()
	reason := "snapshot " + target.ID() + " was asked for"
	if opts.reason != "" {
		reason = "snapshot " + target.ID() + ": " + opts.reason
	}
	return haltedIn(s.state, in.Path(), s.restoreSnapshot(ctx, in, restoring{
		target: target, kind: audit.Session, reason: reason, dryRun: opts.dryRun,
	}))
}

// restoring is the restore of a snapshot, and why.
type restoring struct {
	target *snapshot.Snapshot
	kind   audit.Rollback
	reason string
	dryRun bool
}

func (a *app) restoreSnapshot(ctx context.Context, in *commit.Root, r restoring) error {
	bar := a.newBar("looking at the restore root")
	restore := rollback.Restore
	if r.dryRun {
		restore = rollback.ForeseeRestore
	}
	done, err := restore(ctx, in, r.target, rollback.How{Type: r.kind, Reason: r.reason})
	bar.done()
	var later *rollback.LaterError
	if errors.As(err, &later) {
		return laterCommits(err, later, later.Later[len(later.Later)-1])
	}
	if err != nil {
		return rollbackError(err)
	}
	what := "restore"
	if r.kind == audit.Emergency {
		what = "rollback"
	}
	return a.rolledBack(in, rollbackReport{
		kind: r.kind, what: what, done: done.Done, commits: done.Commits, left: done.Left, changes: done.Changes, spaces: done.Spaces,
	})
}
