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

// A Session holds the lock of a root: while it is open no other commit and no
// recovery is at work there (flock, on this host).
type Session struct {
	// Halted, unless nil, tells what the caller knows of an attempt: that its
	// rollback has failed. The mark of that in the root may be missing, where
	// the root could not even take that.
	Halted func(attempt string) bool
	// Refuse, if set, is the cause of the [HaltError] of every attempt that Recover finds:
	// nothing is ended.
	Refuse error
	// Log, unless nil, hears of attempts.
	Log Log

	root dir // its own handle, which holds the lock
	key  []byte
	s    *seam
}

// A Log hears of attempts. What it keeps is durable when its functions return.
// The kind is [KindCommit], or that of an [Exchange].
type Log interface {
	// Began comes before anything of an attempt is written. If it fails, nothing
	// is.
	Began(attempt, kind string) error
	// Completed comes when all of an attempt is in place and durable, and before
	// its journal goes. If it fails the journal stays, and Completed comes again
	// when the next session ends the attempt. It may come more than once.
	Completed(attempt, kind string) error
	// Released comes before the journal of an attempt is made void, with what is
	// left of it. If it fails the journal stays as it is. It may come more than
	// once. The kind is "exchange" where the journal cannot tell.
	Released(attempt, kind string, left error) error
}

// Lock takes the lock of root for a session with a handle of its own, and waits
// up to wait for another one to end; the error is then a [*BusyError]. Key
// authenticates the journals: only with the key that an attempt was made with
// can it be recovered later.
func Lock(ctx context.Context, root *pathsafe.Dir, key []byte, wait time.Duration) (*Session, error) {
	return lock(ctx, root, key, &locking{wait: wait, s: &seam{}})
}

// locking is how a lock is taken.
type locking struct {
	wait time.Duration
	s    *seam
}

func lock(ctx context.Context, root *pathsafe.Dir, key []byte, how *locking) (*Session, error) {
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
	return &Session{root: own, key: key, s: how.s}, nil
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

// Is tells whether the session is one of this very directory.
func (l *Session) Is(root *pathsafe.Dir) (bool, error) {
	mine, err := l.root.statSelf()
	if err != nil {
		return false, err
	}
	theirs, err := root.Stat()
	return err == nil && mine.ID == theirs.ID, err
}

// Close gives up the lock.
func (l *Session) Close() { l.root.close() }

// Run locks root, ends what an earlier attempt left there, and runs spec.
func Run(ctx context.Context, root *pathsafe.Dir, key []byte, spec Spec) error {
	return run(ctx, root, spec, &runner{key, &seam{}})
}

// runner is what a run needs beside its spec.
type runner struct {
	key []byte
	s   *seam
}

func run(ctx context.Context, root *pathsafe.Dir, spec Spec, r *runner) error {
	l, err := lock(ctx, root, r.key, &locking{s: r.s})
	if err != nil {
		return err
	}
	defer l.Close()
	if _, err := l.Recover(ctx, Automatic); err != nil {
		return fail(StepBegin, "", err)
	}
	return l.Run(ctx, spec)
}
