package staging

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/spectrumfs/spectrum/internal/machine"
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
	Kind    string // KindCommit, or that of the [Change]; "exchange" where its journal cannot tell
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
	Staging string // the name of its staging directory in the root; "" where that was removed
	Err     error
}

// Error names the staging directory and the cause.
func (e *HaltError) Error() string {
	if e.Staging == "" {
		return fmt.Sprintf("%s %s was not ended: %v", strings.ReplaceAll(e.Kind, "_", " "), e.Attempt, e.Err)
	}
	return fmt.Sprintf("an unfinished %s is in the way (%q): %v", strings.ReplaceAll(e.Kind, "_", " "), e.Staging, e.Err)
}

// Unwrap returns the cause.
func (e *HaltError) Unwrap() error { return e.Err }

// ErrHalted is the cause of a HaltError where an earlier rollback has failed.
var ErrHalted = errors.New("its rollback failed, and nobody has acted since")

// An Unfinished is an attempt that a kill, a crash or a failed rollback has left in a root.
type Unfinished struct {
	Attempt string // its identity, a UUID
	Kind    string // as in Outcome
	Staging string // the name of its staging directory in the root
	Err     error  // why it cannot be looked at; Resolve returns it
	root    *Root
	a       *attempt // while it is resolved
	found   found
	end     Outcome
	kept    error // why what is left of it is kept, of one that is released
}

// Unfinished lists the attempts that stand in the root, in the order of their names. Each is
// to be resolved before anything else is done there:
//
//	end, err := u.Resolve(ctx, mode)
//	... // the caller records what became of it
//	end, err = u.Forget()
func (r *Root) Unfinished() ([]*Unfinished, error) {
	names, err := r.dir.names()
	if err != nil {
		return nil, err
	}
	var all []*Unfinished
	r.seen, r.lock.keep = map[string]bool{}, 0
	for _, name := range names {
		if strings.HasPrefix(name, lockPrefix) && !r.lock.quiet {
			r.lock.clear(name)
		}
		id, kind := attemptOf(name)
		if kind == "" {
			continue
		}
		r.seen[name] = true
		u := &Unfinished{Attempt: id, Kind: kind, Staging: name, root: r}
		if u.Err = u.open(); u.Err == nil && u.found.mine {
			u.a.peek()
		}
		u.Kind = u.a.kind
		u.Close()
		if u.Err != nil || u.found.isOne {
			all = append(all, u)
			r.lock.keep++
		}
	}
	return all, nil
}

// open looks at the staging directory.
func (u *Unfinished) open() (err error) {
	u.a = &attempt{s: u.root.s, key: u.root.key, id: u.Attempt, kind: u.Kind, root: u.root.dir, lock: u.root.lock, stageName: u.Staging, revived: true, pinned: true}
	u.found, err = u.a.find()
	return err
}

// Close gives up the handles that Resolve has opened.
func (u *Unfinished) Close() {
	if u.a != nil {
		u.a.close()
	}
}

// Halt returns the error that says that the attempt cannot be ended.
func (u *Unfinished) Halt(err error) *HaltError {
	return &HaltError{u.Attempt, u.Kind, u.Staging, err}
}

// Resolve rolls the attempt back, or completes it if its journal says COMMITTED. It may be
// killed at any point and called again. Of a completed one the journal stays until Forget. The
// error says why it cannot be ended; see [Unfinished.Release].
func (u *Unfinished) Resolve(ctx context.Context, mode Mode) (Outcome, error) {
	u.end = Outcome{Attempt: u.Attempt, Kind: u.Kind}
	if u.Err != nil {
		return Outcome{}, u.Err
	}
	if u.Err = u.open(); u.Err != nil || !u.found.isOne {
		return u.hasGone()
	}
	if u.found.halted && mode == Automatic {
		return Outcome{}, ErrHalted
	}
	if err := u.hold(ctx); err != nil {
		return Outcome{}, err
	}
	if !u.found.isOne {
		return u.hasGone()
	}
	if err := u.a.reviveFor(&u.found, mode); err != nil {
		return Outcome{}, err
	}
	u.Kind = u.a.kind
	u.end.Kind = u.Kind
	result, err := u.a.endRevived(ctx)
	if err != nil {
		return Outcome{}, err
	}
	u.end.Result, u.end.Cause = result, u.a.cause
	return u.end, nil
}

// hasGone: it could not be looked at, or was ended by another process.
func (u *Unfinished) hasGone() (Outcome, error) {
	if u.Err == nil {
		u.a.unpin()
	}
	return Outcome{}, u.Err
}

// hold takes the lock of the root, and that of the staging directory. What was seen without the
// lock may have ended since, and is looked at again.
func (u *Unfinished) hold(ctx context.Context) error {
	if u.root.lock.f == nil {
		// Where the lock is missing and there is no room for it, that of the attempt has to do.
		if err := u.root.Hold(ctx); err != nil && !machine.IsFull(err) {
			return err
		}
		u.a.close()
		if u.Err = u.open(); u.Err != nil || !u.found.isOne {
			return u.Err
		}
	}
	if !u.found.mine {
		return nil
	}
	return u.root.lock.poll(ctx, u.Staging, func() error {
		if err := u.a.stage.lock(); errors.Is(err, pathsafe.ErrLocked) {
			return err
		}
		return nil // it is the second lock, and some file systems lock no directories
	})
}

// Displaced is what the attempt has displaced, once Resolve has completed it, until Forget. It
// is that of [Tx.Displaced].
func (u *Unfinished) Displaced() (*pathsafe.Dir, []Displaced) {
	if u.end.Result != Completed {
		return nil, nil
	}
	return u.a.olds.h, u.a.displacedAll()
}

// Release is Resolve for an attempt that cannot be ended, for the reason given, when a person
// has acknowledged that: its journal is to be void, and what is left of it stays. Of one that
// cannot be looked at there is nothing to release.
func (u *Unfinished) Release(why error) Outcome {
	u.end = Outcome{Attempt: u.Attempt, Kind: u.Kind, Result: Released, Left: why}
	if u.found.mine && u.a.holdsAny(&u.found) { // else its maker may still want it
		u.kept = why
		u.end.Left = kept(why, keptPrefix+u.Attempt)
	}
	return u.end
}

// Forget removes the journal of an attempt that was resolved, or makes it void if it was
// released. It returns how the attempt has ended.
func (u *Unfinished) Forget() (Outcome, error) {
	var err error
	switch u.end.Result {
	case Completed:
		err = u.a.cleanUpOrKeep()
		u.end.Left = u.a.left
	case Released:
		u.root.lock.wrote = true
		if u.found.mine {
			err = u.a.keepStaging()
			if u.kept != nil {
				u.end.Left = kept(u.kept, u.a.stageName)
			}
		} else {
			err = u.setAside()
		}
	}
	if err != nil {
		return Outcome{}, err
	}
	if u.end.Left == nil {
		u.end.Left = u.a.keptBefore()
	}
	u.a.unpin()
	return u.end, nil
}

// kindExchange stands for the kind of an attempt whose journal cannot be read, and that is not
// a commit.
const kindExchange = "rollback_or_restore"

// attemptOf reads the name of a staging directory; the kind is "" where it is none.
func attemptOf(name string) (id, kind string) {
	if id, ok := strings.CutPrefix(name, stagePrefix); ok && isUUID(id) {
		return id, KindCommit
	}
	if id, ok := strings.CutPrefix(name, exchangePrefix); ok && isUUID(id) {
		return id, kindExchange
	}
	return "", ""
}

func isUUID(id string) bool {
	parsed, err := uuid.Parse(id)
	return err == nil && parsed.String() == id
}

// found is what stands under the name of a staging directory.
type found struct {
	isOne   bool // it is one, as far as can be seen
	halted  bool
	intent  bool
	strange bool // there is more in it than the journal
	mine    bool // nobody but this user can have made what is in it
	uid     uint32
	names   []string
}

// find opens a staging directory. Without a record of a journal it is none, and
// stays, if this user did not make it or if it holds what no attempt puts there
// before INTENT. Nor is one of another user; root, who may open it, goes by what is in it.
func (a *attempt) find() (f found, err error) {
	st, err := a.root.stat(a.stageName)
	if err != nil || !st.Mode.IsDir() || passedOver(st) {
		return f, gone(err)
	}
	if a.stage, err = a.root.enter(a.stageName); err != nil {
		return f, unlessForeign(st, err)
	}
	if st, err = a.stage.statSelf(); err != nil || passedOver(st) {
		return f, err
	}
	a.stageCreated.see(st, anySize)
	a.stageCreated.tried = true
	if f.names, err = a.stage.names(); err != nil {
		return f, unlessForeign(st, err)
	}
	f.uid, f.mine = st.UID, st.Private()
	f.sort()
	return f, nil
}

// isForeign reports whether a staging directory belongs to neither this user nor root: no attempt
// of this user has made it, since each wants the directory that it makes to be its own.
func isForeign(st pathsafe.Stat) bool { return st.UID != 0 && int(st.UID) != os.Geteuid() }

// passedOver reports whether a staging directory is never opened.
func passedOver(st pathsafe.Stat) bool { return isForeign(st) && os.Geteuid() != 0 }

// unlessForeign is the error of opening a staging directory; nil where it is foreign, and keeps
// even root out, as one without capabilities.
func unlessForeign(st pathsafe.Stat, err error) error {
	if isForeign(st) && errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// sort tells what the names say.
func (f *found) sort() {
	has := func(name string) bool { return slices.Contains(f.names, name) }
	f.intent, f.halted = has(intentName), has(HaltedName)
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
	if f.strange && !f.intent {
		return errors.New("its journal has lost INTENT")
	}
	return a.revive(key)
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
func (a *attempt) endRevived(ctx context.Context) (Result, error) {
	a.lock.wrote = true
	if err := a.stage.sync(); err != nil { // what it builds on must not be lost again
		return 0, err
	}
	switch a.phase {
	case phaseNone:
		return Cleared, a.undo()
	case phaseCommitted:
	default:
		return RolledBack, a.undo()
	}
	err := a.forward(ctx)
	if isMismatch(err) && !isMount(err) {
		a.cause = err
		if back := a.undo(); back != nil {
			return 0, both(back, err)
		}
		return RolledBack, nil
	}
	if err == nil {
		err = a.syncArtifacts()
	}
	return Completed, err // of the machine: it says nothing of what was done, which may have been seen already
}

// cleanUpOrKeep is cleanUp for what may hold something that nobody can remove, like an
// immutable file: all is done, and that is no reason to halt a root. It gets a name
// that can be seen.
func (a *attempt) cleanUpOrKeep() error {
	err := a.cleanUp()
	if a.isCommit() || !errors.Is(err, unix.EPERM) {
		return err
	}
	why := err
	if err := a.keepStaging(); err != nil {
		return err
	}
	a.left = kept(why, a.stageName)
	return nil
}

// keepStaging gives the staging directory a name under which it is one no more.
func (a *attempt) keepStaging() error {
	name, err := a.showAs(a.root, a.stageName)
	if err != nil {
		return err
	}
	a.stageName = name
	if err := a.root.sync(); err != nil {
		return err
	}
	return a.emptyJournal()
}

// holdsAny tells whether staging holds anything but the journal; if it cannot be
// seen it may.
func (a *attempt) holdsAny(f *found) bool {
	own := []string{newsName, oldsName, trashName, holdName}
	if slices.ContainsFunc(f.names, func(name string) bool { return !ofJournal(name) && !slices.Contains(own, name) }) {
		return true
	}
	if err := a.openParts(); err != nil {
		return true
	}
	for _, d := range a.parts() {
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
func (a *attempt) emptyJournal() error {
	names, err := a.stage.names()
	if err != nil {
		return err
	}
	for _, name := range names {
		if ofJournal(name) {
			err = errors.Join(err, gone(a.stage.unlink(name)))
		}
	}
	for name := range a.parts() {
		_ = a.stage.rmdir(name)
	}
	_ = a.root.rmdir(a.stageName)
	return err
}

func ofJournal(name string) bool {
	return name == HaltedName || slices.Contains(journalNames, strings.TrimSuffix(name, newSuffix))
}
