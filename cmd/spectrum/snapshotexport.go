package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spf13/cobra"
)

func newSnapshotExport(app *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "export ID DIR",
		Short: "export a snapshot as a signed bundle, to mount or restore elsewhere",
		Long: `export makes DIR, which must not exist, with the files of the snapshot and a run
directory CONTRACTS/_runs/snapshot-... that the key of this host has signed. You
can verify, mount, preview and commit it anywhere, like any bundle.

Only users who may read everything in the snapshot can enter DIR and the run
directory, and the umask applies.

To get files back without a bundle, use "spectrum snapshot restore --to DIR".

A bundle holds files. Symbolic links and special files are written to DIR, but are
not in the bundle. Result artifacts of an earlier restore are left out, because a
new restore makes its own. export prints how many entries it left out.

DIR appears when it is complete, and replaces nothing. Until then export works in
a directory .spectrum-export-... beside it, which only its owner can enter. The
next export or pull there removes the one that a killed export left.`,
		Args: exactly(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return app.withSnapshots(func(s *snapshotCommand) error { return s.export(cmd.Context(), args[0], args[1]) })
		},
	}
	return cmd
}

func (s *snapshotCommand) export(ctx context.Context, id, target string) error {
	found, err := s.find(id)
	if err != nil {
		return err
	}
	found, adopted := adopt(found)
	export, err := action.ExportOf(found)
	if err != nil {
		return err
	}
	rights := rightsIn(found)
	rights.tell(s.app, false)
	sealed, runDir, err := s.exportTo(ctx, found, export, target)
	if err != nil {
		return err
	}
	s.tellAdopted(adopted)
	rights.tell(s.app, true)
	if export.Left() > 0 {
		s.say("left out of the bundle: %s that it cannot hold", numberOf(export.Left(), "name"))
	}
	s.say("sealed %s, %s, as %q", numberOf(sealed.Files, "file"), bytesText(sealed.Bytes), runDir)
	fields := map[string]any{
		"adopted": jsonTexts(adopted), "bundle_root": sealed.BundleRoot, "bytes": sealed.Bytes, "code": "OK", "files": sealed.Files, "left_out": export.Left(), "ok": true,
		"run_dir": jsonText(runDir), "snapshot": found.ID(), "validator_id": sealed.ValidatorID,
	}
	rights.addTo(fields)
	return s.result(runDir, fields)
}

// exportTo makes the tree of a snapshot, and its bundle, in a box, and moves it to the
// target when it is complete. It returns the run directory.
func (s *snapshotCommand) exportTo(ctx context.Context, found *snapshot.Snapshot, export *action.Export, target string) (bundle.Sealed, string, error) {
	var sealed bundle.Sealed
	dir, err := s.intoBox(found, target, func(b *box, tree, dir string) error {
		if err := s.store.Write(ctx, found, pathsafe.Path{}, b.dir, tree); err != nil {
			return err
		}
		key, err := s.hostKey(s.state)
		if err == nil {
			sealed, err = export.Seal(ctx, b.dir, tree, action.Host{Key: key, BuildID: buildID()})
		}
		if err != nil {
			return sealError(b.told(err, tree, dir))
		}
		return b.told(b.keepPrivate(tree, export.RunDir(), export.Perm()&^machine.Umask()), tree, dir)
	})
	if err != nil {
		return bundle.Sealed{}, "", err
	}
	return sealed, filepath.Join(dir, export.RunDir()), nil
}

// intoBox has a tree made in a box, and moves it to the target when it is complete. It
// returns the path of that.
func (s *snapshotCommand) intoBox(found *snapshot.Snapshot, target string, work func(b *box, tree, dir string) error) (_ string, err error) {
	path, err := filepath.Abs(target)
	if err != nil {
		return "", err
	}
	b, err := newBox(filepath.Dir(path))
	if err != nil {
		return "", refusedHint(err, "choose a directory whose parent exists")
	}
	defer func() { err = errors.Join(err, b.close()) }()
	dir := filepath.Join(b.real, filepath.Base(path))
	if err := s.exportDir(b, found, dir); err != nil {
		return "", err
	}
	if err := action.RoomFor(found, b.above, s.state.Root()); err != nil {
		return "", err
	}
	if err := b.make(); err != nil {
		return "", refusedHint(err, "choose a directory whose parent you can write to")
	}
	bar := s.newBar("writing")
	defer bar.done()
	const tree = "0"
	if err := work(b, tree, dir); err != nil {
		return "", err
	}
	err = b.release(tree, filepath.Base(dir))
	if errors.Is(err, fs.ErrExist) {
		err = exportExists(dir)
	}
	return dir, err
}

// exportDir checks the directory that is to be made: it must not be there, nor in a place
// that others count on.
func (s *snapshotCommand) exportDir(b *box, found *snapshot.Snapshot, dir string) error {
	_, err := b.above.Lstat(filepath.Base(dir))
	switch {
	case err == nil:
		return exportExists(dir)
	case !errors.Is(err, fs.ErrNotExist):
		return refusedHint(err, exportElsewhere)
	}
	places := []reserved{{"the state directory", s.state.Path()}, {"the restore root", found.Header().Root}}
	return refusedHint(overlapReal("export", dir, dir, places), "name a directory somewhere else")
}

const exportElsewhere = "name a directory that does not exist yet"

func exportExists(dir string) error {
	return refusedHint(fmt.Errorf("%q exists", dir), exportElsewhere)
}
