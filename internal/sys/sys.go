// Package sys has what several writing packages share: the prefix of the program's own files
// beneath a restore root, waiting for a lock, and a directory whose system calls a test can make
// fail ([Dir], [Hook]).
package sys

import (
	"context"
	"errors"
	"math"
	"os"
	"runtime"
	"time"

	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

// Prefix begins the name of every temporary file of the program beneath a restore root. An output
// with such a name is rejected, since the two could not be distinguished.
const Prefix = ".spectrum06_"

// Forever is the patience of a caller whose context bounds it.
const Forever time.Duration = math.MaxInt64

// poll is the time between two tries to get a lock.
const poll = 10 * time.Millisecond

// Lock locks a file (flock, on this host), or returns EWOULDBLOCK at once.
func Lock(f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		runtime.KeepAlive(f)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, unix.EINTR):
			return &os.PathError{Op: "lock", Path: f.Name(), Err: err}
		}
	}
}

// Await calls try until the lock is no longer held by another process, and returns its error. When
// the patience is over it returns the error of the last try, or that of ctx if ctx is done before.
func Await(ctx context.Context, patience time.Duration, try func() error) error {
	for begin := time.Now(); ; {
		err := try()
		isHeld := errors.Is(err, pathsafe.ErrLocked) || errors.Is(err, unix.EWOULDBLOCK)
		if !isHeld || time.Since(begin) >= patience {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(poll):
		}
	}
}
