package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// A writer makes files and the directories on the way to them, in a directory of this user.
type writer struct {
	root *pathsafe.Dir
	near string        // the path of the directory that is held
	dir  *pathsafe.Dir // nil without
}

// Close closes the directory that is held.
func (w *writer) Close() {
	if w.dir != nil {
		w.dir.Close()
		w.dir = nil
	}
}

func (w *writer) create(ctx context.Context, p pathsafe.Path, perm uint32) (*os.File, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	above, ok := p.Parent()
	if !ok {
		return w.root.Create(p.Base(), perm)
	}
	if w.dir == nil || w.near != above.String() {
		w.Close()
		dir, err := makeAll(ctx, w.root, above.Components())
		if err != nil {
			return nil, err
		}
		w.dir, w.near = dir, above.String()
	}
	return w.dir.Create(p.Base(), perm)
}

// makeAll makes the directories of a path that are missing, and opens the last.
func makeAll(ctx context.Context, root *pathsafe.Dir, names []string) (*pathsafe.Dir, error) {
	dir, err := root.Reopen()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if ctx.Err() != nil {
			dir.Close()
			return nil, context.Cause(ctx)
		}
		if err := dir.Mkdir(name, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
			dir.Close()
			return nil, err
		}
		sub, err := dir.OpenDir(name)
		dir.Close()
		if err != nil {
			return nil, err
		}
		dir = sub
	}
	return dir, nil
}

// A run can have outputs in this many directories for each output, and in this many more: so that a few
// bytes, such as those of long paths, make no million directories. No run of a push is near it.
const (
	dirsPerOutput = 4
	spareDirs     = 100_000
)

// checkDirectories bounds the directories that the outputs of a run are in.
func checkDirectories(dirs, outputs int) error {
	if most := dirsPerOutput*outputs + spareDirs; dirs > most {
		return fmt.Errorf("its %d outputs are in %d directories; at most %d are made for them", outputs, dirs, most)
	}
	return nil
}

// directoriesOf is the number of the directories that some paths are in. The paths have the order of
// their bytes: what is in a directory comes together.
func directoriesOf(paths iter.Seq[pathsafe.Path]) int {
	n := 0
	var last []string
	for p := range paths {
		var dirs []string
		if above, ok := p.Parent(); ok {
			dirs = above.Components()
		}
		same := 0
		for same < min(len(dirs), len(last)) && dirs[same] == last[same] {
			same++
		}
		n += len(dirs) - same
		last = dirs
	}
	return n
}
