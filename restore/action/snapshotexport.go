package action

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// exportRuns is where an exported tree has its run directory.
const exportRuns = "CONTRACTS/_runs"

// An Export is a snapshot of a whole root as a directory tree with a signed bundle of its files.
type Export struct {
	found   *snapshot.Snapshot
	outputs []bundle.Known
	left    int
}

// ErrPartOnly reports a snapshot of a part of a root, which is not exported.
var ErrPartOnly = errors.New("is of some names of the root only")

// An UnsealableError reports a snapshot of which no bundle can be made.
type UnsealableError struct{ why string }

func (e *UnsealableError) Error() string { return e.why }

// ExportOf returns the export of a snapshot. The bundle has all regular files but the result artifacts of
// an earlier restore, and files whose paths no bundle can have. The error is [ErrPartOnly], or an
// [*UnsealableError].
func ExportOf(found *snapshot.Snapshot) (*Export, error) {
	e := &Export{found: found}
	if !found.Header().Whole {
		return nil, fmt.Errorf("snapshot %s %w", e.id(), ErrPartOnly)
	}
	if err := e.checkRunDir(); err != nil {
		return nil, err
	}
	for at := range found.Entries() {
		parsed, err := pathsafe.Parse(at.Path)
		switch {
		case at.Type == snapshot.Dir:
		case err != nil, at.Type != snapshot.File, strings.ToValidUTF8(at.Path, "") != at.Path, restore.IsResult(at.Path), strings.HasPrefix(at.Path, exportRuns+"/"):
			e.left++
		default:
			e.outputs = append(e.outputs, bundle.Known{Path: parsed, Bytes: at.Size, Digest: at.Digest})
		}
	}
	if len(e.outputs) == 0 {
		return nil, &UnsealableError{fmt.Sprintf("snapshot %s holds no file that a bundle can hold", e.id())}
	}
	return e, nil
}

// checkRunDir requires that the snapshot has no entry at the path of the run directory, and no link on the
// way to it.
func (e *Export) checkRunDir() error {
	for _, name := range []string{path.Dir(exportRuns), exportRuns, e.RunDir()} {
		parsed, err := pathsafe.Parse(name)
		if err != nil {
			return err
		}
		at, err := e.found.At(parsed)
		if err != nil {
			return err
		}
		if at.Type == snapshot.Absent {
			return nil
		}
		if at.Type != snapshot.Dir || name == e.RunDir() {
			return &UnsealableError{fmt.Sprintf("the snapshot has a %s at %q, where the run directory would be", at.Type, name)}
		}
	}
	return nil
}

// id returns the first digits of the ID of the snapshot.
func (e *Export) id() string { return e.found.ID()[:8] }

// RunDir returns the path of the run directory, in the exported tree.
func (e *Export) RunDir() string { return path.Join(exportRuns, "snapshot-"+e.id()) }

// Left returns how many names the bundle does not have, without directories.
func (e *Export) Left() int { return e.left }

// Perm returns what every file and directory grants: of the bits 0755 those of the group and of others
// only if these may read all of it. An access list counts as nothing for the group.
func (e *Export) Perm() fs.FileMode {
	perm := fs.FileMode(0o755)
	for at := range e.found.Entries() {
		need := map[snapshot.Type]uint32{snapshot.File: 4, snapshot.Dir: 5}[at.Type]
		listed := slices.ContainsFunc(at.Xattrs(), func(x pathsafe.Xattr) bool { return x.Name == "system.posix_acl_access" })
		if listed || at.Mode>>3&need != need {
			perm &^= 0o050
		}
		if at.Mode&need != need {
			perm &^= 0o005
		}
	}
	return perm
}

// Seal makes the bundle of the tree, which was written to a name in a directory, with the key of the host.
func (e *Export) Seal(ctx context.Context, in *pathsafe.Dir, tree string, host Host) (bundle.Sealed, error) {
	root := strings.ToValidUTF8(e.found.Header().Root, "\uFFFD")
	return bundle.SealKnown(ctx, bundle.KnownOptions{
		In: in, RunDir: path.Join(tree, e.RunDir()), Outputs: e.outputs, Key: host.Key, BuildID: host.BuildID,
		Constraints: map[string]any{"snapshot_id": e.found.ID(), "title": "snapshot of " + root},
	})
}

// RoomFor returns a [*machine.FullError] if a directory has no room for what is kept of a snapshot: at
// least what its files take there. State is the state directory, which has their contents.
func RoomFor(found *snapshot.Snapshot, dir, state *pathsafe.Dir) error {
	at, err := machine.RoomOf(dir)
	if err != nil {
		return err
	}
	kind, err := state.FileSystem()
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
