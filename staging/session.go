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

// A Session is one with a root. From the moment at which it holds the lock until it is closed no
// other commit and no recovery is at work there.
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

	root dir // its own handle
	key  []byte
	s    *seam
	lock *rootLock
	seen map[string]bool // names of attempts that the last recovery has seen
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

// Lock begins a session with a root, with a handle of its own. It writes nothing. While
// another process holds the lock it waits, up to wait; the error is then a [*BusyError]. Where
// there is none, nobody is at work, and the session takes the lock only when it has to write:
// see [Session.Hold]. Key authenticates the journals: only with the key that an attempt was
// made with can it be recovered later.
func Lock(ctx context.Context, root *pathsafe.Dir, key []byte, wait time.Duration) (*Session, error) {
	return lock(ctx, root, key, &locking{wait: wait, s: &seam{}})
}

// locking is how a session begins.
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
	l := &Session{root: own, key: key, s: how.s, lock: &rootLock{root: own, wait: how.wait}}
	if err := l.lock.take(ctx, false); err != nil {
		own.close()
		return nil, fail(StepBegin, "", err)
	}
	return l, nil
}

// Hold takes the lock of the root, and makes it if it is not there; nothing else may be
// written there before. [Session.Run], [Session.Exchange] and [Session.Recover] do so
// themselves. It waits as [Lock] does. The error is [ErrOvertaken] when an attempt stands in
// the root that [Session.Recover] has not seen.
func (l *Session) Hold(ctx context.Context) error {
	if l.lock.f != nil {
		return nil
	}
	if err := l.lock.take(ctx, true); err != nil {
		return err
	}
	err := l.Overtaken()
	l.lock.keep = l.lock.keep || err != nil
	return err
}

// Yield gives the lock up until it is held again.
func (l *Session) Yield() { l.lock.release() }

// Overtaken returns [ErrOvertaken] when another attempt is at work in the root, or stands
// there, that [Session.Recover] has not seen. It writes nothing.
func (l *Session) Overtaken() error {
	names, err := l.root.names()
	if err != nil {
		return err
	}
	for _, name := range names {
		_, kind := attemptOf(name)
		if kind != "" && l.seen != nil && !l.seen[name] || name == LockName && l.lock.f == nil {
			return fmt.Errorf("%w: %q", ErrOvertaken, name)
		}
	}
	return nil
}

// lookAndHold looks at what an attempt changes, under the lock. What is in its way is found
// before anything is written.
func (l *Session) lookAndHold(ctx context.Context, look func() *Error) error {
	if l.lock.f == nil {
		if err := look(); err != nil {
			return err
		}
		if err := l.Hold(ctx); err != nil {
			return fail(StepBegin, "", err)
		}
	}
	if err := look(); err != nil {
		return err
	}
	return nil
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

// Close gives up the lock. It stays in the root where an attempt has not ended.
func (l *Session) Close() {
	if l.Refuse != nil { // nothing is written
		l.lock.keep = true
	}
	l.lock.release()
	l.root.close()
}

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
