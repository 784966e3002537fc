package main

import (
	"context"
	"fmt"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/statecheck"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spf13/cobra"
)

func newSnapshotVerify(app *app) *cobra.Command {
	var repair bool
	cmd := &cobra.Command{
		Use:   "verify [--repair] ID|latest [RESTORE_ROOT]",
		Short: "check the manifest and all contents of a snapshot",
		Long: `verify reads the manifest of a snapshot and all of its contents, and compares them
with their SHA-256.

With --repair it replaces missing or damaged contents with files from the restore
root that have the same SHA-256: at a name from the snapshot, or anywhere in the
root. It does not change the restore root.`,
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return app.withSnapshots(func(s *snapshotCommand) error { return s.verify(cmd.Context(), args[0], repair) })
		},
	}
	cmd.Flags().BoolVar(&repair, "repair", false, "replace damaged contents with files of the restore root")
	return cmd
}

func (s *snapshotCommand) verify(ctx context.Context, id string, repair bool) error {
	found, err := s.find(id)
	if err != nil {
		return err
	}
	var repaired, damages []*snapshot.DamageError
	bar := s.newBar("checking")
	if repair {
		repaired, damages, err = s.repair(ctx, found)
	} else {
		damages, err = s.store.Verify(ctx, found)
	}
	bar.done()
	if err != nil {
		return err
	}
	for _, d := range repaired {
		for _, name := range d.Names {
			s.say("repaired: %s", shellQuote(name))
		}
	}
	if len(damages) > 0 {
		return s.damaged(ctx, found, damages)
	}
	return s.result(fmt.Sprintf("OK %s %s", found.ID(), numberOf(found.Header().Files, "file")), map[string]any{
		"bytes": found.Header().Bytes, "code": "OK", "details": map[string]any{}, "files": found.Header().Files, "id": found.ID(), "ok": true,
		"repaired": damagesOf("", repaired)["damaged"],
	})
}

// repair repairs from the restore root of a snapshot.
func (s *snapshotCommand) repair(ctx context.Context, found *snapshot.Snapshot) (repaired, left []*snapshot.DamageError, err error) {
	path, err := s.state.RootPath(found.Header().Root)
	if err != nil {
		return nil, nil, err
	}
	root, err := pathsafe.OpenRoot(path)
	if err != nil {
		return nil, nil, refusedHint(fmt.Errorf("restore root: %w", err), "--repair reads contents only from the restore root of the snapshot: move that back to its path")
	}
	defer root.Close()
	return s.store.Repair(ctx, found, root)
}

func (s *snapshotCommand) damaged(ctx context.Context, found *snapshot.Snapshot, damages []*snapshot.DamageError) error {
	for _, d := range damages {
		for _, name := range d.Names {
			s.tell("damaged: %s: %s", shellQuote(name), oneLine(d.Err.Error()))
		}
	}
	path, err := s.state.RootPath(found.Header().Root)
	if err != nil {
		return err
	}
	steps := nextSteps(ctx, s.store, statecheck.Broken{Snapshot: found, Damaged: damages, Path: path})
	err = fmt.Errorf("snapshot %s is damaged: %s missing or changed", found.ID()[:shortest], numberOf(len(damages), "content"))
	return damagedSnapshot(err, damagesOf(found.ID(), damages), steps...)
}
