package staging

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

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

// An undo restores the old entries. It decides by what is at each name, so it does not matter
// how far the attempt or an earlier undo got. It continues after an error, and keeps the first
// ones.
type undo struct {
	*attempt
	notes
	spans []span // of all swaps of a commit, computed at the first use
}

// maxTold is how many errors an undo reports in full.
const maxTold = 8

// notes keeps the first of many errors.
type notes struct {
	first  error
	others []string // the next errors, as text
	count  int
}

func (n *notes) note(path string, err error) {
	if err == nil {
		return
	}
	if n.count++; n.count > maxTold && (!isMount(err) || isMount(n.first)) {
		return
	}
	if path != "" {
		err = fmt.Errorf("%q: %w", path, err)
	}
	switch {
	case n.first == nil:
		n.first = err
	case isMount(err) && !isMount(n.first): // it may be why the others failed
		n.first, n.others = err, append(n.others, n.first.Error())
	default:
		n.others = append(n.others, err.Error())
	}
}

func (n *notes) err() error {
	err := n.first
	if len(n.others) > 0 {
		err = fmt.Errorf("%w; %s", err, strings.Join(n.others, "; "))
	}
	if n.count > maxTold {
		err = fmt.Errorf("%w (and %d more)", err, n.count-maxTold)
	}
	return err
}

// undo returns nil if every swapped name has its old entry again, and nothing of the attempt
// is left (SPECTRUM-06 section 8.5.1). A name that an exchange had not swapped yet is ignored,
// whatever other processes did with it; for a commit no target may exist. The order is that of
// section 8.5.2: signs of success are removed first, signs of an unfinished attempt last. The
// journal is removed when everything else is durably gone; while it exists the root is not
// clean.
func (a *attempt) undo() error {
	err := a.despiteMounts(func() error {
		u := &undo{attempt: a}
		switch err := a.enterRollingBack(); {
		case err != nil:
			u.note(rollingBackName, err)
		case a.stage.h == nil: // nothing else was made
			u.note(a.stageName, a.removeStage())
			u.targets()
		default:
			u.everything()
		}
		return u.err()
	})
	if err != nil {
		a.halt()
	} else {
		a.unpin()
	}
	return err
}

// everything restores all old entries, durably, before anything that was made is removed: a
// power cut during the undo of an exchange must not leave the removal alone.
func (u *undo) everything() {
	u.note(u.stageName, u.openParts())
	if u.phase >= phasePrepared && u.err() == nil {
		// A commit works without them: on a full disk they cannot be made again.
		if err := u.allParts(); !u.isCommit() {
			u.note(u.stageName, err)
		}
	}
	prepared := u.phase >= phasePrepared && u.err() == nil
	if prepared {
		u.keepTimesOfOthers()
		u.openDirsAgain()
	}
	if prepared || u.isCommit() {
		u.moveBack()
	}
	if prepared {
		u.restoreDirs()
	}
	u.discardMade()
	if u.err() == nil {
		u.discardTrees()
	}
	u.targets()
	if u.err() == nil && (u.keep || slices.ContainsFunc(u.swaps, func(s swapping) bool { return u.displacesForCommit(&s) })) {
		u.note(keepingName, u.keepRest())
	}
	if u.err() == nil && u.phase >= phasePrepared {
		u.timesBack()
	}
	if u.err() == nil {
		u.note(u.stageName, u.removeStaging())
	}
	if u.err() == nil {
		u.unpin()
		u.lastTouch(func(d *staying) Metadata { return d.have })
	}
}

// moveBack undoes all swaps that may have been made, in reverse order.
func (u *undo) moveBack() {
	for i := range slices.Backward(u.swaps) {
		if s := &u.swaps[i]; s.isLast() && s.comes && u.phase >= s.since {
			u.note(s.path.String(), u.takeBack(i))
		}
	}
	for _, last := range []bool{false, true} {
		for i := range slices.Backward(u.swaps) {
			if s := &u.swaps[i]; s.last == last && u.phase >= s.since {
				u.note(s.path.String(), u.backAmidst(i))
			}
		}
	}
}

// takeBack takes the new entry of a swap from its name, if it is there.
func (u *undo) takeBack(i int) error {
	s := &u.swaps[i]
	in, err := u.parentDir(s)
	if err != nil {
		return nil // back checks that
	}
	defer in.close()
	st, err := in.stat(s.path.Base())
	if err != nil || !s.fresh.is(st) {
		return gone(err)
	}
	if !u.keep {
		if err := s.untouched(in, s.path.Base()); err != nil {
			return err
		}
	}
	return u.retrieve(i, in, strconv.Itoa(i))
}

// openDirsAgain makes the directories that stay, and those to be removed that exist,
// accessible to their owner, from the top.
func (u *undo) openDirsAgain() {
	for i := range slices.Backward(u.swaps) {
		if s := &u.swaps[i]; s.isBarred() {
			u.note(s.path.String(), u.setMode(s, s.was.Mode, s.was.Mode|0o300))
		}
	}
	for _, d := range slices.Backward(u.dirs) {
		u.noteDir(&d, func(in dir) error { return in.giveMode(d.openMode()) })
	}
}

// restoreDirs restores the metadata of directories, and makes the moves durable.
func (u *undo) restoreDirs() {
	for i := range u.swaps {
		s := &u.swaps[i]
		u.note(s.path.String(), u.keepMode(s))
		_ = u.keepTime(s, s.live) // a wrong time stops nothing
		u.note(s.path.String(), u.keepRemade(s))
	}
	u.note("", u.syncMoves(u.olds, u.news, (*swapping).numbered))
	for _, d := range u.dirs {
		u.noteDir(&d, func(in dir) error { return u.give(in, d.have) })
	}
	u.note("", u.syncMany())
}

// keepRemade restores the metadata of a remade directory, after its entries are back.
func (u *undo) keepRemade(s *swapping) error {
	if s.remake == nil || !s.goes {
		return nil
	}
	in, err := u.parentDir(s)
	if err != nil {
		return gone(err)
	}
	defer in.close()
	st, err := in.stat(s.path.Base())
	if err != nil || s.old.is(st) || !st.Mode.IsDir() {
		return gone(err)
	}
	again, err := in.enter(s.path.Base())
	if err != nil {
		return err
	}
	defer again.close()
	return errors.Join(again.give(*s.remake), again.sync())
}

// noteDir calls do for a directory that stays. One that was not changed may have been replaced
// since.
func (u *undo) noteDir(d *staying, do func(in dir) error) {
	err := u.touch(d, do)
	if !d.touched && (isOthers(err) || isMount(err)) {
		err = nil
	}
	u.note(d.path.String(), gone(err))
}

// isOthers reports whether an error means that a directory is missing or was replaced.
func isOthers(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, errReplaced) || isLink(err)
}

// isLink reports whether an error means that the entry is a link.
func isLink(err error) bool {
	return errors.Is(err, pathsafe.ErrSymlink) || errors.Is(err, pathsafe.ErrEscape)
}

// keepMode restores the mode of a directory that is back: an attempt that was killed while it
// moved the directory may have left it another mode.
func (u *undo) keepMode(s *swapping) error {
	if !s.goes || !fs.FileMode(s.old.Type).IsDir() || s.was.Mode&0o300 == 0o300 {
		return nil
	}
	return errors.Join(u.setMode(s, s.was.Mode|0o200, s.was.Mode), u.setMode(s, s.was.Mode|0o300, s.was.Mode))
}

// backAmidst is back, retried if other processes make or remove an entry at the name between a
// look and a move.
func (u *undo) backAmidst(i int) (err error) {
	for range maxFlips {
		err = u.back(i)
		if !u.keep || !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return err
}

// back undoes one swap.
func (u *undo) back(i int) error {
	s, name := &u.swaps[i], strconv.Itoa(i)
	if u.displacesForCommit(s) {
		return u.reinstate(s)
	}
	slot, was, err := u.displaced(s, name)
	if err != nil {
		return err
	}
	in, err := u.parentDir(s)
	if err != nil {
		return u.withoutParent(s, name, slot, err)
	}
	defer in.close()
	st, err := in.stat(s.path.Base())
	if gone(err) != nil {
		return err
	}
	is := err == nil && s.fresh.is(st)
	if u.keep && err == nil && !is {
		if done, err := u.makeWay(s, in, slot, was, st); done || err != nil {
			return err
		}
		if st, err = in.stat(s.path.Base()); gone(err) != nil {
			return err
		}
	}
	if is && s.tree && !u.keep { // otherwise entries of other processes in it would be moved with it
		if err := s.untouched(in, s.path.Base()); err != nil {
			return err
		}
	}
	switch {
	case slot.h == nil && s.goes && s.remake != nil && (is || err != nil):
		return u.makeAgain(i, in, name, is)
	case slot.h == nil && !is:
		return nil // it was not swapped yet, or is back already
	case slot.h == nil && s.goes && !u.keep: // else it had gone when this came
		return errLost
	case slot.h == nil:
		return u.retrieve(i, in, name)
	case err != nil:
		return slot.shift(name, in, s.path.Base())
	case is && !s.goes && !s.tree && !u.keep: // nothing had to make way for it
		return fmt.Errorf("%s/%s: %w", oldsName, name, errForeign)
	case is:
		return u.swapBack(i, in, slot, name)
	case identityOf(was) == identityOf(st) && !st.Mode.IsDir():
		return slot.unlink(name) // a crash has left it with both names
	}
	return errNoWayBack
}

// makeAgain makes an empty directory again that was removed in place: in a lower layer of an
// overlay it could not be moved.
func (u *undo) makeAgain(i int, in dir, name string, taken bool) error {
	s := &u.swaps[i]
	if taken {
		if err := u.retrieve(i, in, name); err != nil {
			return err
		}
	}
	if err := in.mkdirOwn(s.path.Base()); err != nil {
		if u.keep && errors.Is(err, fs.ErrExist) { // another process has just made it again
			return nil
		}
		return err
	}
	return u.dressAgain(s, in)
}

// dressAgain restores the metadata of a remade directory. Moving its entries back changes its
// time, which is therefore set again at the end.
func (u *undo) dressAgain(s *swapping, in dir) error {
	again, err := in.enter(s.path.Base())
	if err != nil {
		return err
	}
	defer again.close()
	m := *s.remake
	m.Mode |= ownDir
	return again.give(m)
}

// makeWay moves foreign entries at a name aside, to free it for the old entry; done is true if
// nothing is left to do.
func (u *undo) makeWay(s *swapping, in, slot dir, was, st pathsafe.Stat) (done bool, err error) {
	base := s.path.Base()
	switch {
	case slot.h == nil && (s.remake == nil || !s.goes || st.Mode.IsDir()): // there is no entry to restore
		return true, nil
	case slot.h == nil:
		return false, gone(u.setAside(in, base, s))
	case identityOf(was) == identityOf(st) && !st.Mode.IsDir(): // a crash has left it with both names
		return true, slot.unlink(s.name)
	case s.old.is(st): // the old entry is back, and this one had its name
		return true, u.setAside(slot, s.name, s)
	}
	err = slot.exchange(s.name, in, base)
	if err == nil {
		return true, u.setAside(slot, s.name, s)
	}
	if errors.Is(err, errors.ErrUnsupported) {
		err = u.setAside(in, base, s)
	}
	return false, gone(err)
}

// withoutParent handles a swap whose parent directory is missing or was replaced. That is no
// error if no old entry must come back and no new one has stayed there; an entry that another
// process removed with its directory is not missed, unless it is a tree.
func (u *undo) withoutParent(s *swapping, name string, slot dir, err error) error {
	if slot.h != nil || !isOthers(err) {
		return err
	}
	if !s.tree {
		return nil
	}
	if _, _, missing := u.ours(s, name); missing != nil {
		return err
	}
	return nil
}

// displaced finds the entry that a swap has displaced; slot is closed if there is none. It is
// the old entry, or one that had replaced it, or one that had replaced the new entry.
func (u *undo) displaced(s *swapping, name string) (slot dir, was pathsafe.Stat, err error) {
	parts := []dir{u.olds, u.news}
	if !s.tree { // otherwise new may have other entries at that name
		parts = parts[:1]
	}
	for _, in := range parts {
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
		if identityOf(st) != identityOf(was) || st.Mode.IsDir() {
			if !u.keep {
				return dir{}, st, errCrowded
			}
			if err := u.setAside(in, name, s); err != nil {
				return dir{}, st, err
			}
			continue
		}
		if err := in.unlink(name); err != nil { // a crash has left it with both names
			return dir{}, st, err
		}
	}
	return slot, was, nil
}

// retrieve takes back a new entry whose name was free before. The name could be replaced
// between a look and a removal, so the entry is first moved out of reach of other processes,
// and then checked again.
func (u *undo) retrieve(i int, in dir, name string) error {
	s, to := &u.swaps[i], u.news
	base := s.path.Base()
	if !s.tree {
		to = u.olds
	}
	if to.h != nil {
		if st, err := to.stat(name); err == nil && s.fresh.is(st) && !st.Mode.IsDir() {
			return in.unlink(base) // a crash has left it with both names
		}
		err := in.shift(base, to, name)
		if err == nil {
			return u.provenNew(s, to, name, func() error {
				err := to.shift(name, in, base)
				if u.keep && errors.Is(err, fs.ErrExist) {
					err = u.setAside(to, name, s)
				}
				return err
			})
		}
		if s.tree {
			return err
		}
	}
	u.discardAt(i, in, base) // staging is gone, or full: compare and remove in place
	return nil
}

// ours finds the new entry in staging: fs.ErrNotExist if it is not there.
func (u *undo) ours(s *swapping, name string) (in dir, st pathsafe.Stat, err error) {
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

// swapBack replaces the new entry by the displaced one.
func (u *undo) swapBack(i int, in, slot dir, name string) error {
	s := &u.swaps[i]
	base := s.path.Base()
	err := slot.exchange(name, in, base)
	if err == nil {
		return u.provenNew(s, slot, name, func() error {
			if u.keep {
				return u.setAside(slot, name, s)
			}
			return slot.exchange(name, in, base)
		})
	}
	if slot == u.news || !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	if err := u.retrieve(i, in, name); err != nil {
		return err
	}
	return slot.shift(name, in, base)
}

// provenNew requires an entry that was taken from a name to be the new one: otherwise another
// process has replaced it between the look and the move, and it goes back.
func (u *undo) provenNew(s *swapping, in dir, name string, back func() error) error {
	st, err := in.stat(name)
	if err != nil {
		return err
	}
	if s.fresh.is(st) {
		return nil
	}
	switch {
	case u.keep:
		return back()
	case !s.tree:
		return both(errForeign, back())
	}
	return both(errNoWayBack, back())
}

// discardTrees removes the trees that were made. After PREPARED other processes could reach
// them: a tree that has changed stays.
func (u *undo) discardTrees() {
	if u.trees() == 0 {
		return
	}
	if u.phase < phasePrepared {
		if u.news.h != nil {
			u.note(newsName, u.removeAll(u.news))
		}
		return
	}
	for i := range u.swaps {
		if s := &u.swaps[i]; s.tree {
			u.note(s.path.String(), u.discard(s, strconv.Itoa(i)))
		}
	}
	if u.err() == nil { // a half-removed tree must not be compared again
		u.note(trashName, errors.Join(u.news.sync(), u.olds.sync(), u.trash.sync()))
	}
	if u.err() == nil {
		u.note(trashName, u.removeAll(u.trash))
	}
}

// discard moves a new entry to the trash. If it is not in staging, it was discarded before, or
// another process took it; if it is there twice, a crash has left it with both names.
func (u *undo) discard(s *swapping, name string) error {
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

func (u *undo) discardFrom(in dir, s *swapping, name string) error {
	err := s.untouched(in, name)
	if u.keep && errors.Is(err, errTouched) {
		return nil // it is kept
	}
	if u.keep && err == nil && fs.FileMode(s.fresh.Type).IsRegular() {
		open, _, openErr := in.isWritten(name)
		if openErr != nil || open {
			return openErr
		}
	}
	if err != nil {
		return err
	}
	return in.shift(name, u.trash, name)
}

// untouched requires the new entry to be at a name, unchanged.
func (s *swapping) untouched(in dir, name string) error {
	now, err := fingerprint(in, name)
	if err == nil && now != s.print {
		err = errTouched
	}
	return err
}

// both is errors.Join on one line.
func both(err, other error) error {
	if err == nil || other == nil {
		return errors.Join(err, other)
	}
	return fmt.Errorf("%w; %w", err, other)
}

// targets checks every target of a commit once more. An existing target is foreign; it stays,
// and the state from before is not reached.
func (u *undo) targets() {
	if u.revived && u.phase < phasePrepared {
		return
	}
	missing := ""
	for i := range u.plan.files {
		path := u.plan.files[i].path
		if missing != "" && strings.HasPrefix(path.String(), missing) {
			continue // below a directory that is not there
		}
		missing = ""
		if s := &u.swaps[u.plan.files[i].top]; s.goes {
			u.note(path.String(), u.isBack(s))
			continue
		}
		site, err := u.root.survey(path)
		u.noteTarget(path.String(), site.Exists, err)
		if up := parents(path); err == nil && site.Missing < len(up) {
			missing = up[site.Missing].String() + "/"
		}
	}
	for i := u.firstArtifact(); i < len(u.swaps); i++ {
		path := u.swaps[i].path
		if old := u.leaving(path); old != nil {
			u.note(path.String(), u.isBack(old))
			continue
		}
		site, err := u.root.survey(path)
		u.noteTarget(path.String(), site.Exists, err)
	}
}

// leaving returns the swap of the entry that an artifact replaces; nil for none.
func (a *attempt) leaving(path pathsafe.Path) *swapping {
	for i := range a.swaps {
		if s := &a.swaps[i]; s.goes && !s.comes && s.path == path {
			return s
		}
	}
	return nil
}

// isBack requires that the new file of a replacement is no longer at its name, unchanged: the
// old file is back, or a newer entry is there.
func (u *undo) isBack(s *swapping) error {
	in, err := u.parentDir(s)
	if err != nil {
		return err
	}
	defer in.close()
	st, err := in.stat(s.path.Base())
	if err != nil || !s.fresh.is(st) {
		return gone(err)
	}
	return u.lostUnlessEdited(s, in)
}

func (u *undo) noteTarget(path string, exists bool, err error) {
	if err == nil && exists {
		err = errTaken
	}
	u.note(path, err)
}

// halt marks the root as halted until an operator acts. The journal alone is not enough: it
// may also come from a kill, and the next session then tries to end the attempt. An error is
// ignored, since nothing else can be done.
func (a *attempt) halt() {
	if a.stage.h == nil {
		return
	}
	f, err := a.stage.create(HaltedName, ownFile)
	if errors.Is(err, fs.ErrNotExist) { // another process removed the staging directory
		f, err = a.haltAnew()
	}
	if err == nil {
		_ = a.s.closeFile(f)
		_ = a.stage.sync()
		_ = a.root.sync()
	}
}

func (a *attempt) haltAnew() (*os.File, error) {
	if err := a.root.mkdirOwn(a.stageName); err != nil {
		return nil, err
	}
	stage, err := a.root.enter(a.stageName)
	if err != nil {
		return nil, err
	}
	a.stage.close()
	a.stage = stage
	return stage.create(HaltedName, ownFile)
}

// kept adds to an error where an entry is that could not be put back.
func kept(err error, name string) error {
	return fmt.Errorf("%w; what is left of it is kept in %q", err, name)
}
