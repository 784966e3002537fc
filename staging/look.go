package staging

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

// look compares the existing entries with the swaps.
func (a *attempt) look(c *Change) *Error {
	st, err := a.root.StatSelf()
	if err != nil {
		return fail(StepBegin, "", err)
	}
	a.mount = st.ID
	kind, err := a.root.H.FileSystem()
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
	a.lookAtTimes()
	return a.lookAtDirs(c)
}

// lookAtTimes records the times of the root, in which a commit makes its staging directory, and of
// the directories in which it changes names. Errors are left to later steps.
func (a *attempt) lookAtTimes() {
	if !a.isCommit() {
		return
	}
	var dirs []pathsafe.Path
	for i := range a.swaps {
		if up := parent(a.swaps[i].path); up != (pathsafe.Path{}) {
			dirs = append(dirs, up)
		}
	}
	for _, path := range deepestFirst(dirs) {
		if st, err := a.root.statBelow(path); err == nil && st.Mode.IsDir() {
			a.times = append(a.times, staying{path: path, self: identityOf(st), have: Metadata{ModTime: st.ModTime}})
		}
	}
	if st, err := a.root.StatSelf(); err == nil {
		a.times = append(a.times, staying{self: identityOf(st), have: Metadata{ModTime: st.ModTime}})
	}
}

func (a *attempt) lookAt(s *swapping) *Error {
	if !s.numbered() { // planFiles has
		return nil
	}
	path := s.path.String()
	in, err := a.root.open(parent(s.path))
	mayMiss := s.hasOld && !s.hasNew && !a.isCommit()
	if mayMiss && isOthers(err) {
		s.hasOld = false
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return fail(StepConflict, path, err)
	}
	if err != nil {
		return fail(StepBegin, path, err)
	}
	defer in.Close()
	above, err := in.StatSelf()
	if err != nil {
		return fail(StepBegin, path, err)
	}
	s.parent = identityOf(above)
	st, err := in.Stat(s.path.Base())
	switch {
	case errors.Is(err, fs.ErrNotExist) && a.isCommit():
		return fail(StepConflict, path, errMissing)
	case errors.Is(err, fs.ErrNotExist):
		s.hasOld = false
		return nil
	case err != nil:
		return fail(StepBegin, path, err)
	case !st.IsOn(a.mount):
		return fail(StepBegin, path, pathsafe.ErrCrossesMount)
	case !a.isCommit() && !(s.hasOld && s.empty && s.isLive(st)): // whatever it is, it makes way
		if s.hasOld {
			s.old, s.was = identityOf(*s.live), stateOf(*s.live)
		}
		return nil
	case !s.isLive(st):
		return fail(StepConflict, path, describeExisting(errOther, st))
	}
	s.old, s.was = identityOf(st), stateOf(st)
	if s.replaces() {
		has, denied, err := in.metadataOf(s.path.Base())
		if err != nil {
			return fail(StepBegin, path, err)
		}
		s.has, s.leftOut = &has, denied
	}
	if s.empty && a.layered {
		d, err := a.lookAtDir(s.path)
		if err != nil {
			return fail(StepBegin, path, err)
		}
		s.remake = &d.have
	}
	return nil
}

// describeExisting adds to an error a description of the existing entry and its owner.
func describeExisting(err error, st pathsafe.Stat) error {
	return fmt.Errorf("%w (%s of %s, last changed %s)", err, st.Mode, machine.UserText(int(st.UID)), st.ChangeTime.UTC().Format(time.RFC3339))
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
			a.swaps[i].parent = identity{}
		}
	}
}

// isLive reports whether st is still what the caller saw.
func (s *swapping) isLive(st pathsafe.Stat) bool {
	was := s.live
	same := was.ID.Dev == st.ID.Dev && identityOf(*was) == identityOf(st)
	return same && (!st.Mode.IsRegular() || was.Size == st.Size && was.ModTime.Equal(st.ModTime))
}

func (a *attempt) lookAtDirs(c *Change) *Error {
	var paths []pathsafe.Path
	get := map[pathsafe.Path]Metadata{}
	for _, s := range c.Swaps {
		if m, is := s.New.(*Metadata); is {
			paths = append(paths, s.Path)
			get[s.Path] = *m
		}
	}
	for _, path := range deepestFirst(paths) {
		d, err := a.lookAtDir(path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
			return fail(StepConflict, path.String(), both(errMissing, err))
		}
		if err != nil {
			return fail(StepBegin, path.String(), err)
		}
		d.get = get[path]
		a.dirs = append(a.dirs, d)
	}
	return nil
}

func (a *attempt) lookAtDir(path pathsafe.Path) (staying, error) {
	in, err := a.root.open(path)
	if err != nil {
		return staying{}, err
	}
	defer in.Close()
	st, err := in.StatSelf()
	if err != nil {
		return staying{}, err
	}
	xattrs, err := in.s.Xattrs(in.H.Node())
	return staying{path: path, self: identityOf(st), have: Metadata{st.Perm, st.UID, st.GID, xattrs, st.ModTime}}, err
}
