package staging

import (
	"errors"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// Another user with a directory in the root can mount something there at any moment: over
// swapped names, or on one of them. The forward steps never enter such a mount, and fail. An
// undo and a cleanup must not fail because of it.

// isMount reports whether an error is that a mount is in the way.
func isMount(err error) bool { return errors.Is(err, pathsafe.ErrCrossesMount) }

// despiteMounts runs a repeatable function. If a mount is in the way, it runs the function
// again in a view of the root without mounts, which only root may open.
func (a *attempt) despiteMounts(do func() error) error {
	err := do()
	if isMount(err) && a.leaveMounts() == nil {
		err = do()
	}
	return err
}

// leaveMounts opens the root without mounts, and reopens there what was open in the root.
func (a *attempt) leaveMounts() error {
	if a.free.H != nil {
		return pathsafe.ErrCrossesMount // it is a subvolume
	}
	var root *pathsafe.Dir
	err := a.s.Do("leave mounts", a.root.H.Name(), func() (err error) {
		root, err = a.root.H.WithoutMounts()
		return err
	})
	if err != nil {
		return err
	}
	free := on(root, a.s)
	var stage dir
	if a.stage.H != nil {
		if stage, err = free.enter(a.stageName); err != nil {
			free.Close()
			return err
		}
	}
	a.free, a.session, a.held = free, a.root, a.stage
	a.root, a.stage = free, stage
	for _, d := range []*dir{&a.news, &a.olds, &a.trash, &a.hold, &a.keeping} {
		d.Close()
		*d = dir{}
	}
	return nil
}
