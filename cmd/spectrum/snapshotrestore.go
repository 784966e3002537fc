package main

import (
	"context"
	"errors"

	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/commit"
	"github.com/spectrumfs/spectrum/restore/rollback"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spf13/cobra"
)

func newSnapshotRestore(app *app) *cobra.Command {
	var entry commit.Entry
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
approved for the root before is void, and views that show it are detached.`,
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return app.withSnapshots(func(s *snapshotShelf) error { return s.restore(cmd.Context(), args[0], entry) })
		},
	}
	foreignFlag(cmd, &entry.Foreign)
	lockFlag(cmd, &entry.Wait)
	return cmd
}

func (s *snapshotShelf) restore(ctx context.Context, id string, entry commit.Entry) error {
	target, err := s.find(id)
	if err != nil {
		return err
	}
	in, err := s.enterNamed(ctx, s.state, target.Header().Root, entry)
	if err != nil {
		return err
	}
	defer in.Leave()
	return haltedIn(s.state, in.Path(), s.restoreSnapshot(ctx, in, restoring{target: target, kind: audit.Session, reason: "snapshot " + target.ID() + " was asked for"}))
}

// restoring is the restore of a snapshot, and why.
type restoring struct {
	target *snapshot.Snapshot
	kind   audit.Rollback
	reason string
	passed []rollback.Passed // damaged snapshots that it is restored instead of
}

func (a *app) restoreSnapshot(ctx context.Context, in *commit.Root, r restoring) error {
	bar := a.newBar("looking at the restore root")
	done, err := rollback.Restore(ctx, in, r.target, rollback.How{Type: r.kind, Reason: r.reason})
	bar.done()
	var later *rollback.LaterError
	if errors.As(err, &later) {
		return laterCommits(err, later, later.Later[len(later.Later)-1])
	}
	if err != nil {
		return rollbackError(err)
	}
	return a.rolledBack(in, rollbackReport{kind: r.kind, done: done.Done, commits: done.Commits, left: done.Left, target: r.target, passed: r.passed})
}
