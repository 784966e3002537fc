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

// A Root is a directory whose lock is held: while it is open no other transaction and no
// recovery is at work there (flock, on this host).
type Root struct {
	dir dir // its own handle, which holds the lock
	key []byte
	s   *sysHook
}

// Lock takes the lock of a directory with a handle of its own, and waits
// up to wait for another one to end; the error is then a [*BusyError]. Key
// authenticates the journals: only with the key that an attempt was made with
// can it be recovered later.
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
	own, err := dir{root, how.s}.open(pathsafe.Path{})
	if err != nil {
		return nil, fail(StepBegin, "", err)
	}
	if err := how.take(ctx, own); err != nil {
		own.close()
		return nil, fail(StepBegin, "", err)
	}
	return &Root{dir: own, key: key, s: how.s}, nil
}

// lockPoll is how often a lock is asked for.
const lockPoll = 20 * time.Millisecond

func (how *locking) take(ctx context.Context, own dir) error {
	patience, cancel := context.WithTimeout(ctx, how.wait)
	defer cancel()
	for {
		err := own.lock()
		if !errors.Is(err, pathsafe.ErrLocked) {
			return err
		}
		select {
		case <-time.After(lockPoll):
		case <-patience.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return busy(own, err)
		}
	}
}

// Is reports whether this is the very directory.
func (r *Root) Is(other *pathsafe.Dir) (bool, error) {
	mine, err := r.dir.statSelf()
	if err != nil {
		return false, err
	}
	theirs, err := other.Stat()
	return err == nil && mine.ID == theirs.ID, err
}

// Close gives up the lock.
func (r *Root) Close() { r.dir.close() }
