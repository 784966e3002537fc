package staging

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"

	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

var (
	errNoWayBack = machine.Disturbed("something else stands there now, so what stood there cannot come back")
	errLost      = machine.Disturbed("what stood there is not in staging any more")
	errTouched   = machine.Disturbed("somebody has changed what was put there, so it stays")
	errCrowded   = machine.Disturbed("two things wait in staging for one name")
)

// A tradeUndo brings back what stood there. What to do it sees from what stands
// where, so that it does not matter how far the trade or an earlier undo got. It
// goes on after an error and keeps the first.
type tradeUndo struct {
	*trade
	notes
}

// undo says by nil that every name means again what it meant when it was swapped,
// and that nothing of the exchange is left. A name that was not swapped yet is
// not its business, whatever others did with it.
func (t *trade) undo() error {
	u := &tradeUndo{trade: t}
	switch err := t.enterRollingBack(); {
	case err != nil:
		u.note(rollingBackName, err)
	case t.stage.h == nil:
		u.note(t.stageName, t.removeStage())
	default:
		u.everything()
	}
	if u.err() != nil {
		t.halt()
	}
	return u.err()
}

func (u *tradeUndo) everything() {
	if u.phase < phasePrepared {
		u.note(u.stageName, u.openParts())
	} else if u.note(u.stageName, u.allParts()); u.err() == nil {
		u.moveBack()
	}
	if u.err() == nil {
		u.discardNew()
	}
	if u.err() == nil {
		u.note(u.stageName, u.removeAll())
	}
	if u.err() == nil {
		u.lastTouch(func(d *staying) meta { return d.have })
	}
}

// moveBack undoes all swaps, the last one first, durably.
func (u *tradeUndo) moveBack() {
	for _, d := range slices.Backward(u.dirs) { // from the top: their modes let us in
		u.noteDir(&d, func(in dir) error { return in.giveMode(d.openMode()) })
	}
	for i := range slices.Backward(u.swaps) {
		u.note(u.swaps[i].path.String(), u.back(i))
	}
	for i := range u.swaps {
		s := &u.swaps[i]
		u.note(s.path.String(), u.keepMode(s))
		_ = u.keepTime(s, s.live) // a time keeps nobody from going on
	}
	u.note("", u.syncMoves(u.olds, u.news))
	for _, d := range u.dirs {
		u.noteDir(&d, func(in dir) error { return u.give(in, d.have) })
	}
	u.note("", u.syncMany())
}

// noteDir does something with a directory that stays. One that nothing was done to may be
// another one by now.
func (u *tradeUndo) noteDir(d *staying, do func(in dir) error) {
	err := u.touch(d, do)
	if !d.touched && isOthers(err) {
		err = nil
	}
	u.note(d.path.String(), gone(err))
}

// isOthers reports whether an error says that a directory is not there, or another one is.
func isOthers(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, errReplaced)
}

// keepMode gives a directory that has come back the mode that it had: who was killed
// while it was moved may have left it another one.
func (u *tradeUndo) keepMode(s *swapping) error {
	if !s.goes || !fs.FileMode(s.old.Type).IsDir() || s.mode&0o200 != 0 {
		return nil
	}
	in, err := u.home(s)
	if err != nil {
		return nil // then nothing has come back
	}
	defer in.close()
	st, err := in.stat(s.path.Base())
	if err != nil || !s.old.is(st) || st.Perm != s.mode|0o200 {
		return gone(err)
	}
	return in.chmodDir(s.path.Base(), s.mode)
}

// back undoes one swap.
func (u *tradeUndo) back(i int) error {
	s, name := &u.swaps[i], strconv.Itoa(i)
	slot, was, err := u.displaced(s, name)
	if err != nil {
		return err
	}
	in, err := u.home(s)
	if err != nil {
		return u.homeless(s, name, slot, err)
	}
	defer in.close()
	st, err := in.stat(s.path.Base())
	switch {
	case gone(err) != nil:
		return err
	case err == nil && s.fresh.is(st):
		// What others have put there since would leave its name with it.
		if err := s.untouched(in, s.path.Base()); err != nil {
			return err
		}
	}
	switch {
	case slot.h == nil && (err != nil || !s.fresh.is(st)):
		return nil // it was not swapped yet, or is back already
	case slot.h == nil && s.goes:
		return errLost
	case slot.h == nil:
		return u.retrieve(s, in, name)
	case err != nil:
		return slot.shift(name, in, s.path.Base())
	case s.fresh.is(st):
		return u.replace(s, in, slot, name)
	case beingOf(was) == beingOf(st) && !st.Mode.IsDir():
		return slot.unlink(name) // a crash has left it with both names
	}
	return errNoWayBack
}

// homeless: the directory of a swap's name is not there, or is another one. That
// does not matter where nothing has to come back and nothing has stayed there.
func (u *tradeUndo) homeless(s *swapping, name string, slot dir, err error) error {
	if slot.h != nil || !isOthers(err) {
		return err
	}
	if !s.comes {
		return nil
	}
	if _, _, missing := u.ours(s, name); missing != nil {
		return err
	}
	return nil
}

// displaced finds what had to make way for a swap; slot is closed if there is
// nothing. It is the old thing, or what had taken its place.
func (u *tradeUndo) displaced(s *swapping, name string) (slot dir, was pathsafe.Stat, err error) {
	for _, in := range []dir{u.olds, u.news} {
		if in.h == nil {
			continue
		}
		st, err := in.stat(name)
		if errors.Is(err, fs.ErrNotExist) || err == nil && s.fresh.is(st) {
			continue
		}
		if err != nil {
			return dir{}, st, err
		}
		if slot.h == nil {
			slot, was = in, st
			continue
		}
		if beingOf(st) != beingOf(was) || st.Mode.IsDir() {
			return dir{}, st, errCrowded
		}
		if err := in.unlink(name); err != nil { // a crash has left it with both names
			return dir{}, st, err
		}
	}
	return slot, was, nil
}

// ours finds the new thing in staging: fs.ErrNotExist if it is not there.
func (u *tradeUndo) ours(s *swapping, name string) (in dir, st pathsafe.Stat, err error) {
	for _, in := range []dir{u.news, u.olds, u.trash} {
		if in.h == nil {
			continue
		}
		st, err := in.stat(name)
		if gone(err) != nil || err == nil && s.fresh.is(st) {
			return in, st, err
		}
	}
	return dir{}, st, fs.ErrNotExist
}

// retrieve takes a new thing back whose name was free before.
func (u *tradeUndo) retrieve(s *swapping, in dir, name string) error {
	base := s.path.Base()
	if st, err := u.news.stat(name); err == nil && s.fresh.is(st) && !st.Mode.IsDir() {
		return in.unlink(base) // a crash has left it with both names
	}
	if err := in.shift(base, u.news, name); err != nil {
		return err
	}
	return u.provenNew(s, u.news, name, func() error { return u.news.shift(name, in, base) })
}

// replace puts a displaced thing in the place of the new one.
func (u *tradeUndo) replace(s *swapping, in, slot dir, name string) error {
	base := s.path.Base()
	err := slot.exchange(name, in, base)
	if err == nil {
		return u.provenNew(s, slot, name, func() error { return slot.exchange(name, in, base) })
	}
	if slot == u.news || !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	if err := u.retrieve(s, in, name); err != nil {
		return err
	}
	return slot.shift(name, in, base)
}

// provenNew wants what was taken from a name to be the new thing: else somebody
// has put something in its place between the look and the move, and it goes back.
func (u *tradeUndo) provenNew(s *swapping, in dir, name string, back func() error) error {
	st, err := in.stat(name)
	if err != nil {
		return err
	}
	if s.fresh.is(st) {
		return nil
	}
	return both(errNoWayBack, back())
}

// discardNew removes what was made. After PREPARED others could reach it: what
// is not any more as it was made stays.
func (u *tradeUndo) discardNew() {
	if u.phase < phasePrepared {
		if u.news.h != nil {
			u.note(newsName, u.burn(u.news))
		}
		return
	}
	for i := range u.swaps {
		if s := &u.swaps[i]; s.comes {
			u.note(s.path.String(), u.discard(s, strconv.Itoa(i)))
		}
	}
	if u.err() == nil { // what is half removed must not be looked at again
		u.note(trashName, errors.Join(u.news.sync(), u.olds.sync(), u.trash.sync()))
	}
	if u.err() == nil {
		u.note(trashName, u.burn(u.trash))
	}
}

// discard moves a new thing to the trash. If it is not in staging it went before,
// or others took it; if it is there twice a crash has left it with both names.
func (u *tradeUndo) discard(s *swapping, name string) error {
	st, err := u.trash.stat(name)
	if gone(err) != nil {
		return err
	}
	done := err == nil && s.fresh.is(st)
	for _, in := range []dir{u.news, u.olds} {
		st, err := in.stat(name)
		if gone(err) != nil {
			return err
		}
		if err != nil || !s.fresh.is(st) {
			continue
		}
		if done && !st.Mode.IsDir() {
			err = in.unlink(name)
		} else {
			err = u.discardFrom(in, s, name)
		}
		if err != nil {
			return err
		}
		done = true
	}
	return nil
}

func (u *tradeUndo) discardFrom(in dir, s *swapping, name string) error {
	if err := s.untouched(in, name); err != nil {
		return err
	}
	return in.shift(name, u.trash, name)
}

// untouched wants the new thing to be at a name as it was made.
func (s *swapping) untouched(in dir, name string) error {
	now, err := fingerprint(in, name)
	if err == nil && now != s.print {
		err = errTouched
	}
	return err
}

// touch does something with a directory that stays, if it is still the one.
func (t *trade) touch(d *staying, do func(in dir) error) error {
	in, err := t.base.open(d.path)
	if err != nil {
		return err
	}
	defer in.close()
	st, err := in.statSelf()
	if err == nil && !d.self.is(st) {
		err = errReplaced
	}
	if err != nil {
		return err
	}
	return do(in)
}

// give sets what one of the directories that stay gets, durably unless there are many of
// them: then syncMany comes when all have it.
func (t *trade) give(in dir, m meta) error {
	if err := in.give(m); err != nil || len(t.dirs) > few {
		return err
	}
	return in.sync()
}

func (t *trade) syncMany() error {
	if len(t.dirs) <= few {
		return nil
	}
	return t.base.syncFS()
}

// give sets what a directory gets. Only its owner may set its time: to
// anybody else who may write in it that time is what the changes beneath made of it.
func (d dir) give(m meta) error {
	st, err := d.statSelf()
	if err != nil {
		return err
	}
	err = d.setTime(m.time)
	if err != nil && !(errors.Is(err, unix.EPERM) && int(st.UID) != os.Geteuid()) {
		return err
	}
	if err := d.giveOwner(m); err != nil {
		return err
	}
	return d.giveMode(m.mode)
}

// giveOwner sets the owner, the group and the extended attributes that the directory does
// not have already. A new owner takes away set-id bits, and an access list sets the bits
// of the group: the mode comes later.
func (d dir) giveOwner(m meta) error {
	st, err := d.statSelf()
	if err == nil && (st.UID != m.uid || st.GID != m.gid) {
		err = d.setOwner(m.uid, m.gid)
	}
	if err != nil {
		return err
	}
	have, err := d.xattrs()
	if err != nil {
		return err
	}
	for _, x := range have {
		if !slices.ContainsFunc(m.xattrs, func(is pathsafe.Xattr) bool { return is.Name == x.Name }) {
			if err := d.removeXattr(x.Name); err != nil {
				return err
			}
		}
	}
	for _, x := range m.xattrs {
		if !slices.Contains(have, x) {
			if err := d.setXattr(x); err != nil {
				return err
			}
		}
	}
	return nil
}

// giveMode sets a mode that the directory does not have already: the kernel takes the
// set-group-id bit away when the mode is set by who is not a member of the group.
func (d dir) giveMode(mode uint32) error {
	st, err := d.statSelf()
	if err != nil || st.Perm == mode {
		return err
	}
	if err := d.setMode(mode); err != nil {
		return err
	}
	if st, err = d.statSelf(); err == nil && st.Perm != mode {
		err = fmt.Errorf("mode %04o: %w", mode, pathsafe.ErrGroup)
	}
	return err
}

// halt marks a root as one where a person must act. It is all that can be done:
// it has no error.
func (t *trade) halt() {
	if t.stage.h == nil {
		return
	}
	f, err := t.stage.create(haltedName, ownFile)
	if err == nil {
		_ = t.s.closeFile(f)
		_ = t.stage.sync()
		_ = t.base.sync()
	}
}

// kept says where things are that could not be put back.
func kept(err error, name string) error {
	return fmt.Errorf("%w; what is left of it is kept in %q", err, name)
}
