package staging

import (
	"errors"
	"io/fs"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// An undo of a change that is not a commit gives each displaced entry its name back, and takes
// the new one away. What other processes have put at the names meanwhile makes way, and is kept;
// so they never make an undo fail, unless they moved a directory that leads to the name.

// restoreOld undoes one swap. It begins again if other processes make or remove an entry at the name
// between a look and a move.
func (u *undo) restoreOld(s *swapping) (err error) {
	for range maxFlips {
		err = u.restoreOldOnce(s)
		if !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return both(errFlips, err)
}

func (u *undo) restoreOldOnce(s *swapping) error {
	slot, was, err := u.displaced(s)
	if err != nil {
		return err
	}
	in, err := u.parentDir(s)
	if err != nil {
		return u.withoutParent(s, slot, err)
	}
	defer in.Close()
	st, err := in.Stat(s.path.Base())
	if gone(err) != nil {
		return err
	}
	isFree, isNew := err != nil, err == nil && s.fresh.is(st)
	if !isFree && !isNew {
		return u.displaceForeign(s, in, slot, was, st)
	}
	switch {
	case slot.H == nil && s.hasOld && s.remake != nil:
		return u.makeAgain(s, in, isNew)
	case slot.H == nil && isNew:
		return u.retrieve(s, in)
	case slot.H == nil:
		return nil // it was not swapped yet, or is back already
	case isNew:
		return u.exchangeForOld(s, in, slot)
	}
	return slot.shift(s.name, in, s.path.Base())
}

// displaced finds the entry that a swap has displaced; slot is closed if there is none. It is
// the old entry, or one that had replaced it, or one that had replaced the new entry.
func (u *undo) displaced(s *swapping) (slot dir, was pathsafe.Stat, err error) {
	parts := []dir{u.olds, u.news}
	if !s.tree { // otherwise new may have other entries at that name
		parts = parts[:1]
	}
	for _, in := range parts {
		st, err := in.Stat(s.name)
		if errors.Is(err, fs.ErrNotExist) || err == nil && s.fresh.is(st) {
			continue
		}
		if err != nil {
			return dir{}, st, err
		}
		switch {
		case slot.H == nil:
			slot, was = in, st
		case identityOf(st) == identityOf(was) && !st.Mode.IsDir(): // a crash has left it with both names
			err = in.Unlink(s.name)
		default:
			err = u.setAside(in, s.name, s)
		}
		if err != nil {
			return dir{}, st, err
		}
	}
	return slot, was, nil
}

// withoutParent handles a swap whose parent directory is missing or was replaced. That is not an
// error if no old entry must come back and no new one has stayed there; an entry that another
// process removed with its directory is not missed, unless it is a tree.
func (u *undo) withoutParent(s *swapping, slot dir, err error) error {
	if slot.H != nil || !isOthers(err) {
		return err
	}
	if !s.tree {
		return nil
	}
	for _, in := range []dir{u.news, u.olds, u.trash} {
		st, failed := in.Stat(s.name)
		if gone(failed) != nil {
			return err
		}
		if failed == nil && s.fresh.is(st) {
			return nil
		}
	}
	return err
}

// displaceForeign handles a foreign entry at a name: it is moved aside if there is an old entry to
// restore, whose turn is next.
func (u *undo) displaceForeign(s *swapping, in, slot dir, was, st pathsafe.Stat) error {
	base := s.path.Base()
	switch {
	case slot.H == nil && (s.remake == nil || !s.hasOld || st.Mode.IsDir()): // there is no entry to restore
		return nil
	case slot.H == nil:
		return again(u.setAside(in, base, s))
	case identityOf(was) == identityOf(st) && !st.Mode.IsDir(): // a crash has left it with both names
		return slot.Unlink(s.name)
	case s.old.is(st): // the old entry is back, and this one had its name
		return u.setAside(slot, s.name, s)
	}
	err := slot.exchange(s.name, in, base)
	if errors.Is(err, errors.ErrUnsupported) {
		return again(u.setAside(in, base, s))
	}
	if err == nil {
		err = u.setAside(slot, s.name, s)
	}
	return err
}

// again is the error with which restoreOld begins again, now that a name is free.
func again(err error) error {
	if err == nil {
		return fs.ErrExist
	}
	return err
}

// makeAgain makes an empty directory again that was removed in place: in a lower layer of an
// overlay it could not be moved. Moving its entries back changes its time, which is therefore
// set again at the end.
func (u *undo) makeAgain(s *swapping, in dir, taken bool) error {
	if taken {
		if err := u.retrieve(s, in); err != nil {
			return err
		}
	}
	err := in.mkdirOwn(s.path.Base())
	if errors.Is(err, fs.ErrExist) { // another process has just made it again
		return nil
	}
	if err != nil {
		return err
	}
	made, err := in.enter(s.path.Base())
	if err != nil {
		return err
	}
	defer made.Close()
	m := *s.remake
	m.Mode |= ownDir
	return made.give(m)
}

// retrieve takes a tree from its name. The name could be replaced between a look and a removal, so
// the entry is first moved out of reach of other processes, and then looked at again: any other one
// goes back.
func (u *undo) retrieve(s *swapping, in dir) error {
	base := s.path.Base()
	if st, err := u.news.Stat(s.name); err == nil && s.fresh.is(st) && !st.Mode.IsDir() {
		return in.Unlink(base) // a crash has left it with both names
	}
	if err := in.shift(base, u.news, s.name); err != nil {
		return err
	}
	st, err := u.news.Stat(s.name)
	if err != nil || s.fresh.is(st) {
		return err
	}
	err = u.news.shift(s.name, in, base)
	if errors.Is(err, fs.ErrExist) {
		err = u.setAside(u.news, s.name, s)
	}
	return err
}

// exchangeForOld replaces a tree by the displaced entry. What is there instead of the tree is kept.
func (u *undo) exchangeForOld(s *swapping, in, slot dir) error {
	base := s.path.Base()
	err := slot.exchange(s.name, in, base)
	if err == nil {
		st, err := slot.Stat(s.name)
		if err == nil && !s.fresh.is(st) {
			err = u.setAside(slot, s.name, s)
		}
		return err
	}
	if slot == u.news || !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	if err := u.retrieve(s, in); err != nil {
		return err
	}
	return slot.shift(s.name, in, base)
}

// takeLast takes a tree that appears last from its name, if it is there.
func (u *undo) takeLast(s *swapping) error {
	in, err := u.parentDir(s)
	if err != nil {
		return nil // restoreOld checks that
	}
	defer in.Close()
	st, err := in.Stat(s.path.Base())
	if err != nil || !s.fresh.is(st) {
		return gone(err)
	}
	return u.retrieve(s, in)
}

// discardTrees removes the trees that were made. After PREPARED other processes could reach
// them: a tree that has changed stays.
func (u *undo) discardTrees() {
	if u.trees() == 0 {
		return
	}
	if u.phase < phasePrepared {
		if u.news.H != nil {
			u.note(newsName, u.removeAll(u.news))
		}
		return
	}
	for i := range u.swaps {
		if s := &u.swaps[i]; s.tree {
			u.note(s.path.String(), u.discard(s))
		}
	}
	if u.err() == nil { // a half-removed tree must not be compared again
		u.note(trashName, errors.Join(u.news.Sync(), u.olds.Sync(), u.trash.Sync()))
	}
	if u.err() == nil {
		u.note(trashName, u.removeAll(u.trash))
	}
}

// discard moves a tree to the trash. If it is not in staging, it was discarded before, or
// another process took it; if it is there twice, a crash has left it with both names. One that was
// changed, or that a process has open for writing, is kept.
func (u *undo) discard(s *swapping) error {
	st, err := u.trash.Stat(s.name)
	if gone(err) != nil {
		return err
	}
	done := err == nil && s.fresh.is(st)
	for _, in := range []dir{u.news, u.olds} {
		st, err := in.Stat(s.name)
		if gone(err) != nil {
			return err
		}
		if err != nil || !s.fresh.is(st) {
			continue
		}
		if done && !st.Mode.IsDir() {
			if err := in.Unlink(s.name); err != nil {
				return err
			}
			continue
		}
		done = true
		now, err := fingerprint(in, s.name)
		if err != nil {
			return err
		}
		isOpen := false
		if now == s.print && st.Mode.IsRegular() {
			if isOpen, _, err = in.isWritten(s.name); err != nil {
				return err
			}
		}
		if now != s.print || isOpen {
			continue
		}
		if err := in.shift(s.name, u.trash, s.name); err != nil {
			return err
		}
	}
	return nil
}
