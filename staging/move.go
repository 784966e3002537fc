package staging

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// openDirs lets their owner into the directories that stay, and into those that go when they are
// empty, from the top.
func (a *attempt) openDirs() *Error {
	for i := range slices.Backward(a.swaps) {
		if s := &a.swaps[i]; s.isBarred() {
			if err := a.setMode(s, s.was.Mode, s.was.Mode|0o300); err != nil {
				return fail(StepFinalize, s.path.String(), err)
			}
		}
	}
	for i := range slices.Backward(a.dirs) {
		d := &a.dirs[i]
		if d.openMode() == d.have.Mode {
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

// isBarred reports whether a swap removes an empty directory that its owner, this user, may
// not write.
func (s *swapping) isBarred() bool {
	return s.goes && s.empty && s.was.Mode&0o300 != 0o300 && int(s.was.UID) == os.Geteuid()
}

// setMode sets the mode of the old entry if it exists and has the previous mode.
func (a *attempt) setMode(s *swapping, from, to uint32) error {
	in, err := a.parentDir(s)
	if err != nil {
		return nil // later steps report that
	}
	defer in.close()
	st, err := in.stat(s.path.Base())
	if err != nil || !s.old.is(st) || st.Perm != from {
		return gone(err)
	}
	return in.chmodDir(s.path.Base(), to)
}

// openMode is the mode that a directory has while names in it are swapped.
func (d *staying) openMode() uint32 {
	if int(d.have.UID) != os.Geteuid() {
		return d.have.Mode
	}
	return d.have.Mode | 0o300
}

// moveTops moves each top of the plan to its place, never over an existing entry, and then
// syncs the directories that it was moved into. Such a directory must pass on the same access
// to new entries as when the top was staged; for several tops in a row it is read once.
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

// leaveFirst moves aside what leaves first, durably before anything else moves.
func (a *attempt) leaveFirst() *Error {
	moved := false
	for i := range a.swaps {
		s := &a.swaps[i]
		if !s.isLast() {
			continue
		}
		moved = moved || s.goes
		if err := a.swap(s); err != nil {
			return fail(StepFinalize, s.path.String(), err)
		}
	}
	if !moved {
		return nil
	}
	return fail(StepFinalize, "", a.syncMoves(a.news, a.olds, (*swapping).isLast))
}

// swapAll makes all other swaps, durably, except those that are last.
func (a *attempt) swapAll() *Error {
	for i := range a.swaps {
		s := &a.swaps[i]
		if s.last || !s.numbered() {
			continue
		}
		if err := a.swap(s); err != nil {
			return fail(StepFinalize, s.path.String(), err)
		}
	}
	if err := a.syncReplaced(); err != nil {
		return fail(StepFinalize, "", err)
	}
	return fail(StepFinalize, "", a.syncMoves(a.news, a.olds, (*swapping).numbered))
}

// syncReplaced makes durable that the files of a commit that take the place of others have left
// their own paths in staging.
func (a *attempt) syncReplaced() error {
	var left []pathsafe.Path
	for i := range a.swaps {
		if s := &a.swaps[i]; s.replaces() {
			left = append(left, parent(s.path))
		}
	}
	if len(left) == 0 {
		return nil
	}
	return syncDirs(left, a.news)
}

// isLast reports whether an entry that is named by the number of the swap leaves first or
// appears last.
func (s *swapping) isLast() bool { return s.last && s.numbered() }

// swap makes one swap. The displaced entry is checked again in staging, out of reach of other
// processes, since the name could have been replaced after the first look. An undo puts any
// displaced entry back.
func (a *attempt) swap(s *swapping) error {
	name := s.name
	in, err := a.parentDir(s)
	if !s.comes && !a.isCommit() && (errors.Is(err, fs.ErrNotExist) || a.keep && isOthers(err)) { // it was removed with its directory
		s.goes = false
		return nil
	}
	if err != nil {
		return err
	}
	defer in.close()
	if a.keep {
		return a.swapKeeping(s, in)
	}
	if s.goes && s.remake != nil {
		return a.removeInPlace(s, in, name)
	}
	if s.replaces() {
		return a.replace(s, in)
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
		if errors.Is(err, fs.ErrNotExist) && !s.comes && !a.isCommit() {
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

// replace replaces a file in one step: the new file waits in old under the number of the swap,
// and the displaced one is there afterwards.
func (a *attempt) replace(s *swapping, in dir) error {
	from, err := a.news.open(parent(s.path))
	if err != nil {
		return err
	}
	defer from.close()
	err = from.rename(s.path.Base(), a.olds, s.name)
	if err == nil {
		err = in.exchange(s.path.Base(), a.olds, s.name)
	}
	if err == nil {
		err = a.provenOld(s, a.olds, s.name)
	}
	return err
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

// placeLast moves the trees marked as last to their names, in order, durably. One that has
// left staging was placed before a crash, and is not checked again.
func (a *attempt) placeLast() *Error {
	placed := false
	if a.news.h == nil { // it was removed when all had left it
		return nil
	}
	for i := range a.swaps {
		s, name := &a.swaps[i], a.swaps[i].name
		if !s.isLast() || !s.comes {
			continue
		}
		in, err := a.parentDir(s)
		if err != nil {
			return fail(StepPublish, s.path.String(), err)
		}
		there, noName := in.stat(s.path.Base())
		mine, left := a.news.stat(name)
		switch {
		case a.revived && noName == nil && left == nil && s.fresh.is(there) && s.fresh.is(mine) && !there.Mode.IsDir(): // the crash has brought the old name back
			err = a.news.unlink(name)
		case a.keep:
			err = a.putNew(s, in)
		default:
			err = a.news.shift(name, in, s.path.Base())
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
	return fail(StepPublish, "", a.syncMoves(a.news, a.olds, (*swapping).isLast))
}

// takeOut puts what came out of an exchange where it belongs.
func (a *attempt) takeOut(s *swapping, name string) error {
	if err := a.provenOld(s, a.news, name); err != nil {
		return err
	}
	return a.news.shift(name, a.olds, name)
}

// provenOld requires the displaced entry to be the planned old one.
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
	if s.has != nil {
		if has, _, err := in.metadataOf(name); err != nil || !has.equal(s.has) {
			return cmp.Or(err, errOther)
		}
	}
	if !s.empty {
		return nil
	}
	return a.isEmpty(in, name)
}

// syncMoves makes moves of these swaps durable: first the directory in staging that entries
// have left, then those beneath the base, then the one in staging that received entries.
func (a *attempt) syncMoves(left, entered dir, of func(s *swapping) bool) error {
	var parentDirs []pathsafe.Path
	covered := false
	for i := range a.swaps {
		if s := &a.swaps[i]; of(s) {
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
	if left.h != nil { // it may have been removed when all is undone
		if err := left.sync(); err != nil {
			return err
		}
	}
	err := syncDirs(parentDirs, a.root)
	if err == nil && entered.h != nil { // an end that was killed has removed it, when all was durable
		err = entered.sync()
	}
	return err
}

// check checks every name and every displaced entry once more.
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

// checkOne has nothing to look at where others may work at the name.
func (a *attempt) checkOne(s *swapping) error {
	if a.keep {
		return nil
	}
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
