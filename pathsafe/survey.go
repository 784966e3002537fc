// This file is law: which existing entries block a target, and which links are allowed on the path
// to one.

package pathsafe

import (
	"errors"
	"fmt"
	"io/fs"
)

// TargetState is what is at the path of a target.
type TargetState struct {
	// Exists: something stands at the path itself, a link of any kind
	// included, or one of its parents exists and is not a directory.
	Exists bool
	// Missing is the index of the first component that does not exist yet: the
	// top of what would be new. It says nothing when Exists.
	Missing int
}

// Survey returns the place of p beneath d. Symbolic links are followed as long as every step
// stays beneath d; one that leaves it, also as the last component, is ErrEscape. A parent on
// another mount or subvolume is ErrCrossesMount.
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

// surveyStep looks at one prefix of a path. It has found out unless the prefix
// is a directory with more to come.
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

// taken reports whether a name that leads nowhere exists all the same, as a dangling link.
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

// OpenParent opens the directory made of the first n components of p, none for
// d itself; links are followed beneath d only. The handle is the caller's to
// close.
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
