package staging

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

var (
	errNameTaken  = machine.Disturbed("the path is taken, so the earlier file cannot be put back")
	errOldMissing = machine.Disturbed("the earlier file is no longer in staging")
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
// is left (SPECTRUM-06 section 8.5.1). A name that a reset had not swapped yet is ignored,
// whatever other processes did with it; for a commit no target may exist. The order is that of
// section 8.5.2: signs of success are removed first, signs of an unfinished attempt last. The
// journal is removed when everything else is durably gone; while it exists the root is not
// clean.
func (a *attempt) undo() error {
	root := a.takeRootTime()
	err := a.despiteMounts(func() error {
		u := &undo{attempt: a}
		switch err := a.enterRollingBack(); {
		case err != nil:
			u.note(rollingBackName, err)
		case a.stage.H == nil: // nothing else was made
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
		a.restoreRootTime(root)
	}
	return err
}

// everything restores all old entries, durably, before anything that was made is removed: a
// power cut during the undo of a reset must not leave the removal alone.
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
		u.undoSwaps()
	}
	if prepared {
		u.restoreDirs()
	}
	u.discardMade()
	if u.err() == nil {
		u.discardTrees()
	}
	u.targets()
	if u.err() == nil && (!u.isCommit() || slices.ContainsFunc(u.swaps, func(s swapping) bool { return s.hasOld })) {
		u.note(keepingName, u.keepRest())
	}
	if u.err() == nil && u.phase >= phasePrepared {
		u.restoreTimes()
	}
	if u.err() == nil {
		u.note(u.stageName, u.removeStaging())
	}
	if u.err() == nil {
		u.unpin()
		u.lastTouch(func(d *staying) Metadata { return d.have })
	}
}

// undoSwaps undoes all swaps that may have been made, in reverse order.
func (u *undo) undoSwaps() {
	for i := range slices.Backward(u.swaps) {
		if s := &u.swaps[i]; s.isLast() && s.hasNew && u.phase >= s.since {
			u.note(s.path.String(), u.takeLast(s))
		}
	}
	for _, last := range []bool{false, true} {
		for i := range slices.Backward(u.swaps) {
			s := &u.swaps[i]
			if s.last != last || u.phase < s.since {
				continue
			}
			var err error
			switch {
			case !u.isCommit():
				err = u.restoreOld(s)
			case s.hasOld:
				err = u.reinstate(s)
			default:
				err = u.retract(i)
			}
			u.note(s.path.String(), err)
		}
	}
}

// openDirsAgain makes the directories that stay, and those to be removed that exist,
// accessible to their owner, from the top.
func (u *undo) openDirsAgain() {
	for i := range slices.Backward(u.swaps) {
		if s := &u.swaps[i]; s.isClosed() {
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
		if s.hasOld && fs.FileMode(s.old.Type).IsDir() && s.was.Mode&0o300 != 0o300 { // one that was killed while it moved this may have left another mode
			u.note(s.path.String(), errors.Join(u.setMode(s, s.was.Mode|0o200, s.was.Mode), u.setMode(s, s.was.Mode|0o300, s.was.Mode)))
		}
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
	if s.remake == nil || !s.hasOld {
		return nil
	}
	in, err := u.parentDir(s)
	if err != nil {
		return gone(err)
	}
	defer in.Close()
	st, err := in.Stat(s.path.Base())
	if err != nil || s.old.is(st) || !st.Mode.IsDir() {
		return gone(err)
	}
	again, err := in.enter(s.path.Base())
	if err != nil {
		return err
	}
	defer again.Close()
	return errors.Join(again.give(*s.remake), again.Sync())
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
	for i := range u.copies.files {
		path := u.copies.files[i].path
		if missing != "" && strings.HasPrefix(path.String(), missing) {
			continue // below a directory that is not there
		}
		missing = ""
		if s := &u.swaps[u.copies.files[i].top]; s.hasOld {
			u.note(path.String(), u.requireUndone(s))
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
			u.note(path.String(), u.requireUndone(old))
			continue
		}
		site, err := u.root.survey(path)
		u.noteTarget(path.String(), site.Exists, err)
	}
}

// leaving returns the swap of the entry that an artifact replaces; nil for none.
func (a *attempt) leaving(path pathsafe.Path) *swapping {
	for i := range a.swaps {
		if s := &a.swaps[i]; s.hasOld && !s.hasNew && s.path == path {
			return s
		}
	}
	return nil
}

// requireUndone requires that the new file of a replacement is no longer at its name, unchanged: the
// old file is back, or a newer entry is there.
func (u *undo) requireUndone(s *swapping) error {
	in, err := u.parentDir(s)
	if err != nil {
		return err
	}
	defer in.Close()
	st, err := in.Stat(s.path.Base())
	if err != nil || !s.fresh.is(st) {
		return gone(err)
	}
	return u.missingUnlessEdited(s, in)
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
	if a.stage.H == nil {
		return
	}
	f, err := a.stage.Create(HaltedName, ownFile)
	if errors.Is(err, fs.ErrNotExist) { // another process removed the staging directory
		var anew dir
		if err = a.root.mkdirOwn(a.stageName); err == nil {
			anew, err = a.root.enter(a.stageName)
		}
		if err == nil {
			a.stage.Close()
			a.stage = anew
			f, err = anew.Create(HaltedName, ownFile)
		}
	}
	if err == nil {
		_ = a.s.CloseFile(f)
		_ = a.stage.Sync()
		_ = a.root.Sync()
	}
}

// leftIn adds to an error where an entry is that could not be put back.
func leftIn(err error, name string) error {
	return fmt.Errorf("%w; the rest of it is kept in %q", err, name)
}
