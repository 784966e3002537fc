package staging

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// recoverTrade ends an exchange and adds what became of it.
func (l *Session) recoverTrade(t *trade, mode Mode, outcomes []Outcome) ([]Outcome, error) {
	defer t.close()
	outcome := Outcome{}
	err := l.endTrade(t, &outcome, mode)
	if err != nil {
		return outcomes, &HaltError{t.id, t.kind, t.stageName, err}
	}
	if outcome.Result != 0 {
		outcome.Attempt, outcome.Kind = t.id, t.kind
		outcomes = append(outcomes, outcome)
	}
	return outcomes, nil
}

// endTrade ends one exchange. The outcome has no result if this is none.
func (l *Session) endTrade(t *trade, o *Outcome, mode Mode) error {
	f, err := t.find()
	if err != nil || !f.isOne {
		return err
	}
	if l.Refuse != nil {
		return l.Refuse
	}
	if f.mine {
		t.peek()
	}
	if l.Halted != nil {
		f.halted = f.halted || l.Halted(t.id)
	}
	if f.halted && mode == Automatic {
		return ErrHalted
	}
	if err = t.reviveFor(&f, mode); err == nil {
		o.Result, err = t.endRevived()
		o.Left = t.left
	}
	if err == nil || mode != Acknowledged {
		return err
	}
	return t.release(&f, o, err)
}

// find opens a staging directory, as that of a commit is.
func (t *trade) find() (f found, err error) {
	st, err := t.base.stat(t.stageName)
	if err != nil || !st.Mode.IsDir() {
		return f, gone(err)
	}
	if t.stage, err = t.base.enter(t.stageName); err != nil {
		return f, err
	}
	if st, err = t.stage.statSelf(); err != nil {
		return f, err
	}
	t.stageMark.see(st, anySize)
	t.stageMark.tried = true
	if f.names, err = t.stage.names(); err != nil {
		return f, err
	}
	f.uid, f.mine = st.UID, st.Private()
	f.sort()
	return f, nil
}

// reviveFor reads the journal, with the trust that the mode has.
func (t *trade) reviveFor(f *found, mode Mode) error {
	key := t.key
	switch {
	case !f.mine:
		return fmt.Errorf("it belongs to user %d, or is open to others", f.uid)
	case mode == Acknowledged:
		key = nil
	}
	if f.strange && !f.intent {
		return errors.New("its journal has lost INTENT")
	}
	return t.revive(key)
}

// endRevived rolls back or goes forward, as the journal says.
func (t *trade) endRevived() (Result, error) {
	if err := t.stage.sync(); err != nil { // what it builds on must not be lost again
		return 0, err
	}
	if t.phase == phaseCommitted {
		if err := t.completed(); err != nil {
			return 0, err
		}
		return Completed, t.cleanUpOrKeep()
	}
	result := RolledBack
	if t.phase == phaseNone {
		result = Cleared
	}
	return result, t.undo()
}

// keptPrefix begins the name of what a released exchange has left: it is to be
// seen.
const keptPrefix = "spectrum-kept-"

// release makes a journal void whose exchange could not be undone altogether, or
// cannot be believed. What went is somebody's data, so nothing of what staging
// holds is removed: it gets a name that can be seen.
func (t *trade) release(f *found, o *Outcome, why error) error {
	id := t.id
	o.Result, o.Left = Released, why
	if t.holdsAny(f) {
		o.Left = kept(why, keptPrefix+id)
	}
	if !f.mine { // its maker may still want it
		o.Left = why
	}
	if t.log != nil {
		if err := t.log.Released(id, t.kind, o.Left); err != nil {
			return err
		}
	}
	if !f.mine {
		return t.stage.setAside(f.names)
	}
	return t.keep(id)
}

// cleanUpOrKeep is cleanUp for what may hold something that nobody can remove, like an
// immutable file: all is done, and that is no reason to halt a root. It gets a name
// that can be seen.
func (t *trade) cleanUpOrKeep() error {
	err := t.cleanUp()
	if !errors.Is(err, unix.EPERM) {
		return err
	}
	t.left = kept(err, keptPrefix+t.id)
	return t.keep(t.id)
}

// keep gives the staging directory a name under which it is one no more.
func (t *trade) keep(id string) error {
	if err := t.base.rename(t.stageName, t.base, keptPrefix+id); err != nil {
		return err
	}
	t.stageName = keptPrefix + id
	if err := t.base.sync(); err != nil {
		return err
	}
	return t.emptyJournal()
}

// holdsAny tells whether staging holds anything but the journal; if it cannot be
// seen it may.
func (t *trade) holdsAny(f *found) bool {
	if slices.ContainsFunc(f.names, func(name string) bool { return !ofJournal(name) && !slices.Contains(partNames, name) }) {
		return true
	}
	if err := t.openParts(); err != nil {
		return true
	}
	for _, d := range []dir{t.news, t.olds, t.trash} {
		if d.h == nil {
			continue
		}
		if names, err := d.names(); err != nil || len(names) > 0 {
			return true
		}
	}
	return false
}

// emptyJournal removes what nobody needs of a staging directory that is one no
// more: the records and what is empty.
func (t *trade) emptyJournal() error {
	names, err := t.stage.names()
	if err != nil {
		return err
	}
	for _, name := range names {
		if ofJournal(name) {
			err = errors.Join(err, gone(t.stage.unlink(name)))
		}
	}
	for _, name := range partNames {
		_ = t.stage.rmdir(name)
	}
	_ = t.base.rmdir(t.stageName)
	return err
}
