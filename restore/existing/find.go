package existing

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// Obstacle is a name that keeps a file from being put at a path: the path itself,
// or one of its parents that is not a directory to go on through.
type Obstacle struct {
	Path string // beneath the root
	Kind string // what it is, in words: "a symbolic link"
}

// Find finds the first name on the way to a path that cannot be traversed,
// or else what stands at the path itself. The zero Obstacle means that there is
// none: the path is free.
func Find(root *pathsafe.Dir, p pathsafe.Path) (Obstacle, error) {
	st, err := root.Stat()
	if err != nil {
		return Obstacle{}, err
	}
	top := st.ID
	var last Obstacle
	for n, name := range p.Components() {
		dir, err := root.OpenParent(p, n)
		if last.Path != "" && isRefusal(err) {
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

// kindOf says in words what a name is, beneath a root with the ID top.
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
