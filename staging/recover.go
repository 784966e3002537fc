package staging

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

// Mode says on whose behalf a root is recovered.
type Mode int

const (
	// Automatic means that the next command ends what a kill or a crash has
	// interrupted. A root that is halted stays so.
	Automatic Mode = iota
	// Person means that somebody asked for it. A halted root is tried again.
	Person
	// Acknowledged means that somebody has looked, and takes the root as it will be.
	// What can be undone is undone, also by a journal of this user that another key has
	// made; what cannot stays, and nothing halts the root any longer.
	Acknowledged
)

// Outcome says what became of an attempt that was found.
type Outcome struct {
	Attempt string // its identity, a UUID
	Kind    string // KindCommit, or that of the Exchange; "exchange" where its journal cannot tell
	Result  Result
	// Left is why something of it or in its way is left: with Released, and with
	// Completed where it is in nobody's way.
	Left error
	// Cause is why a commit whose files were all in place was rolled back nevertheless:
	// what stands there is not what it put there.
	Cause error
}

// Result is how a recovery ended.
type Result int

const (
	// RolledBack means that nothing of the attempt is left, and no target of it exists.
	RolledBack Result = iota + 1
	// Completed means that all of its files and artifacts are in place.
	Completed
	// Cleared means that it had ended, one way or the other, or had not begun; only its
	// staging directory was left.
	Cleared
	// Released means that its journal is void, and what is left is nobody's.
	Released
)

var resultNames = [...]string{RolledBack: "rolled back", Completed: "completed", Cleared: "cleared away", Released: "released"}

// String returns the result as words.
func (r Result) String() string {
	if r < RolledBack || r > Released {
		return "result " + strconv.Itoa(int(r))
	}
	return resultNames[r]
}

// HaltError says that an unfinished attempt stands in a root and cannot be
// ended without a person.
type HaltError struct {
	Attempt string // its identity, a UUID
	Kind    string // as in Outcome
	Staging string // the name of its staging directory in the root
	Err     error
}

// Error names the staging directory and the cause.
func (e *HaltError) Error() string {
	return fmt.Sprintf("an unfinished %s is in the way (%q): %v", strings.ReplaceAll(e.Kind, "_", " "), e.Staging, e.Err)
}

// Unwrap returns the cause.
func (e *HaltError) Unwrap() error { return e.Err }

// ErrHalted is the cause of a HaltError where an earlier rollback has failed.
var ErrHalted = errors.New("its rollback failed, and nobody has acted since")

// Recover ends what earlier attempts left in the root: it rolls each one back,
// or completes it if its journal says COMMITTED. It may be killed at any point
// and called again. The outcomes are those of the attempts that were ended; the
// error is a [*HaltError] where one cannot be ended, or several joined: what
// stands in the way of one keeps no other from its end.
func (l *Session) Recover(ctx context.Context, mode Mode) ([]Outcome, error) {
	names, err := l.root.names()
	if err != nil {
		return nil, err
	}
	var outcomes []Outcome
	var halts []error
	for _, name := range names {
		var err error
		if id, ok := exchangeOf(name); ok {
			t := &trade{s: l.s, log: l.Log, key: l.key, id: id, kind: kindExchange, base: l.root, stageName: name}
			outcomes, err = l.recoverTrade(t, mode, outcomes)
		} else if id, ok := attemptOf(name); ok {
			outcomes, err = l.recoverCommit(ctx, id, mode, outcomes)
		}
		if err != nil {
			halts = append(halts, err)
		}
	}
	if len(halts) == 1 {
		return outcomes, halts[0]
	}
	return outcomes, errors.Join(halts...)
}

// recoverCommit ends a commit and adds what became of it.
func (l *Session) recoverCommit(ctx context.Context, id string, mode Mode, outcomes []Outcome) ([]Outcome, error) {
	outcome := Outcome{Attempt: id, Kind: KindCommit}
	if err := l.end(ctx, &outcome, mode); err != nil {
		return outcomes, &HaltError{id, KindCommit, stagePrefix + id, err}
	}
	if outcome.Result != 0 {
		outcomes = append(outcomes, outcome)
	}
	return outcomes, nil
}

// attemptOf reads the name of a staging directory.
func attemptOf(name string) (id string, ok bool) {
	id, ok = strings.CutPrefix(name, stagePrefix)
	return id, ok && isUUID(id)
}

func isUUID(id string) bool {
	parsed, err := uuid.Parse(id)
	return err == nil && parsed.String() == id
}

// end ends one attempt. The outcome has no result if this is none.
func (l *Session) end(ctx context.Context, o *Outcome, mode Mode) error {
	a := &attempt{s: l.s, log: l.Log, root: l.root, key: l.key, id: o.Attempt, revived: true, plan: &plan{}}
	defer a.close()
	f, err := a.find()
	if err != nil || !f.isOne {
		return err
	}
	if l.Refuse != nil {
		return l.Refuse
	}
	if l.Halted != nil {
		f.halted = f.halted || l.Halted(o.Attempt)
	}
	if f.halted && mode == Automatic {
		return ErrHalted
	}
	release := a.release
	if err = a.reviveFor(&f, mode); err != nil {
		release = func() error { return a.stage.setAside(f.names) }
	} else {
		o.Result, err = a.endRevived(ctx, f.ended)
		o.Cause = a.cause
	}
	if err == nil || mode != Acknowledged {
		return err
	}
	o.Result, o.Left = Released, err
	if l.Log != nil {
		if err := l.Log.Released(o.Attempt, o.Kind, o.Left); err != nil {
			return err
		}
	}
	return release()
}

// found is what stands under the name of a staging directory.
type found struct {
	isOne   bool // it is one, as far as can be seen
	halted  bool
	intent  bool
	strange bool   // there is more in it than the journal
	ended   Result // how, if nothing but the last records are left
	mine    bool   // nobody but this user can have made what is in it
	uid     uint32
	names   []string
}

// find opens a staging directory. Without a record of a journal it is none, and
// stays, if this user did not make it or if it holds what no attempt puts there
// before INTENT.
func (a *attempt) find() (f found, err error) {
	st, err := a.root.stat(a.stageName())
	if err != nil || !st.Mode.IsDir() {
		return f, gone(err)
	}
	if a.stage, err = a.root.openName(a.stageName()); err != nil {
		return f, err
	}
	if st, err = a.stage.statSelf(); err != nil {
		return f, err
	}
	a.stageMark.see(st, anySize)
	a.stageMark.tried = true
	if f.names, err = a.stage.names(); err != nil {
		return f, err
	}
	f.uid, f.mine = st.UID, st.Private()
	f.sort()
	return f, nil
}

// sort tells what the names say.
func (f *found) sort() {
	has := func(name string) bool { return slices.Contains(f.names, name) }
	f.intent, f.halted, f.ended = has(intentName), has(haltedName), Cleared
	if has(committedName) {
		f.ended = Completed
	}
	strange := func(name string) bool { return !ofJournal(name) && name != manifestStaged }
	f.strange = slices.ContainsFunc(f.names, strange)
	f.isOne = f.halted || slices.ContainsFunc(journalNames, has) || f.mine && !f.strange
}

// reviveFor reads the journal, with the trust that the mode has.
func (a *attempt) reviveFor(f *found, mode Mode) error {
	key := a.key
	switch {
	case !f.mine:
		return fmt.Errorf("it belongs to user %d, or is open to others", f.uid)
	case mode == Acknowledged:
		key = nil
	}
	if f.intent {
		return a.revive(key)
	}
	if f.strange {
		return errors.New("its journal has lost INTENT")
	}
	a.manifestMark.tried = true // nothing had begun, or all had ended
	return a.believe(key)
}

// believe wants the records that are there without INTENT to be of this attempt.
func (a *attempt) believe(key []byte) error {
	var prepared preparedRecord
	var committed committedRecord
	for _, r := range []struct {
		name    string
		record  any
		attempt *string
	}{
		{preparedName, &prepared, &prepared.Attempt},
		{committedName, &committed, &committed.Attempt},
		{rollingBackName, &committed, &committed.Attempt},
	} {
		found, err := a.stage.read(key, r.name, r.record)
		if err != nil {
			return err
		}
		if found && *r.attempt != a.id {
			return errUnfit
		}
	}
	return nil
}

// isMismatch reports whether an error of [attempt.forward] says that what stands in the
// root is not what the attempt put there, or is in its way. What else can go wrong is no
// reason to take a commit back that may have been announced: to read and to place is
// tried again by the next recovery.
func isMismatch(err error) bool {
	for _, is := range []error{
		errReplaced, errChanged, errAccess, fs.ErrNotExist, fs.ErrExist, unix.ENOTDIR,
		pathsafe.ErrNotRegular, pathsafe.ErrSymlink, pathsafe.ErrEscape, pathsafe.ErrCrossesMount,
	} {
		if errors.Is(err, is) {
			return true
		}
	}
	return false
}

// endRevived rolls back or goes forward, as the journal says.
func (a *attempt) endRevived(ctx context.Context, ended Result) (Result, error) {
	if a.phase >= phaseCommitted { // what it builds on must not be lost again
		if err := a.stage.sync(); err != nil {
			return 0, err
		}
	}
	if a.phase == phaseNone {
		return ended, a.clear(ended)
	}
	if a.phase != phaseCommitted {
		return RolledBack, a.rollback()
	}
	placed, err := a.placedAll()
	if err != nil {
		return 0, err
	}
	if !placed {
		err := a.forward(ctx)
		if isMismatch(err) {
			a.cause = err
			if back := a.rollback(); back != nil {
				return 0, both(back, err)
			}
			return RolledBack, nil
		}
		if err != nil { // of the machine: it says nothing of the restore, which may have been seen already
			return 0, err
		}
	}
	if err := a.syncArtifacts(); err != nil {
		return 0, err
	}
	if err := a.completed(); err != nil {
		return 0, err
	}
	return Completed, a.cleanUp()
}

// clear removes what is left of an attempt that had ended, or had not begun.
func (a *attempt) clear(ended Result) error {
	if ended == Completed {
		if err := a.completed(); err != nil {
			return err
		}
	}
	return a.rollback()
}

// placedAll tells whether every artifact has left staging. It then stood at its
// name, and what became of it since is not ours to judge.
func (a *attempt) placedAll() (bool, error) {
	hold, err := a.stage.openName(holdName)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer hold.close()
	for i := range a.artifacts {
		_, err := hold.stat(strconv.Itoa(i))
		if err == nil {
			return false, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
	}
	return true, nil
}

// forward is what is left of steps 6 and 7.
func (a *attempt) forward(ctx context.Context) error {
	a.plan.order = byRank(a.spec.Files)
	for i := range a.spec.Files {
		if a.spec.Files[i].Check == nil {
			return errUnfit
		}
	}
	if err := a.verify(ctx); err != nil {
		return err
	}
	if err := a.place(); err != nil {
		return err
	}
	return nil
}

// release makes a journal void whose attempt could not be undone altogether:
// what is left of it stays.
func (a *attempt) release() error {
	left, err := a.stage.names()
	if err != nil {
		return err
	}
	for _, name := range left { // to the first that stays: some records without the others tell of less than was done
		if !ofJournal(name) {
			continue
		}
		if err := gone(a.stage.unlink(name)); err != nil {
			return err
		}
	}
	if err := a.stage.sync(); err != nil {
		return err
	}
	u := newUndo(a)
	defer u.close()
	u.stageDir() // where it is empty
	return nil
}

// voidSuffix marks the records of a journal that was set aside.
const voidSuffix = ".void"

// setAside makes the journal in a staging directory void that cannot be believed.
// Nothing is removed: its maker may still want it. INTENT is the first, durably:
// without it the other records lead neither back nor forward.
func (d dir) setAside(names []string) error {
	for _, first := range []bool{true, false} {
		for _, name := range names {
			if !ofJournal(name) || (name == intentName) != first {
				continue
			}
			if err := d.rename(name, d, name+voidSuffix); err != nil {
				return err
			}
		}
		if err := d.sync(); err != nil {
			return err
		}
	}
	return nil
}
