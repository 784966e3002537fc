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
	kind, err := a.root.h.FileSystem()
	if err != nil {
		return fail(StepBegin, "", err)
	}
	a.layered = kind == unix.OVERLAYFS_SUPER_MAGIC
	for i := range a.swaps {
		if err := a.lookAt(&a.swaps[i]); err != nil {
			return err
		}
	}
	a.lookAtRemade()
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
	if s.empty && a.layered {
		d, err := a.lookAtDir(s.path)
		if err != nil {
			return fail(StepBegin, path, err)
		}
		s.remake = &d.have
	}
	return nil
}

// lookAtRemade forgets the identity of directories that an undo may make again.
func (a *attempt) lookAtRemade() {
	remade := map[pathsafe.Path]bool{}
	for i := range a.swaps {
		if a.swaps[i].remake != nil {
			remade[a.swaps[i].path] = true
		}
	}
	for i := range a.swaps {
		if remade[parent(a.swaps[i].path)] {
			a.swaps[i].parent = being{}
		}
	}
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
