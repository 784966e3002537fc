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

// run is what follows, each step with its own sync point at its end.
func (t *trade) run(ctx context.Context) *Error {
	for _, step := range []func(context.Context) *Error{
		t.open,
		t.makeNew,
		t.prepare,
		t.openDirs,
		t.swapAll, // the first move
		t.setDirs,
		t.check,
		t.settle,
		t.commit,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// open makes the staging directory and in it the journal's INTENT, durably; then
// the directories for what comes and goes.
func (t *trade) open(context.Context) *Error {
	if err := t.makeStage(); err != nil {
		return fail(StepStage, t.stageName, err)
	}
	if err := t.base.sync(); err != nil {
		return fail(StepStage, t.stageName, err)
	}
	for _, name := range partNames {
		if err := t.stage.mkdirOwn(name); err != nil {
			return fail(StepStage, t.stageName, err)
		}
	}
	return fail(StepStage, t.stageName, t.openParts())
}

func (t *trade) makeStage() error {
	if err := makeDir(t.base, t.stageName, ownDir, &t.stageMark); err != nil {
		return err
	}
	stage, err := t.base.enter(t.stageName)
	if err != nil {
		return err
	}
	if err := checkStage(stage, &t.stageMark); err != nil {
		stage.close()
		return err
	}
	t.stage = stage
	return t.enterIntent()
}

// openParts opens the directories in staging, as far as they are there.
func (t *trade) openParts() error {
	parts := []*dir{&t.news, &t.olds, &t.trash}
	for i, name := range partNames {
		if parts[i].h != nil {
			continue
		}
		d, err := t.stage.enter(name)
		if gone(err) != nil {
			return err
		}
		if err == nil {
			*parts[i] = d
		}
	}
	return nil
}

// allParts is openParts for a journal that has a use for all of them: one that
// others removed, or that an end removed which was killed then, is made again.
func (t *trade) allParts() error {
	if err := t.openParts(); err != nil {
		return err
	}
	for i, d := range []dir{t.news, t.olds, t.trash} {
		if d.h != nil {
			continue
		}
		if err := t.stage.mkdirOwn(partNames[i]); err != nil {
			return err
		}
	}
	return t.openParts()
}

// makeNew has what comes made, and makes it durable.
func (t *trade) makeNew(ctx context.Context) *Error {
	if err := ctx.Err(); err != nil {
		return fail(StepStage, "", err)
	}
	comes := 0
	for i := range t.swaps {
		if t.swaps[i].comes {
			comes++
		}
	}
	if comes == 0 {
		return nil
	}
	if err := t.s.do("stage", t.stageName, func() error { return t.e.Stage(ctx, t.news.h) }); err != nil {
		return fail(StepStage, "", err)
	}
	names, err := t.news.names()
	if err == nil && len(names) != comes {
		err = fmt.Errorf("%d things were made, and %d are to come", len(names), comes)
	}
	if err == nil {
		err = t.base.syncFS()
	}
	return fail(StepStage, "", err)
}

// prepare records what has been made, and so allows the first move.
func (t *trade) prepare(ctx context.Context) *Error {
	for i := range t.swaps {
		s := &t.swaps[i]
		if !s.comes {
			continue
		}
		name := strconv.Itoa(i)
		st, err := t.news.stat(name)
		if err == nil {
			s.fresh, s.made = beingOf(st), &st
			s.print, err = fingerprint(t.news, name)
		}
		if err != nil {
			return fail(StepStage, s.path.String(), err)
		}
	}
	if err := t.enterPrepared(); err != nil {
		return fail(StepStage, t.stageName, err)
	}
	return fail(StepStage, "", ctx.Err())
}

// openDirs lets their owner into the directories that stay, from the top.
func (t *trade) openDirs(context.Context) *Error {
	for i := range slices.Backward(t.dirs) {
		d := &t.dirs[i]
		if d.openMode() == d.have.mode {
			continue
		}
		d.touched = true
		err := t.touch(d, func(in dir) error { return in.giveMode(d.openMode()) })
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

// swapAll makes all swaps, durably.
func (t *trade) swapAll(context.Context) *Error {
	for i := range t.swaps {
		if err := t.swap(i); err != nil {
			return fail(StepFinalize, t.swaps[i].path.String(), err)
		}
	}
	return fail(StepFinalize, "", t.syncMoves(t.news, t.olds))
}

// swap makes one swap. What is taken away is looked at again where nobody else
// comes: between the first look and now the name could have come to mean
// something else. Whatever it is, an undo puts it back.
func (t *trade) swap(i int) error {
	s, name := &t.swaps[i], strconv.Itoa(i)
	if !s.goes && !s.comes {
		return nil
	}
	in, err := t.home(s)
	if errors.Is(err, fs.ErrNotExist) && !s.comes {
		s.goes = false
		return nil
	}
	if err != nil {
		return err
	}
	defer in.close()
	if s.goes && s.comes {
		err := in.exchange(s.path.Base(), t.news, name)
		if err == nil {
			return t.takeOut(s, name)
		}
		if !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
	}
	if s.goes {
		err := in.shift(s.path.Base(), t.olds, name)
		if errors.Is(err, fs.ErrNotExist) && !s.comes {
			s.goes = false
			return nil
		}
		if err != nil {
			return err
		}
		if err := t.provenOld(s, t.olds, name); err != nil {
			return err
		}
	}
	if s.comes {
		return t.news.shift(name, in, s.path.Base())
	}
	return nil
}

// takeOut puts what came out of an exchange where it belongs.
func (t *trade) takeOut(s *swapping, name string) error {
	if err := t.provenOld(s, t.news, name); err != nil {
		return err
	}
	return t.news.shift(name, t.olds, name)
}

// provenOld wants what was taken away to be what was to go.
func (t *trade) provenOld(s *swapping, in dir, name string) error {
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

// home opens the directory of a swap's name, which has to be the one that was
// looked at.
func (t *trade) home(s *swapping) (dir, error) {
	in, err := t.base.open(parent(s.path))
	if err != nil {
		return dir{}, err
	}
	st, err := in.statSelf()
	if err == nil && !s.parent.is(st) {
		err = fmt.Errorf("the directory that it is in: %w", errReplaced)
	}
	if err != nil {
		in.close()
		return dir{}, err
	}
	return in, nil
}

// syncMoves makes moves durable: first the directory in staging that things have
// left, then those beneath the base, then the one in staging that got things.
func (t *trade) syncMoves(left, entered dir) error {
	var homes []pathsafe.Path
	covered := false
	for i := range t.swaps {
		if s := &t.swaps[i]; s.goes || s.comes {
			homes = append(homes, parent(s.path))
			covered = covered || s.covered
		}
	}
	homes = deepestFirst(homes)
	if covered || len(homes) > few { // some of them may be in staging by now
		return errors.Join(t.base.syncFS(), t.stage.sync())
	}
	if err := left.sync(); err != nil {
		return err
	}
	if err := syncDirs(homes, t.base); err != nil {
		return err
	}
	return entered.sync()
}

// check looks at every name once more, and at everything that went.
func (t *trade) check(context.Context) *Error {
	for i := range t.swaps {
		s := &t.swaps[i]
		if err := t.checkOne(s, strconv.Itoa(i)); err != nil {
			return fail(StepVerify, s.path.String(), err)
		}
	}
	return nil
}

func (t *trade) checkOne(s *swapping, name string) error {
	if s.goes {
		if err := t.provenOld(s, t.olds, name); err != nil {
			return err
		}
	}
	if s.covered || !s.goes && !s.comes {
		return nil
	}
	in, err := t.home(s)
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

// settle asks the caller.
func (t *trade) settle(ctx context.Context) *Error {
	if t.e.Settled == nil {
		return nil
	}
	err := t.s.do("settle", t.stageName, func() error { return t.e.Settled(ctx, t.olds.h) })
	return fail(StepVerify, "", err)
}

// commit records that all is done: from here on it goes forward.
func (t *trade) commit(context.Context) *Error {
	return fail(StepPublish, t.stageName, t.enterCommitted())
}

// finish is what comes after COMMITTED. The exchange is complete and stays so.
func (t *trade) finish() {
	err := t.completed()
	if err == nil {
		err = t.cleanUp()
	}
	if err != nil && t.e.Leftover != nil {
		t.e.Leftover(t.stageName, err)
	}
}

// completed tells the log.
func (t *trade) completed() error {
	if t.log == nil {
		return nil
	}
	return t.log.Completed(t.id, t.kind)
}
