package overlay

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// An UnavailableError reports why no overlay can be mounted here.
type UnavailableError struct {
	Step   string
	Reason string
	Hint   string // the fix, as an instruction
	Err    error  // may be nil
}

func (e *UnavailableError) Error() string {
	if e.Reason == "" {
		return fmt.Sprintf("cannot mount an overlay here: %s: %v", e.Step, e.Err)
	}
	if e.Err == nil {
		return "cannot mount an overlay here: " + e.Reason
	}
	return fmt.Sprintf("cannot mount an overlay here: %s: %v (%s)", e.Step, e.Err, e.Reason)
}

// Unwrap returns the error of the system.
func (e *UnavailableError) Unwrap() error { return e.Err }

// otherways is the hint if the system rejects overlays permanently.
const otherways = "run the command in a copy of the directory, and seal that with \"spectrum seal --base DIR\""

// unavailable finds the reason of an error at a step.
func unavailable(step string, err error, message string) error {
	e := &UnavailableError{Step: step, Reason: message, Hint: otherways, Err: err}
	is := func(targets ...error) bool {
		for _, target := range targets {
			if errors.Is(err, target) {
				return true
			}
		}
		return false
	}
	denied := is(unix.EPERM, unix.EACCES)
	switch {
	case is(unix.ENOMEM, unix.EMFILE, unix.ENFILE, unix.EAGAIN, unix.EIO), step == stepNamespace && is(unix.ENOENT):
		return fmt.Errorf("%s: %w", step, err)
	case step == stepNamespace && is(unix.ENOSPC, unix.EUSERS):
		e.Reason, e.Hint = "the limit of namespaces is reached, or is 0", "root can raise it: sysctl user.max_user_namespaces user.max_mnt_namespaces"
	case denied && setting("kernel/unprivileged_userns_clone") == "0":
		e.Reason, e.Hint = "the sysctl kernel.unprivileged_userns_clone is 0", "root can allow user namespaces: sysctl kernel.unprivileged_userns_clone=1; or "+otherways
	case denied && setting("kernel/apparmor_restrict_unprivileged_userns") == "1":
		e.Reason, e.Hint = "AppArmor restricts user namespaces (sysctl kernel.apparmor_restrict_unprivileged_userns)", "root can install a profile with \"userns,\" for this program, or set that sysctl to 0; or "+otherways
	case denied && step == stepOverlay, is(unix.EINVAL) && step == stepNamespace:
		e.Reason, e.Hint = "this kernel has no overlayfs for ordinary users (Linux 5.11 or newer has), or a filter forbids it", "use a newer kernel, or run it as root; or "+otherways
	case denied && step == stepNamespace, is(unix.ENOSYS):
		e.Reason, e.Hint = "a filter of system calls, such as that of a container, or the kernel forbids it", "start the container so that it may make namespaces and mounts; or "+otherways
	case is(unix.ENODEV):
		e.Reason, e.Hint = "this kernel has no overlayfs", "load the module: modprobe overlay; or "+otherways
	case step == stepMount && strings.Contains(message, "upper"), step == stepMount && is(unix.EINVAL):
		e.Hint = "name a state directory on ext4, xfs, btrfs or tmpfs with --state-dir DIR; if it is on one, the directory itself cannot be the lower layer of an overlay: " + otherways
	}
	return e
}

// setting returns the value of a sysctl, or "".
func setting(name string) string {
	raw, _ := os.ReadFile("/proc/sys/" + name)
	return strings.TrimSpace(string(raw))
}
