package rollback

import (
	"errors"
	"path"
	"strconv"
	"strings"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/snapshot"
)

// spot is where something of a snapshot was staged.
type spot struct {
	part int    // the number of its swap
	path string // in it; "" is all of it
}

// joinLinks makes names of one file that are in several parts of a snapshot names
// of one file again: each part was made by itself.
func (r *restoring) joinLinks(dir *pathsafe.Dir) error {
	first := map[string]spot{} // by the path of the first name in the snapshot
	for e, at := range r.staged {
		if e.Type == snapshot.Dir {
			continue
		}
		of := e.Hard
		if of == "" {
			of = e.Path
		}
		other, seen := first[of]
		switch {
		case !seen:
			first[of] = at
		case other.part != at.part:
			if err := relink(dir, other, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// staged visits all that was staged, in the order of the snapshot.
func (r *restoring) staged(yield func(snapshot.Entry, spot) bool) {
	parts := map[string]int{}
	for i, swap := range r.back.Exchange.Swaps {
		if swap.New {
			parts[r.paths[i].String()] = i
		}
	}
	top, part := "", -1
	for e := range r.target.Entries() { // what is in a directory follows it
		if i, is := parts[e.Path]; is {
			top, part = e.Path, i
		}
		rest, in := strings.CutPrefix(e.Path, top)
		if part < 0 || !in || rest != "" && rest[0] != '/' {
			continue
		}
		if !yield(e, spot{part, strings.TrimPrefix(rest, "/")}) {
			return
		}
	}
}

// relink makes what stands at a spot a name of what stands at another one. The
// directory that it is in stays as it was.
func relink(dir *pathsafe.Dir, from, to spot) error {
	old, oldName, err := from.open(dir)
	if err != nil {
		return err
	}
	defer old.Close()
	in, name, err := to.open(dir)
	if err != nil {
		return err
	}
	defer in.Close()
	was, err := in.Stat()
	if err == nil {
		err = in.Chmod(was.Perm | 0o700)
	}
	if err == nil {
		err = in.Unlink(name)
	}
	if err == nil {
		err = old.LinkName(oldName, in, name)
	}
	if err != nil {
		return err
	}
	return errors.Join(in.Chmod(was.Perm), in.SetModTime(was.ModTime))
}

// open opens the directory that a spot is in.
func (s spot) open(dir *pathsafe.Dir) (in *pathsafe.Dir, name string, err error) {
	full := path.Join(strconv.Itoa(s.part), s.path)
	in, err = dir.Reopen()
	for up, _ := path.Split(full); up != "" && err == nil; {
		var next string
		next, up, _ = strings.Cut(up, "/")
		above := in
		in, err = above.OpenDir(next)
		above.Close()
	}
	return in, path.Base(full), err
}
