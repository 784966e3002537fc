package staging

import (
	"errors"
	"io/fs"

	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

// look is the first step: it writes nothing.
func (a *attempt) look() *Error {
	st, err := a.root.statSelf()
	if err != nil {
		return fail(StepBegin, "", err)
	}
	a.mount = st.ID
	for i := range a.swaps {
		if err := a.lookAt(&a.swaps[i]); err != nil {
			return err
		}
	}
	return a.lookAtDirs()
}

func (a *attempt) lookAt(s *swapping) *Error {
	path := s.path.String()
	in, err := a.root.open(parent(s.path))
	if errors.Is(err, fs.ErrNotExist) && s.goes && !s.comes {
		s.goes = false
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return fail(StepConflict, path, err)
	}
	if err != nil {
		return fail(StepBegin, path, err)
	}
	defer in.close()
	above, err := in.statSelf()
	if err != nil {
		return fail(StepBegin, path, err)
	}
	s.parent = beingOf(above)
	st, err := in.stat(s.path.Base())
	switch {
	case errors.Is(err, fs.ErrNotExist) && s.goes && !s.comes:
		s.goes = false
		return nil
	case errors.Is(err, fs.ErrNotExist) && s.goes:
		return fail(StepConflict, path, errMissing)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fail(StepBegin, path, err)
	case !s.goes:
		return fail(StepConflict, path, errTaken)
	case !s.isLive(st):
		return fail(StepConflict, path, errOther)
	case !st.IsOn(a.mount):
		return fail(StepBegin, path, pathsafe.ErrCrossesMount)
	}
	s.old, s.mode = beingOf(st), st.Perm
	return nil
}

// isLive tells whether st is still what the caller saw.
func (s *swapping) isLive(st pathsafe.Stat) bool {
	was := s.live
	same := was.ID.Dev == st.ID.Dev && beingOf(*was) == beingOf(st)
	return same && (!st.Mode.IsRegular() || was.Size == st.Size && was.ModTime.Equal(st.ModTime))
}

func (a *attempt) lookAtDirs() *Error {
	paths := make([]pathsafe.Path, 0, len(a.e.Dirs))
	get := map[pathsafe.Path]meta{}
	for _, d := range a.e.Dirs {
		paths = append(paths, d.Path)
		get[d.Path] = meta{d.Mode, d.UID, d.GID, d.Xattrs, d.ModTime}
	}
	for i, path := range deepestFirst(paths) {
		d, err := a.lookAtDir(path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
			return fail(StepConflict, path.String(), both(errMissing, err))
		}
		if err != nil {
			return fail(StepBegin, path.String(), err)
		}
		d.get = get[path]
		a.dirs[i] = d
	}
	return nil
}

func (a *attempt) lookAtDir(path pathsafe.Path) (staying, error) {
	in, err := a.root.open(path)
	if err != nil {
		return staying{}, err
	}
	defer in.close()
	st, err := in.statSelf()
	if err != nil {
		return staying{}, err
	}
	xattrs, err := in.xattrs()
	return staying{path: path, self: beingOf(st), have: meta{st.Perm, st.UID, st.GID, xattrs, st.ModTime}}, err
}
