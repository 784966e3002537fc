package action

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// Root is an entered restore root: no other command commits or recovers there at the moment of
// entry, nor from [Root.Hold] on until it is left.
type Root struct {
	lock    *staging.Root
	dir     *pathsafe.Dir
	real    string // where it is
	entry   Entry
	history *history
	err     error // why it was not entered
}

// NotEntered returns a root that could not be entered. Planning a restore for it is expected
// to fail too, with the reason in the order of section 8.4; if it does not, the commit fails
// with err.
func NotEntered(err error) *Root { return &Root{err: err} }

// Entry has the options for entering a restore root.
type Entry struct {
	Key   []byte // authenticates journals, at least staging.MinKey bytes
	Halts Halts  // may be nil
	// Bars, unless nil, remembers the rollbacks that could not be carried out. With Previewed a
	// root that is halted by one is a [*BarredError].
	Bars Bars
	// Log records actions on roots; nil records none. It is closed when the root is left, or
	// could not be entered.
	Log *audit.Log
	// Savepoints keeps the record of every commit; nil keeps none. It is closed as
	// Log is.
	Savepoints *savepoint.Store
	// Snapshots keeps what each action can change, from before it; nil keeps
	// nothing, and nothing can be undone. It is closed as Log is.
	Snapshots *snapshot.Store
	// State, unless nil, is the directory that all of that is kept in. It stays the
	// caller's.
	State *pathsafe.Dir
	// Host signs savepoints and snapshots; it is called when one is made.
	Host      func() (Host, error)
	Authority Authority // may be nil
	// Took, unless nil, receives each snapshot that was taken before an action.
	Took func(*snapshot.Snapshot)
	// Leftover, unless nil, is called with the remains of a completed rollback, and the
	// reason: the next session that enters the root removes them.
	Leftover func(name string, err error)
	// BarStays, unless nil, receives why the halt by Bars could not be ended. What ends it is
	// complete all the same.
	BarStays func(err error)
	Wait     time.Duration // for another command to leave
	Mode     staging.Mode  // on whose behalf leftovers are ended
	// Foreign are the real paths of roots that are entered although another user can rename
	// them, or what leads to them. Other such roots are a [*ForeignError].
	Foreign []string
	// Known, unless nil, returns the path under which the records of the root at a real path
	// are kept; id is its identity, see [pathsafe.Dir.Identity]. Nil is the real path.
	Known func(real, id string, dir pathsafe.Stat) (string, error)
	// Overlapping, unless nil, returns the other restore roots that share directories with the one that is
	// known by a name and open at a real path. With Previewed a halt of any of them is a [*OverlapError].
	Overlapping func(name, real string, dir *pathsafe.Dir) []RootRef
	// Previewed: a preview names such users as conflicts, so the root is entered; but
	// nothing is ended there that an attempt has left.
	Previewed bool
	// DryRun: nothing is written, so nothing is ended that an attempt has left, which is
	// an error, and nothing is recorded. Only [Root.Foresee] can be called then.
	DryRun bool
	// Releases: a dry run of what releases the attempts that halt the root, so they are no error.
	Releases bool
	// Acknowledge returns what a person has said of an attempt that [staging.Acknowledged]
	// is about to release, which is logged before; on an error it is not released, nor
	// is any when this is nil.
	Acknowledge func(attempt string, left error) (statement string, err error)
	// Reason is the operator's reason for ending unfinished attempts now, for the audit log;
	// "" for none.
	Reason string
}

// Host is the signer of savepoints: the operator's account on this machine.
type Host struct {
	Key     bundle.Key
	BuildID string // validator_build_id
}

// Authority is reset by every action that begins: earlier previews and approvals for its root
// are void, whatever the outcome (rollback contract, section 7.2).
type Authority interface {
	Attempt(root string) error
	// RolledBack is called when a root was rolled back, durably, before that is logged:
	// commits of the bundles were undone. If it fails it is called again when the next session
	// that enters the root ends the action. It may be called more than once.
	RolledBack(root string, bundleRoots []string) error
}

// Halts remembers, outside of every restore root, the attempts whose rollback
// has failed: a root that is full or read-only cannot take a mark of that.
type Halts interface {
	Halt(attempt string) error
	// Halted counts as true where it cannot be looked up, which the error is about.
	Halted(attempt string) (bool, error)
	Release(attempt string) error
}

// ErrNoRoot reports a path that is not the absolute path of a directory that can be opened.
// Section 8.4.4 has the codes for it.
var ErrNoRoot = errors.New("the path cannot be opened as a restore root")

// An OtherRootError is a root that is meant by name ([Entry].Foreign), and is not the one that
// is to be entered.
type OtherRootError struct{ Named, Real string }

func (e *OtherRootError) Error() string {
	return fmt.Sprintf("the requested restore root is %q, but this one is %q", e.Named, e.Real)
}

// OtherRoot returns an [*OtherRootError] unless none was named, or this one.
func OtherRoot(real string, named []string) error {
	if len(named) == 0 || slices.Contains(named, real) {
		return nil
	}
	return &OtherRootError{named[0], real}
}

// A ForeignError reports a root that another unprivileged user can rename, or whose path that
// user can replace: an action may then reach another directory than intended.
type ForeignError struct {
	Path  string           // as it was given
	Real  string           // of the directory that was opened
	Owner uint32           // of that directory
	Loose []pathsafe.Loose // not empty
	// Unfinished: the root could be entered, if it had not to be recovered first.
	Unfinished bool
}

func (e *ForeignError) Error() string {
	if e.Unfinished {
		return fmt.Sprintf("an unfinished attempt in restore root %q of user %d must be recovered first, and %s", e.Real, e.Owner, e.Loose[0])
	}
	return fmt.Sprintf("restore root %q leads to %q of user %d, and %s", e.Path, e.Real, e.Owner, e.Loose[0])
}

// Enter waits for the command that holds a restore root, and ends attempts that an earlier
// commit left there when it was killed or could not be rolled back; it returns these. If there
// are none it writes nothing there. The error is [ErrNoRoot]; a [*staging.BusyError] if
// another command holds the root; a [*ForeignError]; an [*UnfinishedError]; or, if an operator
// must act, a [*staging.HaltError], which [HaltsOf] finds. The caller leaves the root.
func Enter(ctx context.Context, path string, e Entry) (*Root, []staging.Outcome, error) {
	in, ended, err := entered(ctx, path, e)
	if err != nil {
		e.close()
	}
	return in, ended, err
}

// close closes the stores of a root.
func (e *Entry) close() {
	if e.Log != nil {
		_ = e.Log.Close()
	}
	if e.Savepoints != nil {
		_ = e.Savepoints.Close()
	}
	if e.Snapshots != nil {
		_ = e.Snapshots.Close()
	}
}

// RootPath returns the one path under which the records have a restore root, whichever path
// leads there now. It is for looking up records: an entered root gets its name from its open
// descriptor, see [Root.Path].
func RootPath(path string) string {
	if way, err := pathsafe.WayTo(path); err == nil && !way.Missing {
		return way.Real
	}
	return filepath.Clean(path)
}

// maxAfresh limits how often a root is entered again because it was replaced by another
// directory meanwhile.
const maxAfresh = 100

func entered(ctx context.Context, path string, e Entry) (*Root, []staging.Outcome, error) {
	if !filepath.IsAbs(path) {
		return nil, nil, fmt.Errorf("%w: %q is not absolute", ErrNoRoot, path)
	}
	var all []staging.Outcome
	for range maxAfresh {
		in, ended, err := enteredOnce(ctx, path, e)
		all = append(all, ended...)
		if !errors.Is(err, errMoved) {
			return in, all, err
		}
		if err := ctx.Err(); err != nil {
			return nil, all, err
		}
	}
	return nil, all, errMoved
}

// errMoved: a root has to be entered afresh.
var errMoved = machine.Disturbed("the restore root keeps being moved or replaced")

func enteredOnce(ctx context.Context, path string, e Entry) (*Root, []staging.Outcome, error) {
	dir, err := pathsafe.OpenRoot(path)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrNoRoot, err)
	}
	lock, err := staging.Lock(ctx, dir, e.Key, e.Wait)
	if err != nil {
		return nil, nil, errors.Join(err, dir.Close())
	}
	in, ended, err := enteredWith(ctx, path, e, &entering{lock, dir})
	if err != nil {
		lock.Close()
		return nil, ended, errors.Join(err, dir.Close())
	}
	return in, ended, nil
}

// entering is a root whose lock was taken.
type entering struct {
	lock *staging.Root
	dir  *pathsafe.Dir
}

func enteredWith(ctx context.Context, path string, e Entry, at *entering) (*Root, []staging.Outcome, error) {
	if err := at.stays(path); err != nil {
		return nil, nil, err
	}
	real, err := at.dir.RealPath() // never from path, which may lead elsewhere by now
	if errors.Is(err, pathsafe.ErrMoved) {
		err = errMoved
	}
	if err != nil {
		return nil, nil, err
	}
	foreign, err := e.foreign(path, real, at.dir)
	if err != nil {
		return nil, nil, err
	}
	if foreign != nil {
		if !e.Previewed {
			return nil, nil, foreign
		}
		foreign.Unfinished = true
	}
	records, err := newHistory(&e, at.dir, real)
	if err != nil {
		return nil, nil, err
	}
	in := &Root{lock: at.lock, dir: at.dir, real: real, entry: e, history: records}
	var ended []staging.Outcome
	if e.DryRun || foreign != nil {
		in.lock.Leave()
	}
	if e.DryRun {
		err = in.look()
	} else {
		ended, err = in.recover(ctx, e.Mode, foreign)
	}
	if errors.As(err, &foreign) {
		return nil, ended, foreign
	}
	if err == nil {
		err = at.stays(path)
	}
	if err == nil {
		err = in.barred()
	}
	if err == nil {
		records.entered, err = records.savepoints.active(records.root)
	}
	if err != nil {
		return nil, ended, err
	}
	return in, ended, nil
}

// Hold takes the lock of the root, until it is left, and requires that no action has begun
// there since it was entered. The error is a [*staging.BusyError] if another command holds the
// lock, otherwise [staging.ErrOvertaken]. Every action holds the root itself.
func (r *Root) Hold(ctx context.Context) error {
	if r == nil || r.lock == nil {
		return fmt.Errorf("the restore root was not entered: %w", r.reason())
	}
	if err := r.lock.Hold(ctx); err != nil {
		return err
	}
	if err := r.barred(); err != nil {
		return err
	}
	return r.history.begins()
}

// isHeld reports whether the root was held since it was entered.
func (r *Root) isHeld() bool { return r != nil && r.history != nil && r.history.begun }

// Wait waits for the action that is at work in the root, if there is one. The error is a
// [*staging.BusyError] when it takes too long.
func (r *Root) Wait(ctx context.Context) error {
	if r == nil || r.lock == nil {
		return nil
	}
	return r.lock.Wait(ctx)
}

// foreign returns the error for a root that other users can rename and that was not named; nil
// for any other root.
func (e *Entry) foreign(path, real string, dir *pathsafe.Dir) (*ForeignError, error) {
	way, err := pathsafe.WayTo(path)
	if err == nil {
		err = way.LeadsTo(dir)
	}
	if errors.Is(err, pathsafe.ErrMoved) {
		err = errMoved
	}
	if err != nil || slices.Contains(e.Foreign, real) {
		return nil, err
	}
	if len(way.Loose) == 0 {
		return nil, OtherRoot(real, e.Foreign)
	}
	st, err := dir.Stat()
	if err != nil {
		return nil, err
	}
	return &ForeignError{Path: path, Real: real, Owner: st.UID, Loose: way.Loose}, nil
}

// stays requires the path to lead to the directory of the session, and that to be the one that
// was opened: another program may have replaced it.
func (at *entering) stays(path string) error {
	now, err := pathsafe.OpenRoot(path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoRoot, err)
	}
	defer now.Close()
	for _, d := range []*pathsafe.Dir{now, at.dir} {
		same, err := at.lock.Is(d)
		if err != nil {
			return err
		}
		if !same {
			return errMoved
		}
	}
	return nil
}

// Savepoint is the id of the savepoint of the commit that was carried out last
// since the root was entered; "" for none.
func (r *Root) Savepoint() string { return r.history.published }

// Commit returns the id of the last commit that was carried out since the root was entered; ""
// for none.
func (r *Root) Commit() string { return r.history.attempt }

// SnapshotBefore is the id of the snapshot that was taken before that commit; "" for none.
func (r *Root) SnapshotBefore() string { return r.history.before }

// Real is where the root is: the path of the directory that was opened.
func (r *Root) Real() string { return r.real }

// Path is the path that the root is known by, see [Entry].Known.
func (r *Root) Path() string { return r.history.root }

// Dir is the root, open until it is left.
func (r *Root) Dir() *pathsafe.Dir { return r.dir }

// State is the directory that is kept apart from the root, if it was entered with one.
func (r *Root) State() *pathsafe.Dir { return r.entry.State }

// Savepoints is the store that it was entered with.
func (r *Root) Savepoints() *savepoint.Store { return r.entry.Savepoints }

// Snapshots is the store that it was entered with.
func (r *Root) Snapshots() *snapshot.Store { return r.entry.Snapshots }

// Snapshot takes a snapshot of the whole root, and logs it. It takes no lock, and is void if
// an action has begun there meanwhile.
func (r *Root) Snapshot(ctx context.Context, kind snapshot.Kind, reason string) (*snapshot.Snapshot, error) {
	active, err := r.history.savepoints.active(r.history.root)
	if err != nil {
		return nil, err
	}
	log, err := r.history.logged()
	if err != nil {
		return nil, err
	}
	r.history.snapped = true
	taken, err := r.entry.Snapshots.Take(ctx, snapshot.Request{
		Root: r.history.root, Dir: r.dir, Kind: kind, Reason: reason, Texts: map[string]string{SavepointNow: active},
		Log: log, Key: r.history.savepoints.key,
		Still:   func() error { return cmp.Or(r.lock.Overtaken(), r.history.isSame()) },
		Follows: r.history.logSnapshot,
	})
	if err != nil {
		return nil, err
	}
	return taken, r.history.append(audit.Event{Kind: audit.SnapshotTaken, Action: uuid.NewString(), Snapshot: taken.ID(), Reason: reason})
}

// halt records the failed rollback of a transaction. It is the second mark; the root has the
// first, so an error is ignored.
func (r *Root) halt(err error) {
	var e *staging.Error
	if errors.As(err, &e) && e.Rollback != nil && r.entry.Halts != nil {
		_ = r.entry.Halts.Halt(e.Attempt)
	}
}

// Leave returns the root up. A nil Root was never entered.
func (r *Root) Leave() {
	if r == nil || r.lock == nil {
		return
	}
	if r.history.snapped { // else the next one to enter the root does it
		_ = r.history.logNewest()
	}
	r.lock.Close()
	_ = r.dir.Close()
	r.entry.close()
}

func (r *Root) reason() error {
	if r == nil || r.err == nil {
		return errors.New("no rollback was attempted")
	}
	return r.err
}

// check requires the entered root to be the one that was planned for.
func (r *Root) check(planned *pathsafe.Dir) error {
	if r == nil || r.lock == nil {
		return fmt.Errorf("the restore root was not entered: %w", r.reason())
	}
	same, err := r.lock.Is(planned)
	if err == nil && !same {
		err = machine.Disturbed("the restore root was replaced after it was locked")
	}
	return err
}
