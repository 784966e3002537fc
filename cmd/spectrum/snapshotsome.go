package main

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/snapshot"
)

// pathsIn are arguments as paths beneath the restore root of a snapshot; nil for none.
func pathsIn(found *snapshot.Snapshot, args []string) ([]pathsafe.Path, error) {
	var paths []pathsafe.Path
	for _, arg := range args {
		if isRootOf(found, arg) {
			continue
		}
		name := path.Clean(arg)
		if filepath.IsAbs(arg) {
			root := strings.TrimSuffix(found.Header().Root, "/") + "/"
			if name = filepath.Clean(arg); !strings.HasPrefix(name, root) {
				return nil, refusedHint(fmt.Errorf("%q is not in the restore root %q of the snapshot", arg, found.Header().Root), pathHint)
			}
			name = strings.TrimPrefix(name, root)
		}
		p, err := pathsafe.Found(name)
		if err != nil {
			return nil, refusedHint(fmt.Errorf("path %q: %w", arg, err), pathHint)
		}
		paths = append(paths, p)
	}
	return paths, nil
}

// isRootOf reports whether an argument is the restore root of the snapshot, and no path in it.
func isRootOf(found *snapshot.Snapshot, arg string) bool {
	abs, err := filepath.Abs(arg)
	if err != nil || abs != found.Header().Root {
		return false
	}
	return filepath.IsAbs(arg) || len(found.Tree(path.Clean(arg))) == 0
}

const pathHint = "name a path beneath the restore root, such as plan/week.md"

// notInSnapshot adds a hint to the error of a path that the snapshot does not have.
func notInSnapshot(found *snapshot.Snapshot, err error) error {
	return hinted(err, notInSnapshotHint(err, found.ID()))
}

// writeTo writes a snapshot, or some paths of it, to a directory that must not exist.
func (s *snapshotCommand) writeTo(ctx context.Context, args []string, opts snapshotRestoreOptions) error {
	found, err := s.findFor(ctx, args[0], opts.without)
	if err != nil {
		return err
	}
	paths, err := pathsIn(found, args[1:])
	if err != nil {
		return err
	}
	if len(paths) > 0 {
		chosen, err := action.Chosen(found, paths)
		if err != nil {
			return notInSnapshot(found, err)
		}
		found = found.Only(chosen)
	}
	found, adopted := adopt(found)
	rights := rightsIn(found)
	rights.tell(s.app, false)
	dir, err := s.intoBox(found, opts.to, func(b *box, tree, dir string) error {
		return b.told(s.store.WriteHeld(ctx, found, b.dir, tree), tree, dir)
	})
	if err != nil {
		if path, unknown := s.state.RootPath(found.Header().Root); unknown == nil {
			err = withNextSteps(ctx, s.store, found, path, opts.to, err)
		}
		return err
	}
	for e := range found.Entries() {
		if e.Type == snapshot.Lost {
			s.tell("spectrum: %s is not written: %s", shellQuote(e.Path), e.Type.Unkept())
		}
	}
	s.tellAdopted(adopted)
	rights.tell(s.app, true)
	h := found.Header()
	s.say("wrote %s, %s, of snapshot %s; the restore root was not touched", numberOf(h.Files, "file"), bytesText(h.Bytes), h.ID[:shortest])
	fields := map[string]any{
		"adopted": jsonTexts(adopted), "bytes": h.Bytes, "code": "OK", "files": h.Files, "ok": true, "snapshot": h.ID, "to": jsonText(dir),
	}
	rights.addTo(fields)
	return s.result(dir, fields)
}
