package existing

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// Obstacle is an entry that prevents the creation of a file at a path: the path itself, or a parent that is
// not a directory on the same file system.
type Obstacle struct {
	Path string // beneath the root
	Kind string // the type in words, like "a symbolic link"
}

// Find returns the first name on the way to a path that cannot be traversed, or else the entry at the path.
// The zero Obstacle means that the path is free.
func Find(root *pathsafe.Dir, p pathsafe.Path) (Obstacle, error) {
	st, err := root.Stat()
	if err != nil {
		return Obstacle{}, err
	}
	top := st.ID
	var last Obstacle
	for n, name := range p.Components() {
		dir, err := root.OpenParent(p, n)
		if last.Path != "" && isRejection(err) {
			return last, nil
		}
		if err != nil {
			return Obstacle{}, err
		}
		st, err := dir.Lstat(name)
		dir.Close()
		if errors.Is(err, fs.ErrNotExist) {
			return Obstacle{}, nil
		}
		if err != nil {
			return Obstacle{}, err
		}
		last = Obstacle{strings.Join(p.Components()[:n+1], "/"), kindOf(st, top)}
	}
	return last, nil
}

// kindOf returns the type of an entry in words, beneath a root with the ID top.
func kindOf(st pathsafe.Stat, top pathsafe.ID) string {
	switch kind := st.Mode.Type(); {
	case !st.IsOn(top):
		return "another mount or subvolume"
	case kind == 0:
		return "a regular file"
	case kind == fs.ModeDir:
		return "a directory"
	case kind == fs.ModeSymlink:
		return "a symbolic link"
	case kind == fs.ModeNamedPipe:
		return "a FIFO"
	case kind == fs.ModeSocket:
		return "a socket"
	default:
		return "a device"
	}
}
