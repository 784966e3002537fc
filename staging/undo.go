package staging

import (
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

// errForeign is why something stays that bears a name of ours (decision D14).
var errForeign = errors.New("is not of this commit, so it stays")

// An undo removes what an attempt made. It goes on after an error and keeps
// the first.
type undo struct {
	*attempt
	inRoot, inStage cache
	placed          []bool // by top: it is at its target
	asides          int
	first           error
	count           int
}

func newUndo(a *attempt) *undo {
	return &undo{
		attempt: a,
		inRoot:  cache{base: a.root},
		inStage: cache{base: a.stage},
		placed:  make([]bool, len(a.plan.tops)),
	}
}

func (u *undo) close() {
	u.inRoot.close()
	u.inStage.close()
}

func (u *undo) isPlaced(top int) bool { return top != none && u.placed[top] }

func (u *undo) note(path string, err error) {
	if err == nil {
		return
	}
	if u.count++; u.count == 1 {
		u.first = fmt.Errorf("%q: %w", path, err)
	}
}

func (u *undo) err() error {
	if u.count > 1 {
		return fmt.Errorf("%w (and %d more)", u.first, u.count-1)
	}
	return u.first
}

// removeFile removes a file of ours from a directory where others may work at
// the same time. Between a look and an unlink the name could come to mean
// another file; so the file is first moved aside, where nobody else comes, and
// looked at again. What proves to be foreign is put back.
func (u *undo) removeFile(in dir, name string, m *mark) error {
	st, err := in.stat(name)
	if err != nil {
		return err
	}
	if !m.is(st) {
		return errForeign
	}
	u.asides++
	aside := asidePrefix + strconv.Itoa(u.asides)
	if u.stage.h == nil || in.rename(name, u.stage, aside) != nil {
		return in.unlink(name) // staging is gone: what was seen has to do
	}
	st, err = u.stage.stat(aside)
	if err == nil && m.is(st) {
		return u.stage.unlink(aside)
	}
	if err == nil {
		err = errForeign
	}
	return errors.Join(err, u.stage.rename(aside, in, name))
}

// removeStaged removes a file below staging, where only we work. Its identity
// may be unknown: then making it went wrong half-way.
func (u *undo) removeStaged(in dir, name string, m *mark) error {
	st, err := in.stat(name)
	if err != nil {
		return err
	}
	if m.known && !m.is(st) {
		return errForeign
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

// stageDir removes the staging directory with what is left of the artifacts.
func (u *undo) stageDir() {
	if !u.stageMark.tried {
		return
	}
	u.hold()
	u.note(u.stageName(), gone(removeDir(u.root, u.stageName(), &u.stageMark, true)))
}

func (u *undo) hold() {
	if !u.holdMark.tried {
		return
	}
	hold, err := u.openHold()
	if err != nil {
		u.note(holdName, gone(err))
		return
	}
	defer hold.close()
	for i := range u.attempt.artifacts {
		if p := &u.attempt.artifacts[i]; p.staged.tried {
			u.note(p.name, gone(u.removeStaged(hold, p.name, &p.staged)))
		}
	}
	u.note(holdName, gone(removeDir(u.stage, holdName, &u.holdMark, true)))
}

func (u *undo) manifest() {
	if u.manifestMark.tried {
		u.note(u.manifestName(), gone(u.removeStaged(u.root, u.manifestName(), &u.manifestMark)))
	}
}
