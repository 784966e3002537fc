package fusemount

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/moby/sys/mountinfo"
	"github.com/spectrumfs/spectrum/fusefs"
	"github.com/spectrumfs/spectrum/internal/served"
	"golang.org/x/sys/unix"
)

// An Other is a view that another process of this user serves, by the mount table. Its methods
// block no longer than their context allows: the server may be stopped or hang, and so may a file
// system on the path of the mount point. A blocked call is left behind in a goroutine that ends
// with the process at the latest.
type Other struct {
	path   string
	mount  *mountinfo.Info
	copies []*mountinfo.Info // other mounts of the same view, such as bind mounts
}

// A Foreign is a view that another user serves. It gets no request and is never unmounted: its
// answer could not be trusted, and a request made as that user would give it power over this
// process.
type Foreign struct {
	Mountpoint string // as the mount table has it: to be quoted
	UserID     int    // -1 if the mount table does not have it
}

// Views returns the views in the mount table, in its order: those of this user, and those of
// others. No view gets a request.
func Views() (own []*Other, foreign []Foreign, err error) {
	mounts, err := mountinfo.GetMounts(mountinfo.FSTypeFilter(fsType))
	if err != nil {
		return nil, nil, fmt.Errorf("read the mount table: %w", err)
	}
	for _, m := range mounts {
		i := slices.IndexFunc(own, func(o *Other) bool { return o.mount.Major == m.Major && o.mount.Minor == m.Minor })
		switch {
		case !served.IsOwn(m):
			foreign = append(foreign, Foreign{m.Mountpoint, served.By(m)})
		case i >= 0:
			own[i].copies = append(own[i].copies, m)
		case m.Root == "/":
			own = append(own, &Other{path: m.Mountpoint, mount: m})
		}
	}
	return own, foreign, nil
}

// Path is the mount point.
func (o *Other) Path() string { return o.path }

// Read returns a file of the view's control directory, of at most limit bytes ([ErrTooLong]). It
// returns fs.ErrNotExist if there is no such file, fs.ErrPermission if this user may not read it,
// [ErrNotMounted] if the view has ended, [ErrDeadMount], [ErrHidden], or the error of ctx if the
// view does not answer.
func (o *Other) Read(ctx context.Context, name string, limit int64) ([]byte, error) {
	return o.within(ctx, func(dir *heldDir) ([]byte, error) { return readControl(dir, name, limit) })
}

func readControl(dir *heldDir, name string, limit int64) ([]byte, error) {
	f, err := openControl(dir, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%q: %w than %d bytes", name, ErrTooLong, limit)
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}

// ErrTooLong means that the file is larger than the limit.
var ErrTooLong = errors.New("the answer of the view is too long")

// Revoke revokes the view: it is unmounted, and processes that hold it open get errors, no data. It
// sends a request to the server, which makes the kernel drop its cache, and then ends. If the
// server does not obey before ctx is done, or cannot be reached by a path ([ErrHidden]), Revoke
// aborts its connection if this user may do that: pages that were read before may then stay
// readable for processes that hold the view. The dead mount of a hidden view stays until the mount
// that hides it is unmounted.
func (o *Other) Revoke(ctx context.Context) error {
	_, err := o.within(ctx, askToRevoke)
	if err == nil {
		err = o.awaitGone(ctx)
	}
	if err != nil {
		if cut := o.cutOff(); cut != nil {
			return errors.Join(fmt.Errorf("revoke the view on %q: %w", o.path, err), cut)
		}
	}
	return o.removeCopies()
}

func askToRevoke(dir *heldDir) ([]byte, error) {
	f, err := openControl(dir, controlOfRevoke)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), fusefs.RevokeRequest, 0)
	if errno != 0 {
		return nil, os.NewSyscallError("ioctl", errno)
	}
	return nil, nil
}

// controlOfRevoke is the file that the request is sent on; every view has it.
const controlOfRevoke = "status.json"

// openControl opens a file of the control directory, through no link.
func openControl(dir *heldDir, name string) (*os.File, error) {
	control, err := unix.Openat(dir.fd, fusefs.ControlName, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, openError(&os.PathError{Op: "open", Path: fusefs.ControlName, Err: err})
	}
	defer func() { _ = unix.Close(control) }()
	fd, err := unix.Openat(control, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, openError(&os.PathError{Op: "open", Path: name, Err: err})
	}
	f := os.NewFile(uintptr(fd), name)
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &os.PathError{Op: "open", Path: name, Err: ErrNotSpectrum}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// within calls do with the mount point of the view, and returns early when ctx is done.
func (o *Other) within(ctx context.Context, do func(dir *heldDir) ([]byte, error)) ([]byte, error) {
	type outcome struct {
		data []byte
		err  error
	}
	done := make(chan outcome, 1)
	go func() {
		data, err := o.withDir(do)
		done <- outcome{data, err}
	}()
	select {
	case r := <-done:
		return r.data, r.err
	case <-ctx.Done():
		return nil, fmt.Errorf("the view on %q does not answer: %w", o.path, ctx.Err())
	}
}

// pathTries is the number of lookups of the path of a view that is moved in the meantime.
const pathTries = 10

// withDir opens the mount point and checks that it leads to the view. If a directory above was
// moved, it uses the new path in the mount table.
func (o *Other) withDir(do func(dir *heldDir) ([]byte, error)) ([]byte, error) {
	path := o.path
	for range pathTries {
		dir, err := openHeld(path)
		if err == nil {
			defer dir.close()
			if idOf(dir.mount) == idOf(o.mount) && dir.isMountpoint {
				return do(dir)
			}
		}
		switch m, tableErr := inTable(idOf(o.mount)); {
		case tableErr != nil:
			return nil, tableErr
		case m == nil:
			return nil, &MountpointError{path, ErrNotMounted}
		case m.Mountpoint != path:
			path = m.Mountpoint
		case err == nil, errors.Is(err, fs.ErrNotExist), errors.Is(err, ErrNotDirectory), errors.Is(err, ErrForeign):
			return nil, &MountpointError{path, ErrHidden}
		default:
			return nil, err
		}
	}
	return nil, &MountpointError{o.path, errLedAstray}
}

// ErrHidden means that no path leads to a view, because another mount is on it or above it.
var ErrHidden = errors.New("another mount hides the view: unmount that mount first")

// awaitGone waits until the server has unmounted the view.
func (o *Other) awaitGone(ctx context.Context) error {
	for {
		if m, err := inTable(idOf(o.mount)); err != nil || m == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the view on %q does not end: %w", o.path, ctx.Err())
		case <-time.After(retryEvery):
		}
	}
}

// cutWithin is the time limit for aborting a connection.
const cutWithin = 5 * time.Second

// cutOff aborts the connection of a server that does not obey, and unmounts the dead view. The
// mount stays if its connection cannot be aborted: hiding a view that still serves data to its
// holders would be worse.
func (o *Other) cutOff() error {
	ctx, cancel := context.WithTimeout(context.Background(), cutWithin)
	defer cancel()
	sys := hostSystem()
	_, err := o.within(ctx, func(dir *heldDir) ([]byte, error) { return nil, sys.cut(dir) })
	if errors.Is(err, ErrHidden) {
		err = abortConnection(o.mount, 0) // its dead mount stays under the other one
	}
	if m, tableErr := inTable(idOf(o.mount)); tableErr == nil && m == nil {
		return nil // it has obeyed after all
	}
	if err != nil {
		return fmt.Errorf("cut off the view on %q: %w", o.path, err)
	}
	return nil
}

// cut ends the connection of a view, and removes it: the kernel does both at once
// for root.
func (s system) cut(dir *heldDir) error {
	if s.direct {
		return dir.detach(unix.MNT_FORCE)
	}
	if err := abortConnection(dir.mount, dir.unique); err != nil {
		return err
	}
	return s.unmountDead(dir)
}

// removeCopies unmounts the remaining mounts of a view whose server has ended. A mount hidden by
// another one stays, and returns only errors.
func (o *Other) removeCopies() error {
	ctx, cancel := context.WithTimeout(context.Background(), cutWithin)
	defer cancel()
	sys := hostSystem()
	var errs []error
	for _, m := range o.copies {
		mounted := &Other{path: m.Mountpoint, mount: m}
		_, err := mounted.within(ctx, func(dir *heldDir) ([]byte, error) { return nil, sys.clear(dir) })
		if m, tableErr := inTable(idOf(m)); tableErr == nil && m == nil || errors.Is(err, ErrHidden) {
			err = nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
