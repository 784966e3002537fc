package machine

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"syscall"

	"github.com/spectrumfs/spectrum/internal/served"
	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

// faults are the errors of a machine that has run out of something, is broken, or cannot
// do what was asked. They say nothing of what was asked.
var faults = []error{
	unix.ENOSPC, unix.EDQUOT, unix.EFBIG, // room
	unix.EIO, unix.ENODEV, unix.ENXIO, unix.EUCLEAN, unix.EBADMSG, unix.EREMOTEIO, unix.ETIMEDOUT, // devices
	unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.ENOLCK, // limits
	unix.EROFS, unix.EXDEV, unix.ENAMETOOLONG, pathsafe.ErrTooLong, unix.ESTALE, unix.ENOTCONN, pathsafe.ErrNoProc, // file systems
}

// wrongCalls are the errors of a call that is wrong in itself.
var wrongCalls = []syscall.Errno{unix.EBADF, unix.EFAULT, unix.EINVAL, unix.ENOTSOCK, unix.EDOM, unix.ERANGE, unix.ESRCH, unix.ECHILD}

// IsFault reports whether an error is a fault of the machine: no space, an I/O error, a
// limit, a file system that cannot do it.
func IsFault(err error) bool { return isAny(err, faults) || HasNoPlace(err) }

// IsFull reports whether an error is that there is no room.
func IsFull(err error) bool { return isAny(err, []error{unix.ENOSPC, unix.EDQUOT}) }

// IsUnreadable reports whether an error is that the disk does not give a file back, or not as
// it was written: another try gets the same.
func IsUnreadable(err error) bool {
	return isAny(err, []error{unix.EIO, unix.EBADMSG, unix.EUCLEAN, unix.EREMOTEIO})
}

// HasNoPlace reports whether an error is that the working directory was removed.
func HasNoPlace(err error) bool {
	var call *os.SyscallError
	return errors.As(err, &call) && call.Syscall == "getwd"
}

func isAny(err error, all []error) bool {
	return slices.ContainsFunc(all, func(one error) bool { return errors.Is(err, one) })
}

// others are what another process has done to a path meanwhile.
var others = []error{pathsafe.ErrEscape, pathsafe.ErrCrossesMount, pathsafe.ErrSymlink, pathsafe.ErrNotRegular, pathsafe.ErrLocked, served.ErrForeign}

// A disturbance is an error that another process has caused.
type disturbance struct{ text string }

func (d *disturbance) Error() string { return d.text }

// Disturbed returns an error that reports that another process works where none should. It is
// [IsOrdinary].
func Disturbed(text string) error { return &disturbance{text} }

// IsDisturbed reports whether an error is that another process has changed what was being
// worked on: [Disturbed], or what has moved.
func IsDisturbed(err error) bool {
	var disturbed *disturbance
	return errors.As(err, &disturbed) || errors.Is(err, pathsafe.ErrMoved)
}

// IsOrdinary reports whether the system, or a program of it, has answered an error that
// does not come of a wrong call: a fault ([IsFault]), something that this user may not do,
// or something that another process has changed ([Disturbed]).
func IsOrdinary(err error) bool {
	var errno syscall.Errno
	var exit *exec.ExitError
	switch {
	case IsFault(err), IsDisturbed(err), isAny(err, others), errors.Is(err, errors.ErrUnsupported), errors.As(err, &exit), errors.Is(err, exec.ErrNotFound):
		return true
	case errors.As(err, &errno):
		return !slices.Contains(wrongCalls, errno)
	}
	return false
}
