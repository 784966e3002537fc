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
// made, and directories only empty. What is foreign stays, with the directories that lead to
// it (decision D14).

// A span is the part of a plan that moves with one swap.
type span struct{ files, dirs [2]int }

// spans are those of all swaps: neighbours in the order of the plan.
func (a *attempt) spans() []span {
	all := make([]span, len(a.swaps))
	grow := func(part *[2]int, i int) {
		if part[1] == 0 {
			part[0] = i
		}
		part[1] = i + 1
	}
	for i := range a.plan.dirs {
		if top := a.plan.dirs[i].top; top != none {
			grow(&all[top].dirs, i)
		}
	}
	for i := range a.plan.files {
		grow(&all[a.plan.files[i].top].files, i)
	}
	return all
}

// discardMade removes all that a commit has made: what never left staging, and what moveBack
// has taken from its name. What is left of the latter gets its name back.
func (u *undo) discardMade() {
	if u.plan == nil { // before INTENT there is nothing else
		u.note(manifestStaged, gone(u.removeOwn(u.stage, manifestStaged, &mark{}, nil)))
		return
	}
	for i := range u.swaps {
		s := &u.swaps[i]
		if in := u.slotOf(s); in.h != nil {
			u.note(s.path.String(), gone(u.removeOwn(in, s.name, &s.mark, nil)))
		}
	}
	if u.news.h != nil {
		u.prune(u.news, span{[2]int{0, len(u.plan.files)}, [2]int{0, len(u.plan.dirs)}}, func(int) bool { return true }, "", "")
	}
	u.discardTaken()
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

// discardTaken removes what was taken from its name, as far as it is ours.
func (u *undo) discardTaken() {
	if u.olds.h == nil {
		return
	}
	names, err := u.olds.names()
	u.note(oldsName, gone(err))
	spans := u.spans()
	for _, name := range names {
		i, err := strconv.Atoi(name)
		if err != nil || i < 0 || i >= len(u.swaps) || strconv.Itoa(i) != name {
			continue // it is foreign, and found when the directory is to go
		}
		s := &u.swaps[i]
		if s.since == phasePrepared {
			u.prune(u.olds, spans[i], func(top int) bool { return top == i }, s.path.String(), name)
		} else {
			u.note(s.path.String(), gone(u.removeOwn(u.olds, name, &s.mark, s.check)))
		}
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

// discardAt removes what a swap has put at its name in a directory, there.
func (u *undo) discardAt(i int, in dir) {
	s := &u.swaps[i]
	if s.since == phasePrepared {
		u.prune(in, u.spans()[i], func(top int) bool { return top == i }, s.path.String(), s.path.Base())
		return
	}
	u.note(s.path.String(), gone(u.removeOwn(in, s.path.Base(), &s.mark, s.check)))
}

// prune removes files of the plan, and then directories, deepest first, beneath base, where
// instead of the path from another name may stand. In new, where nobody but this attempt
// works, what was made half-way is known by its name alone.
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
		f, m := &u.spec.Files[i], &u.plan.files[i].mark
		each(f.Path, func(in dir, name string) error {
			switch {
			case private:
				return u.removeOwn(in, name, m, nil)
			case !m.known:
				return errForeign
			case !u.revived:
				return u.removeOwn(in, name, m, nil)
			}
			return u.removeOwn(in, name, m, f.Check)
		})
	}
	for i := part.dirs[1] - 1; i >= part.dirs[0]; i-- {
		if d := &u.plan.dirs[i]; wanted(d.top) {
			each(d.path, func(in dir, name string) error { return removeDir(in, name, &d.mark, private) })
		}
	}
}

// removeOwn removes a file that is ours, by its identity and, where time has passed, by its
// content: somebody may have written into it since, and then it is not ours alone. An
// identity that is not known will do only where the name is proof enough: then making it went
// wrong half-way.
func (u *undo) removeOwn(in dir, name string, m *mark, check check) error {
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
func removeDir(in dir, name string, m *mark, private bool) error {
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

// syncNames makes the removals from the names of a commit durable.
func (u *undo) syncNames() {
	var dirs []pathsafe.Path
	for i := range u.swaps {
		if u.phase >= u.swaps[i].since {
			dirs = append(dirs, parent(u.swaps[i].path))
		}
	}
	u.note("", syncDirs(dirs, u.root))
}
