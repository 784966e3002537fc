package staging

import (
	"errors"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// Another user who has a directory in the root can mount something there at any moment: over
// names that were swapped, or on one of them. What goes forward never enters that, and fails. An
// undo, and the removal of what is left, must not fail for it.

// isMount reports whether an error is that a mount is in the way.
func isMount(err error) bool { return errors.Is(err, pathsafe.ErrCrossesMount) }

// despiteMounts does something that can be done again. Where a mount is in the way it does it
// once more in the root as it is without mounts, if this user may look at that: only root may.
func (a *attempt) despiteMounts(do func() error) error {
	err := do()
	if isMount(err) && a.leaveMounts() == nil {
		err = do()
	}
	return err
}

// leaveMounts opens the root without mounts, and in it again what was open in the root.
func (a *attempt) leaveMounts() error {
	if a.free.h != nil {
		return pathsafe.ErrCrossesMount // it is a subvolume
	}
	free := dir{s: a.s}
	err := a.s.do("leave mounts", a.root.h.Name(), func() (err error) {
		free.h, err = a.root.h.WithoutMounts()
		return err
	})
	if err != nil {
		return err
	}
	var stage dir
	if a.stage.h != nil {
		if stage, err = free.enter(a.stageName); err != nil {
			free.close()
			return err
		}
	}
	a.free, a.session, a.held = free, a.root, a.stage
	a.root, a.stage = free, stage
	for _, d := range []*dir{&a.news, &a.olds, &a.trash, &a.hold, &a.keeping} {
		d.close()
		*d = dir{}
	}
	return nil
}
