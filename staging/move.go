package staging

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// openDirs lets their owner into the directories that stay, from the top.
func (a *attempt) openDirs() *Error {
	for i := range slices.Backward(a.dirs) {
		d := &a.dirs[i]
		if d.openMode() == d.have.mode {
			continue
		}
		d.touched = true
		err := a.touch(d, func(in dir) error { return in.giveMode(d.openMode()) })
		if err != nil {
			return fail(StepFinalize, d.path.String(), err)
		}
	}
	return nil
}

// openMode is the mode that a directory has while names in it are swapped.
func (d *staying) openMode() uint32 {
	if int(d.have.uid) != os.Geteuid() {
		return d.have.mode
	}
	return d.have.mode | 0o300
}

// moveTops moves each top of the plan to its place, never over anything, and
// then makes the directories it moved into durable. The directory that it moves into
// has to give to what is made in it what it gave when that was staged; of several tops
// in a row it is asked once.
func (a *attempt) moveTops() *Error {
	if len(a.plan.files) == 0 {
		return nil
	}
	from, to := cache{base: a.news}, cache{base: a.root}
	defer from.close()
	defer to.close()
	var parentDirs []pathsafe.Path
	for i := range a.swaps {
		s := &a.swaps[i]
		if s.since != phasePrepared || s.numbered() {
			continue
		}
		up := parent(s.path)
		source, err := from.open(up)
		var target dir
		if err == nil {
			target, err = to.open(up)
		}
		if err == nil && up != (pathsafe.Path{}) && (len(parentDirs) == 0 || parentDirs[len(parentDirs)-1] != up) {
			err = a.bequeathsStill(up, target)
		}
		if err == nil {
			parentDirs = append(parentDirs, up)
			err = source.rename(s.path.Base(), target, s.path.Base())
		}
		if err != nil {
			return fail(StepFinalize, s.path.String(), err)
		}
	}
	// First the directories that were left, then those that were entered: the other way
	// round btrfs may come back from a power cut with a file under both names.
	return fail(StepFinalize, "", syncDirs(parentDirs, a.news, a.root))
}

func (a *attempt) bequeathsStill(up pathsafe.Path, in dir) error {
	now, err := in.access()
	if err != nil {
		return err
	}
	d, ok := a.plan.find(up)
	if ok && !now.Value().Bequeaths(a.plan.dirs[d].created.access.Value()) {
		return fmt.Errorf("the directory that it goes to: %w", errAccess)
	}
	return nil
}

// swapAll makes all swaps, durably.
func (a *attempt) swapAll() *Error {
	for i := range a.swaps {
		if s := &a.swaps[i]; s.numbered() {
			if err := a.swap(s); err != nil {
				return fail(StepFinalize, s.path.String(), err)
			}
		}
	}
	return fail(StepFinalize, "", a.syncMoves(a.news, a.olds))
}

// swap makes one swap. What is taken away is looked at again where nobody else
// comes: between the first look and now the name could have come to mean
// something else. Whatever it is, an undo puts it back.
func (a *attempt) swap(s *swapping) error {
	name := s.name
	in, err := a.parentDir(s)
	if errors.Is(err, fs.ErrNotExist) && !s.comes {
		s.goes = false
		return nil
	}
	if err != nil {
		return err
	}
	defer in.close()
	if s.goes && s.comes {
		err := in.exchange(s.path.Base(), a.news, name)
		if err == nil {
			return a.takeOut(s, name)
		}
		if !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
	}
	if s.goes {
		err := in.shift(s.path.Base(), a.olds, name)
		if errors.Is(err, fs.ErrNotExist) && !s.comes {
			s.goes = false
			return nil
		}
		if err != nil {
			return err
		}
		if err := a.provenOld(s, a.olds, name); err != nil {
			return err
		}
	}
	if s.comes {
		return a.news.shift(name, in, s.path.Base())
	}
	return nil
}

// takeOut puts what came out of an exchange where it belongs.
func (a *attempt) takeOut(s *swapping, name string) error {
	if err := a.provenOld(s, a.news, name); err != nil {
		return err
	}
	return a.news.shift(name, a.olds, name)
}

// provenOld wants what was taken away to be what was to go.
func (a *attempt) provenOld(s *swapping, in dir, name string) error {
	st, err := in.stat(name)
	if err != nil {
		return err
	}
	if !s.isLive(st) {
		return errOther
	}
	if !s.empty {
		return nil
	}
	sub, err := in.enter(name)
	if err != nil {
		return err
	}
	defer sub.close()
	names, err := sub.names()
	if err == nil && len(names) > 0 {
		err = fmt.Errorf("%w: %d things are in it, like %q", errNotEmpty, len(names), names[0])
	}
	return err
}

// syncMoves makes moves durable: first the directory in staging that things have
// left, then those beneath the base, then the one in staging that got things.
func (a *attempt) syncMoves(left, entered dir) error {
	var parentDirs []pathsafe.Path
	covered := false
	for i := range a.swaps {
		if s := &a.swaps[i]; s.numbered() {
			parentDirs = append(parentDirs, parent(s.path))
			covered = covered || s.covered
		}
	}
	if len(parentDirs) == 0 {
		return nil
	}
	parentDirs = deepestFirst(parentDirs)
	if covered || len(parentDirs) > few { // some of them may be in staging by now
		return errors.Join(a.root.syncFS(), a.stage.sync())
	}
	if err := left.sync(); err != nil {
		return err
	}
	if err := syncDirs(parentDirs, a.root); err != nil {
		return err
	}
	return entered.sync()
}

// check looks at every name once more, and at everything that went.
func (a *attempt) check() *Error {
	for i := range a.swaps {
		if s := &a.swaps[i]; s.numbered() {
			if err := a.checkOne(s); err != nil {
				return fail(StepVerify, s.path.String(), err)
			}
		}
	}
	return nil
}

func (a *attempt) checkOne(s *swapping) error {
	if s.goes {
		if err := a.provenOld(s, a.olds, s.name); err != nil {
			return err
		}
	}
	if s.covered {
		return nil
	}
	in, err := a.parentDir(s)
	if err != nil {
		return err
	}
	defer in.close()
	st, err := in.stat(s.path.Base())
	switch {
	case !s.comes && (err == nil || errors.Is(err, fs.ErrNotExist)): // what came since is others'
		return nil
	case err != nil:
		return err
	case !s.fresh.is(st):
		return errReplaced
	}
	return nil
}
