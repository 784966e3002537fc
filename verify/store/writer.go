package store

import (
	"errors"
	"io/fs"
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

func (w *writer) create(p pathsafe.Path, perm uint32) (*os.File, error) {
	above, ok := p.Parent()
	if !ok {
		return w.root.Create(p.Base(), perm)
	}
	if w.dir == nil || w.near != above.String() {
		w.Close()
		dir, err := makeAll(w.root, above.Components())
		if err != nil {
			return nil, err
		}
		w.dir, w.near = dir, above.String()
	}
	return w.dir.Create(p.Base(), perm)
}

// makeAll makes the directories of a path that are missing, and opens the last.
func makeAll(root *pathsafe.Dir, names []string) (*pathsafe.Dir, error) {
	dir, err := root.Reopen()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
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
