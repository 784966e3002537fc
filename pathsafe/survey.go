// This file is law: which existing entries block a target, and which links are allowed on the path
// to one.

package pathsafe

import (
	"errors"
	"fmt"
	"io/fs"
)

// TargetState describes the path of a target.
type TargetState struct {
	// Exists: the path exists, also as a link of any kind, or one of its parents exists and is not
	// a directory.
	Exists bool
	// Missing is the index of the first component that does not exist yet. It is undefined if
	// Exists is true.
	Missing int
}

// Survey returns the state of p beneath d. Symbolic links are followed as long as every step stays
// beneath d; it returns ErrEscape for one that leaves it, also as the last component, and
// ErrCrossesMount for a parent on another mount or subvolume.
func (d *Dir) Survey(p Path) (TargetState, error) {
	if err := p.checkLength(); err != nil {
		return TargetState{}, d.wrap("survey", p.s, err)
	}
	for n := 1; ; n++ {
		rel, _ := p.prefix(n)
		last := len(rel) == len(p.s)
		target, found, err := d.surveyStep(rel, last)
		if err != nil {
			return TargetState{}, d.wrap("survey", p.s, err)
		}
		if found {
			target.Missing = n - 1
			return target, nil
		}
	}
}

// surveyStep checks one prefix of a path. It returns found unless the prefix is a directory and not
// the whole path.
func (d *Dir) surveyStep(rel string, last bool) (target TargetState, found bool, err error) {
	st, err := d.statRel(rel)
	switch {
	case err == nil:
		here := last || !st.Mode.IsDir()
		return TargetState{Exists: here}, here, nil
	case errors.Is(err, fs.ErrNotExist):
		taken, err := d.taken(rel)
		return TargetState{Exists: taken}, err == nil, err
	case errors.Is(err, ErrCrossesMount) && last:
		return TargetState{Exists: true}, true, nil
	}
	return TargetState{}, false, err
}

func (d *Dir) statRel(rel string) (Stat, error) {
	fd, st, err := d.openPath(rel, LinksBeneath)
	if err != nil {
		return Stat{}, err
	}
	closeFd(fd)
	return st, nil
}

// taken reports whether a name that leads nowhere exists, as a dangling link.
func (d *Dir) taken(rel string) (bool, error) {
	parent, base := d, rel
	p := Path{rel}
	if up, ok := p.Parent(); ok {
		fd, err := d.walk(up.s, openDirectory, LinksBeneath)
		if err != nil {
			return false, err
		}
		parent = newDir(fd, up.s, d.w)
		defer parent.Close()
		base = p.Base()
	}
	_, err := statName(parent.Fd(), base)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// OpenParent opens the directory of the first n components of p, or d itself for 0. Links are
// followed beneath d only. The caller closes the handle.
func (d *Dir) OpenParent(p Path, n int) (*Dir, error) {
	if n == 0 {
		return d.Reopen()
	}
	rel, ok := p.prefix(n)
	if !ok {
		return nil, d.wrap("open directory", p.s, fmt.Errorf("it has no %d components", n))
	}
	if err := (Path{rel}).checkLength(); err != nil {
		return nil, d.wrap("open directory", rel, err)
	}
	fd, err := d.walk(rel, openDirectory, LinksBeneath)
	if err != nil {
		return nil, d.wrap("open directory", rel, err)
	}
	return newDir(fd, rel, d.w), nil
}
