package action

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
)

// A recovery ends the attempts in a root, and records the outcome.
type recovery struct {
	*Root
	mode     staging.Mode
	open     []string // ids of the actions of which the log has no end
	ended    []staging.Outcome
	stand    []error // of the attempts that cannot be ended
	recorded error
}

// recover ends the attempts in the root. In a foreign root nothing is ended.
func (r *Root) recover(ctx context.Context, mode staging.Mode, foreign *ForeignError) ([]staging.Outcome, error) {
	unfinished, err := r.lock.Unfinished()
	if err != nil {
		return nil, err
	}
	open, err := r.history.open()
	if err != nil {
		return nil, err
	}
	rec := &recovery{Root: r, mode: mode, open: open}
	gone, err := r.removed(unfinished, open)
	for _, halt := range gone {
		if foreign != nil || mode != staging.Acknowledged {
			rec.stand = append(rec.stand, r.unhalted(halt))
			continue
		}
		if err := r.history.released(halt.Attempt, halt.Err); err != nil {
			rec.stand = append(rec.stand, halt)
			continue
		}
		rec.ended = append(rec.ended, staging.Outcome{Attempt: halt.Attempt, Kind: halt.Kind, Result: staging.Released, Left: halt.Err})
		rec.recorded = errors.Join(rec.recorded, r.entry.Halts.Release(halt.Attempt))
	}
	if err != nil {
		return rec.ended, err
	}
	for _, u := range unfinished {
		if foreign != nil {
			rec.stand = append(rec.stand, u.Halt(foreign))
		} else if err := rec.one(ctx, u); err != nil {
			return rec.ended, err
		}
	}
	err = errors.Join(rec.stand...)
	if len(rec.stand) == 1 {
		err = rec.stand[0]
	}
	if err = errors.Join(err, rec.recorded); err != nil {
		return rec.ended, errors.Join(err, r.history.halted(err))
	}
	r.lock.Yield() // the next one may begin
	completed, err := r.endRecords(ctx)
	return append(rec.ended, completed...), errors.Join(err, r.history.logNewest())
}

// one ends an attempt, or notes why it cannot be ended. An error ends the recovery.
func (rec *recovery) one(ctx context.Context, u *staging.Unfinished) error {
	aside, err := rec.isReleased(u, rec.mode)
	if err != nil {
		return err
	}
	if aside {
		rec.ended = append(rec.ended, rec.asReleased(u))
		return nil
	}
	halts, isMarked := rec.entry.Halts, rec.hasMark(u.Staging)
	if isMarked && rec.mode != staging.Automatic && halts != nil { // a kill leaves none of what has ended
		rec.recorded = errors.Join(rec.recorded, halts.Release(u.Attempt))
	}
	end, err := rec.end(ctx, u, rec.mode)
	u.Close()
	switch {
	case isA[*staging.BusyError](err), errors.Is(err, staging.ErrOvertaken):
		return err
	case err != nil:
		rec.stand = append(rec.stand, rec.unhalted(u.Halt(err)))
		if rec.hasMark(u.Staging) && halts != nil && slices.Contains(rec.open, u.Attempt) {
			rec.recorded = errors.Join(rec.recorded, halts.Halt(u.Attempt)) // it holds, whatever becomes of the mark in the root
		}
	case end.Result != 0: // otherwise it was removed meanwhile
		rec.ended = append(rec.ended, end)
		rec.recorded = errors.Join(rec.recorded, rec.history.ended(end))
		if halts != nil {
			rec.recorded = errors.Join(rec.recorded, halts.Release(end.Attempt))
		}
	}
	return nil
}

// errRemoved reports that the root has no entry of the attempt that could be ended or that
// shows what was changed.
var errRemoved error = removed{}

type removed struct{}

func (removed) Error() string {
	return "it is half done, and its staging directory was removed from the root; if you have it, put it back"
}

// Is reports whether the root is halted by it.
func (removed) Is(target error) bool { return target == staging.ErrHalted }

// removed returns the attempts that halt the root only by their marks in the state directory:
// the log has no end of them, and the root has no entry of them any more. If everything is as
// it was before an attempt, since a power cut or a lost journal of the file system has
// reverted it, it halts nothing.
func (r *Root) removed(unfinished []*staging.Unfinished, open []string) (halts []*staging.HaltError, err error) {
	if r.entry.Halts == nil {
		return nil, nil
	}
	for _, id := range open {
		if slices.ContainsFunc(unfinished, func(u *staging.Unfinished) bool { return u.Attempt == id }) {
			continue
		}
		halted, unknown := r.entry.Halts.Halted(id)
		if unknown != nil {
			err = errors.Join(err, unknown)
		} else if halted && (!r.isAsBefore(id) || r.isLost(id)) { // a snapshot of all of it does not list what was not there
			halts = append(halts, &staging.HaltError{Attempt: id, Kind: "action", Err: errRemoved})
		}
	}
	return halts, err
}

// isAsBefore reports whether everything that the snapshot before an action has of the root is
// unchanged, with modes and owners, and absent names are still free. Times of directories are
// not compared, since other processes work in them.
func (r *Root) isAsBefore(id string) bool {
	if r.history.snapshots == nil {
		return false
	}
	before, err := beforeCommit(r.history.snapshots, r.history.root, id)
	if err != nil {
		return false
	}
	for e := range before.Entries() {
		if e.Path == "" {
			now, err := r.dir.Stat()
			if err != nil || !hasSameOwner(&now, &e) {
				return false
			}
			continue
		}
		at, err := pathsafe.Found(e.Path)
		if err != nil {
			return false
		}
		for at != (pathsafe.Path{}) { // with the directories above, as far as something is known of them
			was, err := before.At(at)
			if err != nil {
				break
			}
			if !r.isAs(at, &was) {
				return false
			}
			at, _ = at.Parent()
		}
	}
	return true
}

// isAs reports whether at a path is the very same as in an entry: the same file, a directory, or
// nothing.
func (r *Root) isAs(at pathsafe.Path, was *snapshot.Entry) bool {
	now, err := standing(r.dir, at)
	if was.Type == snapshot.Absent {
		return errors.Is(err, fs.ErrNotExist)
	}
	then := was.Stat()
	switch {
	case err != nil || !hasSameOwner(&now, was):
		return false
	case was.Type == snapshot.Dir:
		return now.Mode.IsDir()
	}
	isSameSize := was.Type != snapshot.File || now.Size == then.Size
	return now.Mode.Type() == then.Mode && now.ID.Ino == then.ID.Ino && isSameSize && now.ModTime.Equal(then.ModTime)
}

// hasSameOwner reports whether mode, owner and group are those of an entry. The mode of a link is
// none.
func hasSameOwner(now *pathsafe.Stat, was *snapshot.Entry) bool {
	return now.UID == was.UID && now.GID == was.GID && (now.Perm == was.Mode || was.Type == snapshot.Link)
}

// endRecords ends, in the records, attempts that have left nothing in the root. A running
// attempt has records too, so that takes the lock; without records the lock is not needed.
func (r *Root) endRecords(ctx context.Context) (completed []staging.Outcome, err error) {
	h := r.history
	left, err := h.hasOpen()
	if err != nil || !left {
		return nil, err
	}
	err = r.lock.Hold(ctx)
	if machine.IsFull(err) {
		return nil, nil // the next one to enter the root has another try
	}
	if err != nil {
		return nil, err
	}
	defer r.lock.Yield()
	ids, err := h.open()
	if err != nil {
		return nil, err
	}
	completed, halts, err := r.endLost(ids)
	if err != nil || len(halts) > 0 { // their drafts may be needed
		return completed, errors.Join(append(halts, err)...)
	}
	return completed, h.savepoints.dropAll(h.root, h.rootID)
}

// end ends one attempt. Its completion or release is recorded while its journal exists.
func (r *Root) end(ctx context.Context, u *staging.Unfinished, mode staging.Mode) (staging.Outcome, error) {
	if r.entry.Halts != nil && mode == staging.Automatic && u.Err == nil {
		if halted, err := r.entry.Halts.Halted(u.Attempt); halted {
			return staging.Outcome{}, cmp.Or(err, staging.ErrHalted)
		}
	}
	end, err := u.Resolve(ctx, mode)
	if err == nil && end.Result == staging.Completed {
		err = r.history.completed(u.Attempt, u.Kind)
	}
	if err == nil {
		end, err = u.Forget()
	}
	if err == nil || mode != staging.Acknowledged || u.Err != nil {
		return end, err
	}
	end = u.Release(err)
	if err := r.history.released(u.Attempt, end.Left); err != nil {
		return staging.Outcome{}, err
	}
	return u.Forget()
}

// ErrUnended reports an unfinished attempt in a root that must not be written to, so that it
// cannot be ended.
var ErrUnended = errors.New("an unfinished attempt in it must be recovered first")

// look requires that the root has no attempt to be ended. A halt is returned as the same error
// as elsewhere.
func (r *Root) look() error {
	unfinished, err := r.lock.Unfinished()
	if err != nil {
		return err
	}
	open, err := r.history.open()
	if err != nil {
		return err
	}
	gone, err := r.removed(unfinished, open)
	if len(gone) > 0 && !r.entry.Releases {
		return gone[0]
	}
	var stands []string
	for _, u := range unfinished {
		aside, released := r.isReleased(u, staging.Automatic)
		err = errors.Join(err, released)
		if aside {
			continue
		}
		if halt := u.Halt(staging.ErrHalted); r.isMarked(halt) {
			if r.entry.Releases {
				continue
			}
			return halt
		}
		whose := ""
		if st, err := r.dir.Lstat(u.Staging); err == nil && int(st.UID) != os.Geteuid() {
			whose = " of " + machine.UserText(int(st.UID))
		}
		stands = append(stands, fmt.Sprintf("%q%s", u.Staging, whose))
	}
	if len(stands) == 0 {
		return err
	}
	return fmt.Errorf("%q: %w: %s", r.history.root, ErrUnended, strings.Join(stands, ", "))
}

// An UnfinishedError is an attempt that could not be ended because of a fault of the machine.
// The root is not halted: the next session that enters it continues.
type UnfinishedError struct {
	Of *staging.HaltError // the entries of the root, and why; not wrapped, since it halts nothing
}

func (e *UnfinishedError) Error() string {
	return fmt.Sprintf("an unfinished %s in %q could not be ended: %v", strings.ReplaceAll(e.Of.Kind, "_", " "), e.Of.Staging, e.Of.Err)
}

// Unwrap returns the fault.
func (e *UnfinishedError) Unwrap() error { return e.Of.Err }

// UnfinishedOf returns the attempts that according to an error of [Enter] are not ended,
// including those of [HaltsOf]; each once, in the order of their names.
func UnfinishedOf(err error) (all []*staging.HaltError) {
	return haltsIn(err, true)
}

// HaltsOf returns the attempts that according to an error of [Enter] only an operator can end;
// each once, in the order of their names.
func HaltsOf(err error) (halts []*staging.HaltError) {
	return haltsIn(err, false)
}

func haltsIn(err error, unfinished bool) (all []*staging.HaltError) {
	switch e := err.(type) { //nolint:errorlint // errors.As finds the first, and all are wanted
	case *staging.HaltError:
		return []*staging.HaltError{e}
	case *UnfinishedError:
		if unfinished {
			return []*staging.HaltError{e.Of}
		}
		return haltsIn(e.Of.Err, unfinished)
	case interface{ Unwrap() error }:
		return haltsIn(e.Unwrap(), unfinished)
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			all = append(all, haltsIn(err, unfinished)...)
		}
	}
	return all
}

// unhalted returns the error that an attempt cannot be ended: an [*UnfinishedError] where a
// fault of the machine is the cause, and no mark halts the root.
func (r *Root) unhalted(halt *staging.HaltError) error {
	if isRefused(halt.Err) && !r.isHalted(halt) {
		return &UnfinishedError{halt}
	}
	return halt
}

// isRefused reports whether the system has rejected a call, so that it may succeed the next
// time, or when a mount in the way is gone. A faulty journal or a blocking entry is not such
// an error.
func isRefused(err error) bool {
	var errno syscall.Errno
	return machine.IsFault(err) || errors.Is(err, pathsafe.ErrCrossesMount) || errors.As(err, &errno) && machine.IsOrdinary(err)
}

// unmarked is an attempt that failed and could not be rolled back, and that nothing halts the
// root for: neither the root nor the state directory has taken a mark of it. It is nil of any
// other error.
func (r *Root) unmarked(err error, kind string) error {
	var e *staging.Error
	if !errors.As(err, &e) || e.Rollback == nil {
		return nil
	}
	stands := &staging.HaltError{Attempt: e.Attempt, Kind: kind, Staging: e.Staging}
	if r.isHalted(stands) {
		return nil
	}
	stands.Err = err
	return &UnfinishedError{stands}
}

// HaltsAt returns the attempts that halt the root at a path, by their marks: it takes no lock,
// and an attempt that was merely killed does not halt. For a missing root it returns none.
func HaltsAt(path string, marks Halts) ([]*staging.HaltError, error) {
	dir, err := pathsafe.OpenRoot(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	left, err := staging.Leftovers(dir)
	if err != nil {
		return nil, err
	}
	var halts []*staging.HaltError
	in := &Root{dir: dir, entry: Entry{Halts: marks}}
	for _, name := range left {
		attempt, kind := staging.AttemptOf(name)
		halt := &staging.HaltError{Attempt: attempt, Kind: kind, Staging: name, Err: staging.ErrHalted}
		if kind != "" && in.isMarked(halt) {
			halts = append(halts, halt)
		}
	}
	return halts, nil
}

// isHalted reports whether the next one to enter the root will find it halted. A mark that
// cannot be looked up is none, as far as is known.
func (r *Root) isHalted(halt *staging.HaltError) bool {
	return errors.Is(halt.Err, staging.ErrHalted) || r.isMarked(halt)
}

// isMarked reports whether there is a mark that halts the root.
func (r *Root) isMarked(halt *staging.HaltError) bool {
	if r.entry.Halts != nil {
		if halted, err := r.entry.Halts.Halted(halt.Attempt); halted && err == nil {
			return true
		}
	}
	return r.hasMark(halt.Staging)
}

// hasMark reports whether the root has the mark of an attempt in this staging directory.
func (r *Root) hasMark(name string) bool { return r.hasFile(name, staging.HaltedName) }

func (r *Root) hasFile(stageName, name string) bool {
	stage, err := r.dir.OpenDir(stageName)
	if err != nil {
		return false
	}
	defer stage.Close()
	_, err = stage.Lstat(name)
	return err == nil
}
