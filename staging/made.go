package staging

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

// What a commit has made is removed file by file, each only if it is the very inode that was
// made, and directories only if empty. Foreign entries stay, with the directories that lead to
// them.

// A span is the part of the copies that moves with one swap.
type span struct{ files, dirs [2]int }

// span is that of a swap: neighbours in the order of the copies.
func (u *undo) span(i int) span {
	if u.spans != nil {
		return u.spans[i]
	}
	all := make([]span, len(u.swaps))
	grow := func(part *[2]int, i int) {
		if part[1] == 0 {
			part[0] = i
		}
		part[1] = i + 1
	}
	for k := range u.copies.dirs {
		if top := u.copies.dirs[k].top; top != none {
			grow(&all[top].dirs, k)
		}
	}
	for k := range u.copies.files {
		grow(&all[u.copies.files[k].top].files, k)
	}
	u.spans = all
	return all[i]
}

// retract takes what a commit has put at a name that was free before. The name could be replaced
// between a look and a removal, so the entry is first moved out of reach of other processes, and
// then looked at again: any other one goes back.
func (u *undo) retract(i int) error {
	s, name := &u.swaps[i], strconv.Itoa(i)
	base, isForeign := s.path.Base(), false
	var waits pathsafe.Stat
	if u.olds.H != nil {
		var err error
		waits, err = u.olds.Stat(name)
		if gone(err) != nil {
			return err
		}
		isForeign = err == nil && !s.fresh.is(waits) // it had the name when an undo was killed here
	}
	in, err := u.parentDir(s)
	if !isForeign && isOthers(err) {
		return nil // with what was in it
	}
	if err != nil {
		return err
	}
	defer in.Close()
	st, err := in.Stat(base)
	if gone(err) != nil {
		return err
	}
	isFree, isOurs := err != nil, err == nil && s.fresh.is(st)
	switch {
	case isForeign && isFree:
		return u.olds.shift(name, in, base)
	case isForeign && isOurs:
		return fmt.Errorf("%s/%s: %w", oldsName, name, errForeign)
	case isForeign && identityOf(waits) == identityOf(st) && !st.Mode.IsDir():
		return u.olds.Unlink(name) // a crash has left it with both names
	case isForeign:
		return errNameTaken
	case !isOurs:
		return nil // it was not moved yet, or was taken back before
	case u.olds.H == nil:
		u.discardAt(i, in, base)
		return nil
	case s.fresh.is(waits) && !waits.Mode.IsDir():
		return in.Unlink(base) // a crash has left it with both names
	}
	if in.shift(base, u.olds, name) != nil { // the disk is full, for one: compare and remove in place
		u.discardAt(i, in, base)
		return nil
	}
	st, err = u.olds.Stat(name)
	if err == nil && !s.fresh.is(st) {
		err = both(errForeign, u.olds.shift(name, in, base))
	}
	return err
}

// discardMade removes everything that a commit has made: what never left staging, and what
// undoSwaps has taken from its name. Whatever cannot be removed gets its name back.
func (u *undo) discardMade() {
	if !u.known { // before INTENT there is nothing else
		u.note(manifestStaged, gone(u.removeOwn(u.stage, manifestStaged, &created{}, nil)))
		return
	}
	var names []pathsafe.Path // the directories of the names that files had
	for i := range u.swaps {
		s := &u.swaps[i]
		in := dir{} // in staging, of a file of its own; none for a top
		switch s.since {
		case phaseIntent:
			in = u.stage
		case phaseCommitted:
			in = u.hold
		}
		if in.H != nil {
			u.note(s.path.String(), gone(u.removeOwn(in, s.name, &s.created, nil)))
		}
		if s.hasNew && !s.tree && u.phase >= s.since {
			names = append(names, parent(s.path))
		}
	}
	if u.news.H != nil {
		u.prune(u.news, span{[2]int{0, len(u.copies.files)}, [2]int{0, len(u.copies.dirs)}}, func(int) bool { return true }, "", "")
	}
	u.discardTaken()
	if len(names) > 0 {
		u.note("", syncDirs(names, u.root))
	}
}

// discardTaken removes what was taken from its name, if it is this attempt's own.
func (u *undo) discardTaken() {
	if u.olds.H == nil {
		return
	}
	names, err := u.olds.Names()
	u.note(oldsName, gone(err))
	for _, name := range names {
		i, err := strconv.Atoi(name)
		if err != nil || i < 0 || i >= len(u.swaps) || strconv.Itoa(i) != name {
			continue // it is foreign, and found when the directory is to go
		}
		s := &u.swaps[i]
		if u.displacesForCommit(s) {
			u.note(s.path.String(), gone(u.discardReplacing(s)))
			continue
		}
		if !s.hasNew || s.tree {
			continue
		}
		if u.phase < s.since { // nothing was at its name yet
			u.note(oldsName+"/"+name, errForeign)
			continue
		}
		u.discardAt(i, u.olds, name)
		if _, err := u.olds.Stat(name); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		in, err := u.parentDir(s)
		if err == nil {
			err = u.olds.shift(name, in, s.path.Base())
			in.Close()
		}
		u.note(s.path.String(), err)
	}
}

// discardAt removes what a swap has made from a name in a directory, as far as it is ours.
func (u *undo) discardAt(i int, in dir, name string) {
	s := &u.swaps[i]
	if s.since == phasePrepared {
		u.prune(in, u.span(i), func(top int) bool { return top == i }, s.path.String(), name)
		return
	}
	u.note(s.path.String(), gone(u.removeMoved(in, name, &s.created, s.check)))
}

// prune removes copied files, and then directories, deepest first, beneath base, where
// another name may replace the path from. In new, which no other user can enter, a half-made
// entry is recognised by its name alone.
func (u *undo) prune(base dir, part span, wanted func(top int) bool, from, to string) {
	at := cache{base: base}
	defer at.close()
	private := base == u.news
	each := func(path pathsafe.Path, remove func(in dir, name string) error) {
		here, err := pathsafe.Found(to + path.String()[len(from):])
		var in dir
		if err == nil {
			in, err = at.open(parent(here))
		}
		if err == nil {
			err = remove(in, here.Base())
		}
		u.note(path.String(), gone(err))
	}
	for i := part.files[0]; i < part.files[1]; i++ {
		if !wanted(u.copies.files[i].top) {
			continue
		}
		f := &u.copies.files[i]
		each(f.path, func(in dir, name string) error {
			if private {
				return u.removeOwn(in, name, &f.created, nil)
			}
			return u.removeMoved(in, name, &f.created, f.Check)
		})
	}
	for i := part.dirs[1] - 1; i >= part.dirs[0]; i-- {
		if d := &u.copies.dirs[i]; wanted(d.top) {
			each(d.path, func(in dir, name string) error { return removeDir(in, name, &d.created, private) })
		}
	}
}

// removeMoved removes a file that other processes could reach, if it is this attempt's own. If
// time has passed, another process may have written to it, and it is then foreign.
func (u *undo) removeMoved(in dir, name string, m *created, check check) error {
	switch {
	case !m.known:
		return errForeign
	case !u.revived:
		check = nil
	}
	return u.removeOwn(in, name, m, check)
}

// removeOwn removes a file that matches its recorded identity and, unless check is nil, its
// content. An unknown identity is accepted only where the name is proof enough: the file was
// only half made.
func (u *undo) removeOwn(in dir, name string, m *created, check check) error {
	st, err := in.Stat(name)
	if err != nil {
		return err
	}
	if m.known && !m.is(st) {
		return errForeign
	}
	if check == nil {
		return in.Unlink(name)
	}
	f, st, err := in.OpenFile(name)
	if errors.Is(err, fs.ErrPermission) { // its own bits forbid reading: the identity has to do
		return in.Unlink(name)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if !m.is(st) {
		return errForeign
	}
	err = u.s.Do("check", name, func() error { return check(context.Background(), f) })
	if errors.Is(err, errChanged) {
		return fmt.Errorf("%w: %w", errForeign, err)
	}
	if err != nil {
		return err
	}
	return in.Unlink(name)
}

// removeDir removes a directory of ours, if it is empty. An unknown identity
// will do only where the name is proof enough (private).
func removeDir(in dir, name string, m *created, private bool) error {
	st, err := in.Stat(name)
	if err != nil {
		return err
	}
	if !m.is(st) && (m.known || !private) {
		return errForeign
	}
	err = in.Rmdir(name)
	if errors.Is(err, unix.ENOTEMPTY) {
		return fmt.Errorf("it contains a file that the commit did not create: %w", err)
	}
	return err
}
