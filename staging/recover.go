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

// Mode is the authority under which a root is recovered.
type Mode int

const (
	// Automatic means that the next command ends what a kill or a crash has
	// interrupted. A root that is halted stays so.
	Automatic Mode = iota
	// Person means that an operator asked for the recovery. A halted root is tried again.
	Person
	// Acknowledged means that an operator has inspected the root and accepts it as the
	// recovery leaves it. What can be undone is undone, also by a journal of this user that
	// was made with another key; what cannot be undone stays, and the root is no longer
	// halted.
	Acknowledged
)

// Outcome is the result for an attempt that was found.
type Outcome struct {
	Attempt string // its identity, a UUID
	Kind    string // KindCommit, or that of the [Change]; "rollback_or_restore" where its journal cannot tell
	Result  Result
	// Left is the reason why entries of the attempt, or foreign entries in its way, are left:
	// with Released, and with Completed if they block nothing.
	Left error
	// Cause is the reason why a commit whose files were all in place was rolled back
	// nevertheless: an entry is not the one that it put there.
	Cause error
	// Kept lists the entries that are kept in the root, as Left names it: other processes put or
	// changed them at the names of the attempt. Which of the marks of a Kept apply is known only of
	// those that this recovery has kept.
	Kept []Kept
	// Stayed lists the old entries that a completed attempt was to remove and that are still there,
	// children first.
	Stayed []Stayed
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
	// Released means that the journal is void, and that what is left belongs to no attempt.
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

// HaltError reports that a root has an unfinished attempt that only an operator can end.
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
var ErrHalted = errors.New("an earlier rollback failed; operator action required")

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
	kept    error // why its rest is kept, after a release
}

// Unfinished lists the attempts in the root, in the order of their names. Each must be
// resolved before anything else is done there:
//
//	end, err := u.Resolve(ctx, mode)
//	... // the caller records the outcome
//	end, err = u.Forget()
func (r *Root) Unfinished() ([]*Unfinished, error) {
	names, err := r.dir.Names()
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

// Halt returns the error for an attempt that cannot be ended.
func (u *Unfinished) Halt(err error) *HaltError {
	return &HaltError{u.Attempt, u.Kind, u.Staging, err}
}

// Resolve rolls the attempt back, or completes it if its journal has COMMITTED. It may be
// killed at any point and called again. The journal of a completed attempt stays until Forget.
// The error is the reason why it cannot be ended; see [Unfinished.Release].
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

// hold takes the lock of the root, and that of the staging directory. An attempt that was read
// without the lock may have ended since, so it is read again.
func (u *Unfinished) hold(ctx context.Context) error {
	if u.root.lock.f == nil {
		// If the lock file is missing and there is no space for it, the lock of the attempt
		// must do.
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

// Release is Resolve for an attempt that cannot be ended, for the given reason, after an
// operator has acknowledged that: the journal becomes void, and what is left of the attempt
// stays. An attempt that cannot be read has nothing to release.
func (u *Unfinished) Release(why error) Outcome {
	u.end = Outcome{Attempt: u.Attempt, Kind: u.Kind, Result: Released, Left: why}
	if u.found.mine && u.a.holdsAny(&u.found) { // otherwise another process may still need it
		u.kept = why
		u.end.Left = leftIn(why, keptPrefix+u.Attempt)
	}
	return u.end
}

// Forget removes the journal of an attempt that was resolved, or makes it void if it was
// released. It returns how the attempt has ended.
func (u *Unfinished) Forget() (Outcome, error) {
	var err error
	switch u.end.Result {
	case Completed:
		u.end.Stayed = u.a.standing()
		err = u.a.cleanUpOrKeep()
		u.end.Left = u.a.left
	case Released:
		u.root.lock.writes()
		if u.found.mine {
			err = u.a.keepStaging()
			if u.kept != nil {
				u.end.Left = leftIn(u.kept, u.a.stageName)
			}
		} else {
			err = u.void()
		}
	}
	if err != nil {
		return Outcome{}, err
	}
	if u.end.Left == nil {
		u.end.Left = u.a.keptBefore()
		u.end.Kept = u.a.keptAll()
	}
	u.a.unpin()
	return u.end, nil
}

// kindReset is the kind of an attempt whose journal cannot be read, and that is not a
// commit.
const kindReset = "rollback_or_restore"

// attemptOf reads the name of a staging directory; the kind is "" where it is none.
func attemptOf(name string) (id, kind string) {
	if id, ok := strings.CutPrefix(name, stagePrefix); ok && isUUID(id) {
		return id, KindCommit
	}
	if id, ok := strings.CutPrefix(name, resetPrefix); ok && isUUID(id) {
		return id, kindReset
	}
	return "", ""
}

func isUUID(id string) bool {
	parsed, err := uuid.Parse(id)
	return err == nil && parsed.String() == id
}

// found is the content of a directory with the name of a staging directory.
type found struct {
	isOne   bool // it is one, as far as can be seen
	halted  bool
	intent  bool
	strange bool // there is more in it than the journal
	mine    bool // only this user can have made its content
	uid     uint32
	names   []string
}

// find opens a staging directory. A directory without a journal record is not one, and stays,
// if this user did not make it or if it holds entries that no attempt makes before INTENT. Nor
// is one of another user; root, who may open it, decides by its content.
func (a *attempt) find() (f found, err error) {
	st, err := a.root.Stat(a.stageName)
	if err != nil || !st.Mode.IsDir() || passedOver(st) {
		return f, gone(err)
	}
	if a.stage, err = a.root.enter(a.stageName); err != nil {
		return f, unlessForeign(st, err)
	}
	if st, err = a.stage.StatSelf(); err != nil || passedOver(st) {
		return f, err
	}
	a.stageCreated.see(st, anySize)
	a.stageCreated.tried = true
	if f.names, err = a.stage.Names(); err != nil {
		return f, unlessForeign(st, err)
	}
	f.uid, f.mine = st.UID, st.Private()
	f.sort()
	return f, nil
}

// isForeign reports whether a staging directory belongs to neither this user nor root. No
// attempt of this user has made it, since each requires to own its directory.
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

// sort classifies the names.
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

// isMismatch reports whether an error of [attempt.forward] means that an entry in the root is
// not what the attempt put there, or is in its way. Other errors do not justify undoing a
// commit that may have been announced: the next recovery reads and places again.
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

// endRevived rolls back or forward, depending on the journal.
func (a *attempt) endRevived(ctx context.Context) (Result, error) {
	a.lock.writes()
	if err := a.stage.Sync(); err != nil { // the next steps rely on it being durable
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
	return Completed, err // a fault of the machine: the result may already have been seen
}

// cleanUpOrKeep is cleanUp for a staging directory that may hold entries that cannot be
// removed, such as an immutable file. The attempt is complete, and such an entry does not halt
// the root: the directory gets a visible name.
func (a *attempt) cleanUpOrKeep() error {
	err := a.cleanUp()
	if a.isCommit() || !errors.Is(err, unix.EPERM) {
		return err
	}
	why := err
	if err := a.keepStaging(); err != nil {
		return err
	}
	a.left = leftIn(why, a.stageName)
	return nil
}

// keepStaging gives the staging directory a name under which it is one no more.
func (a *attempt) keepStaging() error {
	name, err := a.showAs(a.root, a.stageName)
	if err != nil {
		return err
	}
	a.stageName = name
	if err := a.root.Sync(); err != nil {
		return err
	}
	return a.emptyJournal()
}

// holdsAny reports whether staging holds anything but the journal, or cannot be read.
func (a *attempt) holdsAny(f *found) bool {
	own := []string{newsName, oldsName, trashName, holdName}
	if slices.ContainsFunc(f.names, func(name string) bool { return !ofJournal(name) && !slices.Contains(own, name) }) {
		return true
	}
	if err := a.openParts(); err != nil {
		return true
	}
	for _, d := range a.parts() {
		if d.H == nil {
			continue
		}
		if names, err := d.Names(); err != nil || len(names) > 0 {
			return true
		}
	}
	return false
}

// emptyJournal removes the records and empty directories of a void staging directory.
func (a *attempt) emptyJournal() error {
	names, err := a.stage.Names()
	if err != nil {
		return err
	}
	for _, name := range names {
		if ofJournal(name) {
			err = errors.Join(err, gone(a.stage.Unlink(name)))
		}
	}
	for name := range a.parts() {
		_ = a.stage.Rmdir(name)
	}
	_ = a.root.Rmdir(a.stageName)
	return err
}

func ofJournal(name string) bool {
	return name == HaltedName || slices.Contains(journalNames, strings.TrimSuffix(name, newSuffix))
}
