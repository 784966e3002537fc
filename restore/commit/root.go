package commit

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/staging"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// Root is a restore root that was entered: nobody else commits or recovers
// there until it is left.
type Root struct {
	session *staging.Session
	entry   Entry
	history *history
	err     error // why it was not entered
}

// NotEntered is a root that could not be entered. Planning a restore for it
// should fail too, and says why in the order of section 8.4; if it does not, the
// commit fails with err.
func NotEntered(err error) *Root { return &Root{err: err} }

// Entry says how a restore root is entered.
type Entry struct {
	Key   []byte // authenticates journals, at least staging.MinKey bytes
	Halts Halts  // may be nil
	// Log is told of what is done to roots; nil keeps none. It is closed when
	// the root is left, or was not entered.
	Log *audit.Log
	// Savepoints keeps the record of every commit; nil keeps none. It is closed as
	// Log is.
	Savepoints *savepoint.Store
	Host       func() (Host, error) // signs savepoints; asked when a commit begins
	Authority  Authority            // may be nil
	Wait       time.Duration        // for another one to leave
	Mode       staging.Mode         // on whose behalf leftovers are ended
}

// Host is who signs savepoints: the operator's account on this machine.
type Host struct {
	Key     bundle.Key
	BuildID string // validator_build_id
}

// Authority is reset by every commit that begins: whatever becomes of it, what was
// previewed or approved for its root before is void (rollback contract, section
// 7.2).
type Authority interface {
	Attempt(root string) error
}

// Halts remembers, outside of every restore root, the attempts whose rollback
// has failed: a root that is full or read-only cannot take a mark of that.
type Halts interface {
	Halt(attempt string) error
	Halted(attempt string) bool
	Release(attempt string) error
}

// ErrNoRoot says that what cannot be entered is not the absolute path of a directory
// that can be opened. Section 8.4.4 has the codes for it.
var ErrNoRoot = errors.New("it cannot be opened as a restore root")

// Enter takes the lock of a restore root and ends what an earlier commit left
// there when it was killed or could not be rolled back; it returns what that
// was. The error is [ErrNoRoot], a [*staging.BusyError] where another one is at
// work, or a [*staging.HaltError] where a person must act. The caller leaves
// the root.
func Enter(ctx context.Context, path string, e Entry) (*Root, []staging.Outcome, error) {
	in, ended, err := entered(ctx, path, e)
	if err != nil {
		e.close()
	}
	return in, ended, err
}

// close closes what is kept of a root.
func (e *Entry) close() {
	if e.Log != nil {
		_ = e.Log.Close()
	}
	if e.Savepoints != nil {
		_ = e.Savepoints.Close()
	}
}

// RootPath is the one path by which a restore root is known in what is kept of it,
// whichever path leads there.
func RootPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}

func entered(ctx context.Context, path string, e Entry) (*Root, []staging.Outcome, error) {
	if !filepath.IsAbs(path) {
		return nil, nil, fmt.Errorf("%w: %q is not absolute", ErrNoRoot, path)
	}
	dir, err := pathsafe.OpenRoot(path)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrNoRoot, err)
	}
	defer dir.Close()
	session, err := staging.Lock(ctx, dir, e.Key, e.Wait)
	if err != nil {
		return nil, nil, err
	}
	st, err := dir.Stat()
	if err != nil {
		session.Close()
		return nil, nil, err
	}
	in := &Root{session: session, entry: e, history: &history{
		log: e.Log, savepoints: savepoints{e.Savepoints, e.Host}, authority: e.Authority, root: RootPath(path), rootID: fmt.Sprintf("%d:%d", st.ID.Dev, st.ID.Ino),
	}}
	ended, err := in.recover(ctx, e.Mode)
	if err != nil {
		session.Close()
		return nil, ended, err
	}
	return in, ended, nil
}

// recover ends what an earlier commit left, and remembers how.
func (r *Root) recover(ctx context.Context, mode staging.Mode) ([]staging.Outcome, error) {
	r.session.Log = r.history
	if r.entry.Halts != nil {
		r.session.Halted = r.entry.Halts.Halted
	}
	ended, err := r.session.Recover(ctx, mode)
	for _, o := range ended {
		err = errors.Join(err, r.history.ended(o))
		if r.entry.Halts != nil {
			err = errors.Join(err, r.entry.Halts.Release(o.Attempt))
		}
	}
	if err != nil {
		return ended, errors.Join(err, r.history.halted(err))
	}
	return ended, errors.Join(r.history.endStale(), r.history.savepoints.dropAll(r.history.root, r.history.rootID))
}

// Savepoint is the id of the savepoint of the commit that was carried out last
// since the root was entered; "" for none.
func (r *Root) Savepoint() string { return r.history.published }

// halt remembers what a failed transaction says of its rollback. It is the
// second mark; the root has the first, so it has no error.
func (r *Root) halt(err error) {
	var e *staging.Error
	if errors.As(err, &e) && e.Rollback != nil && r.entry.Halts != nil {
		_ = r.entry.Halts.Halt(e.Attempt)
	}
}

// Leave gives the root up. A nil Root was never entered.
func (r *Root) Leave() {
	if r == nil || r.session == nil {
		return
	}
	r.session.Close()
	r.entry.close()
}

func (r *Root) reason() error {
	if r == nil || r.err == nil {
		return errors.New("nobody has tried to")
	}
	return r.err
}

// check wants the root that was entered to be the one that was planned for.
func (r *Root) check(planned *pathsafe.Dir) error {
	if r == nil || r.session == nil {
		return fmt.Errorf("the restore root was not entered: %w", r.reason())
	}
	same, err := r.session.Is(planned)
	if err == nil && !same {
		err = errors.New("the restore root is another directory than the one that was entered")
	}
	return err
}
