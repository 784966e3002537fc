package staging

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/google/uuid"
	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/internal/sys"
	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

// LockName is the name of the lock of a root, a file in it. It exists while an attempt is
// running or unfinished, and the running process holds it (flock, on this host). Only users
// who may create names in the root can open it, so a mere reader cannot lock it.
const LockName = sys.Prefix + "lock"

// ErrOvertaken reports that another attempt has begun in a root since it was read.
var ErrOvertaken = machine.Disturbed("another command started in this root after it was examined")

// errLockMoved reports that the lock's name was replaced after it was opened.
var errLockMoved = machine.Disturbed("the lock of the root keeps being replaced")

// maxLockMoved is how often a replaced lock is opened again without a pause.
const maxLockMoved = 100

// A rootLock is the lock of a root, as far as one session has it.
type rootLock struct {
	root  dir
	wait  time.Duration
	f     *os.File // nil while it is not held
	write bool     // it has to be open for writing, as on NFS; elsewhere that keeps the root from being mounted read-only
	made  bool     // by this session
	wrote bool     // it has written to the root since
	timed bool     // the root has the time that it is to keep
	quiet bool     // the existing lock file stays
	keep  int      // reasons for which it outlives the session, like a journal
}

// take takes the lock that is in the root, or one that it makes if create is set. It waits
// for the process that holds it; the error is then a [*BusyError]. A root in which this user
// cannot make names has no lock of this user, and needs none: nothing can be moved there.
func (k *rootLock) take(ctx context.Context, create bool) error {
	if k.f != nil {
		return nil
	}
	return k.poll(ctx, LockName, func() error { return k.try(create) })
}

// poll tries to take the lock until it succeeds or must not wait any longer.
func (k *rootLock) poll(ctx context.Context, name string, try func() error) error {
	var last error
	moved := 0
	err := sys.Await(ctx, k.wait, func() error {
		for last = try(); errors.Is(last, errLockMoved) && moved < maxLockMoved; moved++ {
			last = try()
		}
		if errors.Is(last, errLockMoved) {
			return pathsafe.ErrLocked
		}
		return last
	})
	if errors.Is(err, pathsafe.ErrLocked) {
		return busy(k.root, name, last)
	}
	return err
}

// try takes the lock once. A user who may create names in the root may also have put another
// entry at the lock's name: it is neither followed nor waited for, and its mode stays.
func (k *rootLock) try(create bool) error {
	f, err := k.root.openLock(LockName, k.write)
	switch isRefused := errors.Is(err, fs.ErrPermission); {
	case errors.Is(err, fs.ErrNotExist) && create:
		return k.make()
	case errors.Is(err, fs.ErrNotExist), isRefused && k.root.H.Writable() != nil:
		return nil
	case err != nil && !machine.IsFault(err):
		return &BusyError{Err: fmt.Errorf("%q is there and cannot be locked: %w", LockName, err)}
	case err != nil:
		return err
	}
	return k.lock(f, LockName)
}

// lock locks the file that was opened at a name, if it is still there.
func (k *rootLock) lock(f *os.File, name string) error {
	defer func() {
		if k.f != f {
			_ = f.Close()
		}
	}()
	err := k.root.s.flock(f)
	if errors.Is(err, unix.EBADF) && !k.write {
		k.write = true
		return errLockMoved
	}
	if err == nil {
		err = k.isNamed(f, name)
	}
	if err == nil {
		k.f = f
	}
	return err
}

// make makes the lock. The file is already locked when it appears at its name: another process
// would otherwise take it for an abandoned one. The time of the root is set back, if this user
// may set it, so that a snapshot taken now records the time from before.
func (k *rootLock) make() (err error) {
	before, err := k.root.StatSelf()
	if err != nil {
		return err
	}
	name := lockPrefix + uuid.NewString()
	defer func() {
		if err != nil {
			k.discard(name)
		}
	}()
	f, err := k.root.createLock(name, k.write)
	if isRefused := errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS); isRefused && k.root.H.Writable() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	k.made, k.wrote, k.timed = true, false, false
	if err := k.lock(f, name); err != nil {
		return err
	}
	if err = k.root.grantWriters(f); err == nil {
		err = k.root.rename(name, k.root, LockName)
	}
	k.keepTime(before)
	if errors.Is(err, fs.ErrExist) {
		err = errLockMoved
	}
	return err
}

// lockPrefix begins the name of a lock that is not locked yet.
const lockPrefix = LockName + "_"

// discard removes a lock that was to be, under the name that it had before or has by now.
func (k *rootLock) discard(name string) {
	if k.f != nil {
		_ = k.f.Close()
		k.f = nil
	}
	if k.root.Unlink(name) != nil && k.try(false) == nil {
		k.release()
	}
}

func (k *rootLock) keepTime(was pathsafe.Stat) {
	_ = k.root.s.Do("keep time", k.root.H.Name(), func() error { return k.root.H.SetModTime(was.ModTime) })
}

// isNamed requires that a name is still that of f.
func (k *rootLock) isNamed(f *os.File, name string) error {
	own, err := k.root.s.Identify(f)
	if err != nil {
		return err
	}
	now, err := k.root.Stat(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && now.ID != own.ID {
		return errLockMoved
	}
	return err
}

// release releases the lock. It removes the file unless the next session has an attempt to
// end, which then needs no space for it. A session that has written nothing else, or has undone
// everything, leaves the root the time that it has. A file that cannot be removed is not locked, and
// the next session takes it.
func (k *rootLock) release() {
	if k.f == nil {
		return
	}
	f, untouched := k.f, k.made && !k.wrote
	k.f, k.made = nil, false
	defer f.Close()
	if (k.keep > 0 || k.quiet) && !untouched || k.isNamed(f, LockName) != nil {
		return
	}
	before, err := k.root.StatSelf()
	if k.root.Unlink(LockName) == nil && err == nil && (untouched || k.timed) {
		k.keepTime(before)
	}
}

// writes notes that this session begins to write to the root.
func (k *rootLock) writes() { k.wrote, k.timed = true, false }

// clear removes a lock that was to be, of a process that was killed.
func (k *rootLock) clear(name string) {
	f, err := k.root.openLock(name, k.write)
	if err != nil {
		return
	}
	defer f.Close()
	if k.root.s.flock(f) == nil && k.isNamed(f, name) == nil {
		_ = k.root.Unlink(name)
	}
}
