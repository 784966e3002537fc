package staging

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// MinKey is the least length of a journal key, in bytes.
const MinKey = 16

// A Root is a directory that is worked on. From the moment at which it holds the lock until it is
// closed no other transaction and no recovery is at work there.
type Root struct {
	dir  dir // its own handle
	key  []byte
	s    *sysHook
	lock *rootLock
	seen map[string]bool // names of the attempts that Unfinished has listed last
}

// Lock begins work on a root, with a handle of its own. It writes nothing. While another
// process holds the lock it waits, up to wait; the error is then a [*BusyError]. Without a
// lock file no other process is at work, and the lock is taken only before the first write:
// see [Root.Hold]. Key authenticates the journals: an attempt can later be recovered only with
// the key that it was made with.
func Lock(ctx context.Context, root *pathsafe.Dir, key []byte, wait time.Duration) (*Root, error) {
	return lock(ctx, root, key, &locking{wait: wait, s: &sysHook{}})
}

// locking is how a lock is taken.
type locking struct {
	wait time.Duration
	s    *sysHook
}

func lock(ctx context.Context, root *pathsafe.Dir, key []byte, how *locking) (*Root, error) {
	if root == nil {
		return nil, fail(StepBegin, "", errors.New("no root"))
	}
	if len(key) < MinKey {
		return nil, fail(StepBegin, "", fmt.Errorf("the journal key has %d bytes; it needs %d", len(key), MinKey))
	}
	own, err := on(root, how.s).open(pathsafe.Path{})
	if err != nil {
		return nil, fail(StepBegin, "", err)
	}
	r := &Root{dir: own, key: key, s: how.s, lock: &rootLock{root: own, wait: how.wait}}
	if err := r.lock.take(ctx, false); err != nil {
		own.Close()
		return nil, fail(StepBegin, "", err)
	}
	return r, nil
}

// Hold takes the lock of the root, and makes the lock file if it is missing; it must be called
// before any other write. It waits as [Lock] does. [Tx.Begin] and [Unfinished.Resolve] do not
// wait. The error is [ErrOvertaken] if the root has an attempt that [Root.Unfinished] has not
// listed.
func (r *Root) Hold(ctx context.Context) error {
	if r.lock.f != nil {
		return nil
	}
	if err := r.lock.take(ctx, true); err != nil {
		return err
	}
	if err := r.Overtaken(); err != nil {
		r.lock.keep++
		return err
	}
	r.lock.quiet = false // from now on the root is written to
	return nil
}

// Wait waits for the process that holds the lock, as [Lock] does, without removing the lock
// file.
func (r *Root) Wait(ctx context.Context) error {
	if r.lock.f != nil {
		return nil
	}
	err := r.lock.take(ctx, false)
	if f := r.lock.f; f != nil {
		r.lock.f = nil
		_ = f.Close()
	}
	return err
}

// Yield gives the lock up until it is held again.
func (r *Root) Yield() { r.lock.release() }

// Leave has what a killed process has left of a lock stay, unless the root is held later: nothing
// is written.
func (r *Root) Leave() { r.lock.quiet = true }

// Overtaken returns [ErrOvertaken] if the root has an attempt, running or unfinished, that
// [Root.Unfinished] has not listed. It writes nothing.
func (r *Root) Overtaken() error {
	names, err := r.dir.Names()
	if err != nil {
		return err
	}
	for _, name := range names {
		if r.seen != nil && !r.seen[name] && r.dir.stands(name) || name == LockName && r.lock.f == nil {
			return fmt.Errorf("%w: %q", ErrOvertaken, name)
		}
	}
	return nil
}

// Is reports whether this is the very directory.
func (r *Root) Is(other *pathsafe.Dir) (bool, error) {
	mine, err := r.dir.StatSelf()
	if err != nil {
		return false, err
	}
	theirs, err := other.Stat()
	return err == nil && mine.ID == theirs.ID, err
}

// Close gives up the lock. It stays in the root where an attempt has not ended.
func (r *Root) Close() {
	r.lock.release()
	r.dir.Close()
}
