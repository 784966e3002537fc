package staging

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// makeNew has what comes made, and makes it durable.
func (a *attempt) makeNew(ctx context.Context) *Error {
	if err := ctx.Err(); err != nil {
		return fail(StepStage, "", err)
	}
	comes := 0
	for i := range a.swaps {
		if a.swaps[i].comes {
			comes++
		}
	}
	if comes == 0 {
		return nil
	}
	if err := a.s.do("stage", a.stageName, func() error { return a.e.Stage(ctx, a.news.h) }); err != nil {
		return fail(StepStage, "", err)
	}
	names, err := a.news.names()
	if err == nil && len(names) != comes {
		err = fmt.Errorf("%d things were made, and %d are to come", len(names), comes)
	}
	if err == nil {
		err = a.root.syncFS()
	}
	return fail(StepStage, "", err)
}

// prepare records what has been made, and so allows the first move.
func (a *attempt) prepare(ctx context.Context) *Error {
	for i := range a.swaps {
		s := &a.swaps[i]
		if !s.comes {
			continue
		}
		name := strconv.Itoa(i)
		st, err := a.news.stat(name)
		if err == nil {
			s.fresh, s.made = beingOf(st), &st
			s.print, err = fingerprint(a.news, name)
		}
		if err != nil {
			return fail(StepStage, s.path.String(), err)
		}
	}
	if err := a.enterPrepared(); err != nil {
		return fail(StepStage, a.stageName, err)
	}
	return fail(StepStage, "", ctx.Err())
}

// openDirs lets their owner into the directories that stay, from the top.
func (a *attempt) openDirs(context.Context) *Error {
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

// swapAll makes all swaps, durably, but for what comes last. What leaves first has left
// durably before anything else moves.
func (a *attempt) swapAll(context.Context) *Error {
	for _, last := range []bool{true, false} {
		moved := false
		for i := range a.swaps {
			if a.swaps[i].last != last {
				continue
			}
			moved = moved || a.swaps[i].goes
			if err := a.swap(i); err != nil {
				return fail(StepFinalize, a.swaps[i].path.String(), err)
			}
		}
		if last && moved {
			if err := a.syncMoves(a.news, a.olds, func(s *swapping) bool { return s.last }); err != nil {
				return fail(StepFinalize, "", err)
			}
		}
	}
	return fail(StepFinalize, "", a.syncMoves(a.news, a.olds, nil))
}

// swap makes one swap. What is taken away is looked at again where nobody else
// comes: between the first look and now the name could have come to mean
// something else. Whatever it is, an undo puts it back.
func (a *attempt) swap(i int) error {
	s, name := &a.swaps[i], strconv.Itoa(i)
	if !s.goes && !s.comes {
		return nil
	}
	in, err := a.parentDir(s)
	if errors.Is(err, fs.ErrNotExist) && !s.comes {
		s.goes = false
		return nil
	}
	if err != nil {
		return err
	}
	defer in.close()
	if s.goes && s.remake != nil {
		return a.removeInPlace(s, in, name)
	}
	if s.goes && s.comes && !s.last {
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
	if s.comes && !s.last {
		return a.news.shift(name, in, s.path.Base())
	}
	return nil
}

// removeInPlace removes an empty directory that is the one that was looked at: in a lower layer
// of an overlay it cannot be moved.
func (a *attempt) removeInPlace(s *swapping, in dir, name string) error {
	err := a.provenOld(s, in, s.path.Base())
	if errors.Is(err, fs.ErrNotExist) && !s.comes {
		s.goes = false
		return nil
	}
	if err == nil {
		err = in.rmdir(s.path.Base())
	}
	if err == nil && s.comes {
		err = a.news.shift(name, in, s.path.Base())
	}
	return err
}

// placeLast gives what comes last its names, in order, durably. What has left staging was
// placed before a crash; what became of it since is not looked at.
func (a *attempt) placeLast(context.Context) *Error {
	placed := false
	if a.news.h == nil { // it was removed when all had left it
		return nil
	}
	for i := range a.swaps {
		s, name := &a.swaps[i], strconv.Itoa(i)
		if !s.last || !s.comes {
			continue
		}
		in, err := a.parentDir(s)
		if err != nil {
			return fail(StepPublish, s.path.String(), err)
		}
		err = a.news.shift(name, in, s.path.Base())
		if a.revived && errors.Is(err, fs.ErrExist) { // the crash may have brought the old name back
			if st, statErr := in.stat(s.path.Base()); statErr == nil && s.fresh.is(st) && !st.Mode.IsDir() {
				err = a.news.unlink(name)
			}
		}
		in.close()
		if err != nil && !(a.revived && errors.Is(err, fs.ErrNotExist)) {
			return fail(StepPublish, s.path.String(), err)
		}
		placed = true
	}
	if !placed {
		return nil
	}
	return fail(StepPublish, "", a.syncMoves(a.news, a.olds, func(s *swapping) bool { return s.last }))
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
	if s.remake != nil && in == a.olds && errors.Is(err, fs.ErrNotExist) {
		return nil // it was removed in place
	}
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

// syncMoves makes moves durable, of these swaps or of all: first the directory in staging that
// things have left, then those beneath the base, then the one in staging that got things.
func (a *attempt) syncMoves(left, entered dir, of func(s *swapping) bool) error {
	var homes []pathsafe.Path
	covered := false
	for i := range a.swaps {
		if s := &a.swaps[i]; (s.goes || s.comes) && (of == nil || of(s)) {
			homes = append(homes, parent(s.path))
			covered = covered || s.covered
		}
	}
	homes = deepestFirst(homes)
	if covered || len(homes) > few { // some of them may be in staging by now
		return errors.Join(a.root.syncFS(), a.stage.sync())
	}
	if err := left.sync(); err != nil {
		return err
	}
	if err := syncDirs(homes, a.root); err != nil {
		return err
	}
	return entered.sync()
}

// check looks at every name once more, and at everything that went.
func (a *attempt) check(context.Context) *Error {
	for i := range a.swaps {
		s := &a.swaps[i]
		if err := a.checkOne(s, strconv.Itoa(i)); err != nil {
			return fail(StepVerify, s.path.String(), err)
		}
	}
	return nil
}

func (a *attempt) checkOne(s *swapping, name string) error {
	if s.goes {
		if err := a.provenOld(s, a.olds, name); err != nil {
			return err
		}
	}
	if s.covered || !s.goes && !s.comes {
		return nil
	}
	in, err := a.parentDir(s)
	if err != nil {
		return err
	}
	defer in.close()
	st, err := in.stat(s.path.Base())
	switch {
	case s.last && s.comes && errors.Is(err, fs.ErrNotExist): // it is placed when all is recorded
		return nil
	case s.last && s.comes && err == nil:
		return errTaken
	case !s.comes && (err == nil || errors.Is(err, fs.ErrNotExist)): // what came since is others'
		return nil
	case err != nil:
		return err
	case !s.fresh.is(st):
		return errReplaced
	}
	return nil
}

// settle asks the caller.
func (a *attempt) settle(ctx context.Context) *Error {
	if a.e.Settled == nil {
		return nil
	}
	err := a.s.do("settle", a.stageName, func() error { return a.e.Settled(ctx, a.olds.h) })
	return fail(StepVerify, "", err)
}

// commit records that all is done: from here on it goes forward.
func (a *attempt) commit(context.Context) *Error {
	return fail(StepPublish, a.stageName, a.enterCommitted())
}
