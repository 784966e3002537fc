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

// A span is the part of a plan that moves with one swap.
type span struct{ files, dirs [2]int }

// span is that of a swap: neighbours in the order of the plan.
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
	for k := range u.plan.dirs {
		if top := u.plan.dirs[k].top; top != none {
			grow(&all[top].dirs, k)
		}
	}
	for k := range u.plan.files {
		grow(&all[u.plan.files[k].top].files, k)
	}
	u.spans = all
	return all[i]
}

// discardMade removes everything that a commit has made: what never left staging, and what
// moveBack has taken from its name. Whatever cannot be removed gets its name back.
func (u *undo) discardMade() {
	if !u.known { // before INTENT there is nothing else
		u.note(manifestStaged, gone(u.removeOwn(u.stage, manifestStaged, &created{}, nil)))
		return
	}
	for i := range u.swaps {
		s := &u.swaps[i]
		if in := u.slotOf(s); in.h != nil {
			u.note(s.path.String(), gone(u.removeOwn(in, s.name, &s.created, nil)))
		}
	}
	if u.news.h != nil {
		u.prune(u.news, span{[2]int{0, len(u.plan.files)}, [2]int{0, len(u.plan.dirs)}}, func(int) bool { return true }, "", "")
	}
	u.discardTaken()
	u.syncNames()
}

// slotOf is where in staging a swap has its own file; none for a top.
func (u *undo) slotOf(s *swapping) dir {
	switch s.since {
	case phaseIntent:
		return u.stage
	case phaseCommitted:
		return u.hold
	}
	return dir{}
}

// discardTaken removes what was taken from its name, if it is this attempt's own.
func (u *undo) discardTaken() {
	if u.olds.h == nil {
		return
	}
	names, err := u.olds.names()
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
		if !s.comes || s.tree {
			continue
		}
		if u.phase < s.since { // nothing was at its name yet
			u.note(oldsName+"/"+name, errForeign)
			continue
		}
		u.discardAt(i, u.olds, name)
		if _, err := u.olds.stat(name); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		in, err := u.parentDir(s)
		if err == nil {
			err = u.olds.shift(name, in, s.path.Base())
			in.close()
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

// prune removes files of the plan, and then directories, deepest first, beneath base, where
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
		if !wanted(u.plan.files[i].top) {
			continue
		}
		f := &u.plan.files[i]
		each(f.path, func(in dir, name string) error {
			if private {
				return u.removeOwn(in, name, &f.created, nil)
			}
			return u.removeMoved(in, name, &f.created, f.Check)
		})
	}
	for i := part.dirs[1] - 1; i >= part.dirs[0]; i-- {
		if d := &u.plan.dirs[i]; wanted(d.top) {
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
	st, err := in.stat(name)
	if err != nil {
		return err
	}
	if m.known && !m.is(st) {
		return errForeign
	}
	if check == nil {
		return in.unlink(name)
	}
	f, st, err := in.openFile(name)
	if errors.Is(err, fs.ErrPermission) { // its own bits forbid reading: the identity has to do
		return in.unlink(name)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if !m.is(st) {
		return errForeign
	}
	err = u.s.do("check", name, func() error { return check(context.Background(), f) })
	if errors.Is(err, errChanged) {
		return fmt.Errorf("%w: %w", errForeign, err)
	}
	if err != nil {
		return err
	}
	return in.unlink(name)
}

// removeDir removes a directory of ours, if it is empty. An unknown identity
// will do only where the name is proof enough (private).
func removeDir(in dir, name string, m *created, private bool) error {
	st, err := in.stat(name)
	if err != nil {
		return err
	}
	if !m.is(st) && (m.known || !private) {
		return errForeign
	}
	err = in.rmdir(name)
	if errors.Is(err, unix.ENOTEMPTY) {
		return fmt.Errorf("it holds something that is not of this commit: %w", err)
	}
	return err
}

// syncNames makes the removals from the names of files durable.
func (u *undo) syncNames() {
	var dirs []pathsafe.Path
	for i := range u.swaps {
		if s := &u.swaps[i]; s.comes && !s.tree && u.phase >= s.since {
			dirs = append(dirs, parent(s.path))
		}
	}
	if len(dirs) > 0 {
		u.note("", syncDirs(dirs, u.root))
	}
}
