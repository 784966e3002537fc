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

// faults are the errors of a machine that lacks a resource, is broken, or cannot do what was
// requested. The request itself was correct.
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

// IsFull reports whether an error means that there is no space.
func IsFull(err error) bool { return isAny(err, []error{unix.ENOSPC, unix.EDQUOT}) }

// IsUnreadable reports whether an error means that the disk does not return a file, or not as it
// was written. A retry returns the same.
func IsUnreadable(err error) bool {
	return isAny(err, []error{unix.EIO, unix.EBADMSG, unix.EUCLEAN, unix.EREMOTEIO})
}

// HasNoPlace reports whether an error means that the working directory was removed.
func HasNoPlace(err error) bool {
	var call *os.SyscallError
	return errors.As(err, &call) && call.Syscall == "getwd"
}

func isAny(err error, all []error) bool {
	return slices.ContainsFunc(all, func(one error) bool { return errors.Is(err, one) })
}

// others are the errors for a path that another process has changed in the meantime.
var others = []error{pathsafe.ErrEscape, pathsafe.ErrCrossesMount, pathsafe.ErrSymlink, pathsafe.ErrNotRegular, pathsafe.ErrLocked, served.ErrForeign}

// A disturbance is an error that another process has caused.
type disturbance struct{ text string }

func (d *disturbance) Error() string { return d.text }

// Disturbed returns an error about interference by another process. [IsOrdinary] and [IsDisturbed]
// report true for it.
func Disturbed(text string) error { return &disturbance{text} }

// IsDisturbed reports whether an error means that another process has changed something during the
// work: an error of [Disturbed], or about an entry that was moved.
func IsDisturbed(err error) bool {
	var disturbed *disturbance
	return errors.As(err, &disturbed) || errors.Is(err, pathsafe.ErrMoved)
}

// IsOrdinary reports whether an error was returned by the system, or by a program of it, and is not
// the result of a wrong call: a fault ([IsFault]), a lack of permission, or interference by another
// process ([Disturbed]).
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
