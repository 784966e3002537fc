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
		if s := &a.swaps[i]; s.isClosed() {
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

// isClosed reports whether a swap removes an empty directory that its owner, this user, may
// not write.
func (s *swapping) isClosed() bool {
	return s.hasOld && s.empty && s.was.Mode&0o300 != 0o300 && int(s.was.UID) == os.Geteuid()
}

// setMode sets the mode of the old entry if it exists and has the previous mode.
func (a *attempt) setMode(s *swapping, from, to uint32) error {
	in, err := a.parentDir(s)
	if err != nil {
		return nil // later steps report that
	}
	defer in.Close()
	st, err := in.Stat(s.path.Base())
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

// moveTops moves each top of the copies to its place, never over an existing entry, and then
// syncs the directories that it was moved into. Such a directory must pass on the same access
// to new entries as when the top was staged; for several tops in a row it is read once.
func (a *attempt) moveTops() *Error {
	if len(a.copies.files) == 0 {
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
	d, ok := a.copies.find(up)
	if ok && !now.Value().Bequeaths(a.copies.dirs[d].created.access.Value()) {
		return fmt.Errorf("its directory: %w", errAccess)
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
		moved = moved || s.hasOld
		if err := a.swap(s); err != nil {
			return fail(StepFinalize, s.path.String(), err)
		}
	}
	if !moved {
		return nil
	}
	return fail(StepFinalize, "", a.syncMoves(a.news, a.olds, (*swapping).isLast))
}

// swapAll makes all other swaps, durably, except those that are last. The files of a commit that
// take the place of others have left their own paths in staging, too.
func (a *attempt) swapAll() *Error {
	var left []pathsafe.Path
	for i := range a.swaps {
		s := &a.swaps[i]
		if s.last || !s.numbered() {
			continue
		}
		if err := a.swap(s); err != nil {
			return fail(StepFinalize, s.path.String(), err)
		}
		if s.replaces() {
			left = append(left, parent(s.path))
		}
	}
	if len(left) > 0 {
		if err := syncDirs(left, a.news); err != nil {
			return fail(StepFinalize, "", err)
		}
	}
	return fail(StepFinalize, "", a.syncMoves(a.news, a.olds, (*swapping).numbered))
}

// isLast reports whether an entry that is named by the number of the swap leaves first or
// appears last.
func (s *swapping) isLast() bool { return s.last && s.numbered() }

// swap makes one swap. The displaced entry is checked again in staging, out of reach of other
// processes, since the name could have been replaced after the first look. An undo puts any
// displaced entry back.
func (a *attempt) swap(s *swapping) error {
	in, err := a.parentDir(s)
	if !a.isCommit() && !s.hasNew && isOthers(err) { // it was removed with its directory
		s.hasOld = false
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	switch {
	case !a.isCommit():
		return a.swapKeeping(s, in)
	case s.hasNew: // the new file waits in old until the exchange
		from, failed := a.news.open(parent(s.path))
		if failed != nil {
			return failed
		}
		defer from.Close()
		if err = from.rename(s.path.Base(), a.olds, s.name); err == nil {
			err = in.exchange(s.path.Base(), a.olds, s.name)
		}
	default:
		err = in.rename(s.path.Base(), a.olds, s.name)
	}
	if err == nil {
		err = a.provenOld(s)
	}
	return err
}

// placeLast moves the trees marked as last to their names, in order, durably. One that has
// left staging was placed before a crash, and is not checked again.
func (a *attempt) placeLast() *Error {
	placed := false
	if a.news.H == nil { // it was removed when all had left it
		return nil
	}
	for i := range a.swaps {
		s, name := &a.swaps[i], a.swaps[i].name
		if !s.isLast() || !s.hasNew {
			continue
		}
		in, err := a.parentDir(s)
		if err != nil {
			return fail(StepPublish, s.path.String(), err)
		}
		there, noName := in.Stat(s.path.Base())
		mine, left := a.news.Stat(name)
		switch {
		case a.revived && noName == nil && left == nil && s.fresh.is(there) && s.fresh.is(mine) && !there.Mode.IsDir(): // the crash has brought the old name back
			err = a.news.Unlink(name)
		default:
			err = a.putNew(s, in)
		}
		in.Close()
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

// provenOld requires the entry that a commit has displaced to be the planned old one.
func (a *attempt) provenOld(s *swapping) error {
	st, err := a.olds.Stat(s.name)
	if err != nil {
		return err
	}
	if !s.isLive(st) {
		return errOther
	}
	if s.has != nil {
		if has, _, err := a.olds.metadataOf(s.name); err != nil || !has.equal(s.has) {
			return cmp.Or(err, errOther)
		}
	}
	return nil
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
		return errors.Join(a.root.SyncFS(), a.stage.Sync())
	}
	if left.H != nil { // it may have been removed when all is undone
		if err := left.Sync(); err != nil {
			return err
		}
	}
	err := syncDirs(parentDirs, a.root)
	if err == nil && entered.H != nil { // an end that was killed has removed it, when all was durable
		err = entered.Sync()
	}
	return err
}

// check checks every entry that a commit has displaced once more, and every name of one. A
// change of another kind leaves others what they do at its names.
func (a *attempt) check() *Error {
	for i := range a.swaps {
		if s := &a.swaps[i]; a.displacesForCommit(s) {
			if err := a.checkOne(s); err != nil {
				return fail(StepVerify, s.path.String(), err)
			}
		}
	}
	return nil
}

func (a *attempt) checkOne(s *swapping) error {
	if err := a.provenOld(s); err != nil {
		return err
	}
	in, err := a.parentDir(s)
	if err != nil {
		return err
	}
	defer in.Close()
	st, err := in.Stat(s.path.Base())
	if !s.hasNew { // a new entry there belongs to others
		return gone(err)
	}
	if err == nil && !s.fresh.is(st) {
		err = errReplaced
	}
	return err
}
