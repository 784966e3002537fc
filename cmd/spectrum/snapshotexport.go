package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spf13/cobra"
)

func newSnapshotExport(app *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "export ID DIR",
		Short: "make a project with a signed bundle of a snapshot, to mount or restore elsewhere",
		Long: `export makes DIR, which must not exist, as the restore root was in the snapshot, with
a run directory CONTRACTS/_runs/snapshot-... in it that this host's key has signed.
It can be verified, mounted, previewed and committed anywhere like any bundle.

A bundle holds files. Symbolic links and the rest are in DIR too, but not in the
bundle; nor are the result artifacts of an earlier restore, which a new one makes
anew. What is left out is counted.`,
		Args: exactly(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return app.withSnapshots(func(s *snapshotShelf) error { return s.export(cmd.Context(), args[0], args[1]) })
		},
	}
	return cmd
}

func (s *snapshotShelf) export(ctx context.Context, id, target string) error {
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
	dir, err := s.exportDir(found, target)
	if err != nil {
		return err
	}
	bar := s.newBar("writing")
	sealed, runDir, err := s.writeAndSeal(ctx, found, dir, outputs)
	bar.done()
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir)) // all of it is ours, and none of it can be used
	}
	if left > 0 {
		s.say("left out of the bundle: %s that it cannot hold", numberOf(left, "name"))
	}
	s.say("sealed %s, %s, as %q", numberOf(sealed.Files, "file"), bytesText(sealed.Bytes), runDir)
	return s.result(runDir, map[string]any{
		"bundle_root": sealed.BundleRoot, "bytes": sealed.Bytes, "code": "OK", "files": sealed.Files, "left_out": left, "ok": true,
		"run_dir": jsonText(runDir), "snapshot": found.ID(), "validator_id": sealed.ValidatorID,
	})
}

// otherSnapshot is the hint for one that no bundle can be made of.
const otherSnapshot = "\"spectrum snapshot restore ID\" brings it back here; \"spectrum snapshot list\" lists others"

// roomForRuns wants nothing in a snapshot to stand where the run directory will be,
// or to lead from there to another place.
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

// exportDir is the directory that is to be made, which must not be there, nor in a
// place that others count on.
func (s *snapshotShelf) exportDir(found *snapshot.Snapshot, target string) (string, error) {
	dir, err := filepath.Abs(target)
	if err != nil {
		return "", err
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = fmt.Errorf("%q exists", dir)
		}
		return "", refusedHint(err, "name a directory that does not exist yet")
	}
	places := []place{{"the state directory", s.state.Path()}, {"the restore root", found.Header().Root}}
	return dir, refusedHint(overlap("export", dir, places), "name a directory somewhere else")
}

// writeAndSeal makes the tree of a snapshot as a new directory, and its bundle.
func (s *snapshotShelf) writeAndSeal(ctx context.Context, found *snapshot.Snapshot, dir string, outputs []bundle.Known) (bundle.Sealed, string, error) {
	above, err := pathsafe.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return bundle.Sealed{}, "", refusedHint(err, "name a directory in one that is there")
	}
	defer above.Close()
	if err := s.store.Write(ctx, found, pathsafe.Path{}, above, filepath.Base(dir)); err != nil {
		return bundle.Sealed{}, "", err
	}
	sealed, runDir, err := s.sealExport(ctx, found, dir, outputs)
	if err != nil {
		err = sealError(err)
	}
	return sealed, runDir, err
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

// isResult says whether a restore makes this name itself (decision D10).
func isResult(path string) bool {
	return path == restore.ManifestName || path == restore.ReportName
}

func (s *snapshotShelf) sealExport(ctx context.Context, found *snapshot.Snapshot, dir string, outputs []bundle.Known) (bundle.Sealed, string, error) {
	key, err := s.hostKey(s.state)
	if err != nil {
		return bundle.Sealed{}, "", err
	}
	runDir := filepath.Join(dir, exportRuns, runOf(found))
	sealed, err := bundle.SealKnown(ctx, bundle.KnownOptions{
		RunDir: runDir, Outputs: outputs, Key: key, BuildID: buildID(),
		Constraints: map[string]any{"snapshot_id": found.ID(), "title": "snapshot of " + jsonText(found.Header().Root)},
	})
	return sealed, runDir, err
}
