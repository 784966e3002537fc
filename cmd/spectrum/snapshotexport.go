package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
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
	if !found.Header().Whole {
		return refusedHint(fmt.Errorf("snapshot %s is of some names of the root only", found.ID()[:shortest]), "\"spectrum snapshot take\" takes one of all of it")
	}
	if err := roomForRuns(found); err != nil {
		return err
	}
	outputs, left := sealable(found)
	if len(outputs) == 0 {
		return refusedHint(fmt.Errorf("snapshot %s holds no file that a bundle can hold", found.ID()[:shortest]), otherSnapshot)
	}
	found, adopted := adopt(found)
	rights := rightsIn(found)
	rights.tell(s.app, false)
	sealed, runDir, err := s.exportTo(ctx, found, target, outputs)
	if err != nil {
		return err
	}
	s.tellAdopted(adopted)
	rights.tell(s.app, true)
	if left > 0 {
		s.say("left out of the bundle: %s that it cannot hold", numberOf(left, "name"))
	}
	s.say("sealed %s, %s, as %q", numberOf(sealed.Files, "file"), bytesText(sealed.Bytes), runDir)
	fields := map[string]any{
		"adopted": jsonTexts(adopted), "bundle_root": sealed.BundleRoot, "bytes": sealed.Bytes, "code": "OK", "files": sealed.Files, "left_out": left, "ok": true,
		"run_dir": jsonText(runDir), "snapshot": found.ID(), "validator_id": sealed.ValidatorID,
	}
	rights.addTo(fields)
	return s.result(runDir, fields)
}

// otherSnapshot is the hint for one that no bundle can be made of.
const otherSnapshot = "\"spectrum snapshot restore ID\" brings it back here; \"spectrum snapshot list\" lists others"

// roomForRuns requires that a snapshot has no entry at the path of the run directory, and no link
// on the way to it.
func roomForRuns(found *snapshot.Snapshot) error {
	for _, name := range []string{"CONTRACTS", path.Clean(exportRuns), path.Join(exportRuns, runOf(found))} {
		at, err := pathsafe.Parse(name)
		if err != nil {
			return err
		}
		e, err := found.At(at)
		if err != nil {
			return err
		}
		if e.Type == snapshot.Absent {
			return nil
		}
		if e.Type != snapshot.Dir || name == path.Join(exportRuns, runOf(found)) {
			return refusedHint(fmt.Errorf("the snapshot has a %s at %q, where the run directory would be", e.Type, name), otherSnapshot)
		}
	}
	return nil
}

func runOf(found *snapshot.Snapshot) string { return "snapshot-" + found.ID()[:shortest] }

// exportTo makes the tree of a snapshot, and its bundle, in a box, and moves it to the
// target when it is complete. It returns the run directory.
func (s *snapshotCommand) exportTo(ctx context.Context, found *snapshot.Snapshot, target string, outputs []bundle.Known) (bundle.Sealed, string, error) {
	var sealed bundle.Sealed
	dir, err := s.intoBox(found, target, func(b *box, tree, dir string) (err error) {
		if err := s.store.Write(ctx, found, pathsafe.Path{}, b.dir, tree); err != nil {
			return err
		}
		if sealed, err = s.sealExport(ctx, found, b, tree, outputs); err != nil {
			return sealError(b.told(err, tree, dir))
		}
		return b.told(b.keepPrivate(tree, runOf(found), strictest(found)&^machine.Umask()), tree, dir)
	})
	if err != nil {
		return bundle.Sealed{}, "", err
	}
	return sealed, filepath.Join(dir, exportRuns, runOf(found)), nil
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
	if err := s.roomIn(b.above, found); err != nil {
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

// roomIn requires that what is kept of a snapshot has room where it is to be written: at least what
// its files take there, before anything is made.
func (s *snapshotCommand) roomIn(dir *pathsafe.Dir, found *snapshot.Snapshot) error {
	at, err := machine.RoomOf(dir)
	if err != nil {
		return err
	}
	kind, err := s.state.Root().FileSystem()
	if err != nil {
		return err
	}
	var need machine.Need
	for e := range found.Entries() {
		if e.Type.Kept() && e.Type != snapshot.Absent && e.Hard == "" {
			need = need.Plus(snapshot.Takes(at, at.MayShare(kind), &e))
		}
	}
	return at.Check(need)
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

// strictest returns what every file and directory of a snapshot grants: of the bits 0755
// those of the group and of others only where these may read all of it. An access list
// counts as nothing for the group.
func strictest(found *snapshot.Snapshot) fs.FileMode {
	perm := fs.FileMode(0o755)
	for e := range found.Entries() {
		need := map[snapshot.Type]uint32{snapshot.File: 4, snapshot.Dir: 5}[e.Type]
		listed := slices.ContainsFunc(e.Xattrs(), func(x pathsafe.Xattr) bool { return x.Name == "system.posix_acl_access" })
		if listed || e.Mode>>3&need != need {
			perm &^= 0o050
		}
		if e.Mode&need != need {
			perm &^= 0o005
		}
	}
	return perm
}

// exportRuns is where the run directories of an export are.
const exportRuns = "CONTRACTS/_runs/"

// sealable are the files of a snapshot that can be outputs of a bundle, and how
// many other names there are, but for directories.
func sealable(found *snapshot.Snapshot) (outputs []bundle.Known, left int) {
	for e := range found.Entries() {
		if e.Type == snapshot.Dir {
			continue
		}
		path, err := pathsafe.Parse(e.Path)
		if err != nil || e.Type != snapshot.File || strings.ToValidUTF8(e.Path, "") != e.Path || isResult(e.Path) || strings.HasPrefix(e.Path, exportRuns) {
			left++
			continue
		}
		outputs = append(outputs, bundle.Known{Path: path, Bytes: e.Size, Digest: e.Digest})
	}
	return outputs, left
}

// isResult reports whether a restore makes this name itself (the result artifacts).
func isResult(path string) bool {
	return path == restore.ManifestName || path == restore.ReportName
}

// sealExport seals what was written to tree in the box.
func (s *snapshotCommand) sealExport(ctx context.Context, found *snapshot.Snapshot, b *box, tree string, outputs []bundle.Known) (bundle.Sealed, error) {
	key, err := s.hostKey(s.state)
	if err != nil {
		return bundle.Sealed{}, err
	}
	return bundle.SealKnown(ctx, bundle.KnownOptions{
		In: b.dir, RunDir: filepath.Join(tree, exportRuns, runOf(found)), Outputs: outputs, Key: key, BuildID: buildID(),
		Constraints: map[string]any{"snapshot_id": found.ID(), "title": "snapshot of " + jsonText(found.Header().Root)},
	})
}
