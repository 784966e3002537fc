package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/view"
	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/words"
	"github.com/spectrumfs/spectrum/fusefs/fusemount"
	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/pathsafe"
)

// This file has the checks of the kernel and of mounting.

// What to do about faults that commands report too.
const (
	NoProcRemedy = "as root: mount -t proc proc /proc; in a container or a chroot, have its /proc mounted"
	NoUserRemedy = "this user needs an entry in passwd: add one as root, with useradd(8); or mount as a user who has one"
)

func kernelChecks() []Check {
	release, err := machine.KernelRelease()
	return []Check{kernelCheck(release, err), procCheck(pathsafe.CheckProc()), openat2Check(pathsafe.CheckOpenat2())}
}

// kernelCheck: what a kernel cannot do is tried by the other checks, but for what
// only shows when a disk fails.
func kernelCheck(r machine.Release, err error) Check {
	if err != nil {
		return fine("kernel", "", "%v", err).but(Warn, "the kernel version is unknown", "")
	}
	c := fine("kernel", "", "Linux %s", r.Name)
	if r.Before(5, 8) {
		return c.but(Warn, "before Linux 5.8 syncfs does not report write errors: a commit of more than 16 files can miss one", "boot a newer kernel")
	}
	return c
}

func procCheck(err error) Check {
	if err != nil {
		return fine("procfs", "/proc", "%v", err).but(Fail, "files cannot be opened safely: nothing can be verified, mounted or restored", NoProcRemedy)
	}
	return fine("procfs", "/proc", "it is there")
}

func openat2Check(err error) Check {
	if err != nil {
		return fine("openat2", "", "%v", err).but(Warn, "paths are resolved one component at a time: as safe, but slower", "boot Linux 5.6 or newer, or have the container's filter let openat2 pass")
	}
	return fine("openat2", "", "it is there")
}

// meansChecks report whether this user can mount.
func meansChecks(m fusemount.Means) []Check {
	return []Check{deviceCheck(m), helperCheck(m), rightCheck(m), sharedCheck(m)}
}

const cannotMount = "\"spectrum mount\" exits with status 69; all other commands work"

func deviceCheck(m fusemount.Means) Check {
	if m.DeviceErr == nil {
		return fine("fuse-device", m.Device, "%q can be opened", m.Device)
	}
	remedy := "as root: modprobe fuse; in a container, start it with --device " + m.Device
	switch {
	case errors.Is(m.DeviceErr, fs.ErrNotExist):
	case errors.Is(m.DeviceErr, fs.ErrPermission):
		remedy = "as root: chmod 666 " + m.Device + "; in a container, start it with --device " + m.Device
	}
	return fine("fuse-device", m.Device, "%v", innermost(m.DeviceErr)).but(Fail, cannotMount, remedy)
}

// innermost returns the error of the system, without the callers' context.
func innermost(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path
	}
	return err
}

// helperCheck: root can do without the helper, others cannot.
func helperCheck(m fusemount.Means) Check {
	if m.HelperErr == nil {
		return fine("fuse-helper", m.Helper, "%q, version %s", m.Helper, orUnknown(m.Version))
	}
	c := fine("fuse-helper", m.Helper, "%v", innermost(m.HelperErr))
	remedy := "as root: apt-get install fuse3, or what brings fusermount3 here"
	switch {
	case errors.Is(m.HelperErr, fusemount.ErrNotSetuid):
		c.Found = fmt.Sprintf("%q: %v", m.Helper, m.HelperErr)
		remedy = fmt.Sprintf("as root: chown root %[1]s && chmod 4755 %[1]s", words.Shell(m.Helper))
	case errors.Is(m.HelperErr, fusemount.ErrSetuidVoid):
		c.Found = fmt.Sprintf("%q: %v", m.Helper, m.HelperErr)
		remedy = "install it on a file system mounted without nosuid"
	}
	if m.Direct {
		return c.but(Warn, "root mounts without it; other users cannot mount", remedy)
	}
	return c.but(Fail, cannotMount, remedy)
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

func rightCheck(m fusemount.Means) Check {
	if errors.Is(m.Denied, fusemount.ErrNoUser) {
		return fine("fuse-right", "", "%v", m.Denied).but(Fail, cannotMount, NoUserRemedy)
	}
	if m.Denied != nil {
		return fine("fuse-right", "", "%v", m.Denied).but(Fail, cannotMount, "run it as a user of the host; a container needs --cap-add SYS_ADMIN and --device "+m.Device)
	}
	if m.Direct {
		return fine("fuse-right", "", "root mounts by itself")
	}
	return fine("fuse-right", "", "this user mounts through the helper")
}

// sharedCheck: root can allow other users, whatever the configuration has.
func sharedCheck(m fusemount.Means) Check {
	const id = "allow-other"
	if m.Shared == nil {
		return fine(id, m.Config, "user_allow_other is in %q", m.Config)
	}
	c := fine(id, m.Config, "%q: %v", m.Config, m.Shared)
	if !errors.Is(m.Shared, fusemount.ErrNotShared) && !errors.Is(m.Shared, fusemount.ErrCutLine) {
		c.Found = innermost(m.Shared).Error()
	}
	const consequence = "\"spectrum mount --allow-other\" is for root only"
	remedy := "to let users share their views, as root: echo user_allow_other >>" + words.Shell(m.Config)
	if errors.Is(m.Shared, fusemount.ErrCutLine) {
		remedy = "as root: echo >>" + words.Shell(m.Config)
	}
	if m.Direct {
		c.Consequence, c.Remedy = consequence, remedy
		return c
	}
	return c.but(Warn, consequence, remedy)
}

// viewChecks query each view of this user, all at once. Views of other users are not queried.
func viewChecks(ctx context.Context) []Check {
	views, foreign, err := fusemount.Views()
	if err != nil {
		return []Check{fine("views", "", "%v", err).but(Warn, "the mounted views are unknown", "")}
	}
	errs := make([]error, len(views))
	var all sync.WaitGroup
	for i, other := range views {
		all.Go(func() { errs[i] = askView(ctx, other) })
	}
	all.Wait()
	checks := []Check{}
	live := 0
	for i, other := range views {
		if c := viewCheck(other.Path(), errs[i]); c.Status != OK {
			checks = append(checks, c)
		} else if errs[i] == nil {
			live++
		}
	}
	if len(checks) == 0 {
		checks = append(checks, fine("views", "", "%d of this user, none of them dead", live))
	}
	if n := len(foreign); n > 0 {
		first := foreign[0]
		checks = append(checks, fine("views", first.Mountpoint, "%d of other users, which are not queried, for example that of %s on %q", n, machine.UserText(first.UserID), first.Mountpoint))
	}
	return checks
}

// askView reads a file of a view.
func askView(ctx context.Context, other *fusemount.Other) error {
	ctx, cancel := context.WithTimeout(ctx, view.AskPatience)
	defer cancel()
	_, err := other.Read(ctx, view.StatusFile, view.MaxShown)
	if errors.Is(err, fusemount.ErrTooLong) {
		return nil
	}
	return err
}

// viewCheck ignores a view that has ended meanwhile, or that this user may not read.
func viewCheck(path string, err error) Check {
	c := fine("views", path, "%q answers", path)
	remedy := "spectrum umount " + words.Shell(path)
	switch {
	case err == nil, errors.Is(err, fusemount.ErrNotMounted), errors.Is(err, fs.ErrPermission):
		return c
	case errors.Is(err, fusemount.ErrDeadMount):
		c.Found = fmt.Sprintf("%q is dead: its server has exited", path)
		return c.but(Warn, "every access to it fails, and nothing can be mounted there", remedy)
	case errors.Is(err, context.DeadlineExceeded):
		c.Found = fmt.Sprintf("%q does not answer within %v", path, view.AskPatience)
		return c.but(Warn, "every access to it hangs; a rollback cannot query what it shows", "find its server with \"ps -C spectrum\" and end it, then "+remedy)
	}
	c.Found = err.Error()
	return c.but(Warn, "it is unknown whether this view can be read", "to end it: "+remedy)
}
