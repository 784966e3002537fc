package fusemount

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/moby/sys/mountinfo"
	"github.com/spectrumfs/spectrum/internal/served"
	"golang.org/x/sys/unix"
)

// Why a view cannot be mounted on a directory, or is not mounted. A path that does not exist is
// fs.ErrNotExist.
var (
	ErrNotDirectory   = errors.New("not a directory")
	ErrNotEmpty       = errors.New("the directory is not empty")
	ErrAlreadyMounted = errors.New("a file system is already mounted there")
	ErrDeadMount      = errors.New("a dead FUSE mount is there: its server has exited")
	ErrNotMounted     = errors.New("nothing is mounted there")
	ErrNotSpectrum    = errors.New("the file system mounted there is not a spectrum view")
	ErrNotOwn         = errors.New("the view there was mounted by another user")
)

// ErrForeign means that another user serves the file system. Its server may answer anything,
// or block forever, so it gets no request.
var ErrForeign = served.ErrForeign

// A NotOwnError is the [ErrNotOwn] for a view that this user may not unmount. It names the user who
// may, according to the kernel.
type NotOwnError struct{ UserID int } // -1 if the mount table does not have it

func (e *NotOwnError) Error() string { return ErrNotOwn.Error() }

// Is makes it an [ErrNotOwn], and an [ErrForeign].
func (e *NotOwnError) Is(target error) bool { return target == ErrNotOwn || target == ErrForeign }

// A MountpointError is an error about a mount point. Err is one of the errors above, or of the
// system.
type MountpointError struct {
	Path string // with symbolic links resolved, when it could be
	Err  error
}

func (e *MountpointError) Error() string { return fmt.Sprintf("mount point %q: %v", e.Path, e.Err) }

func (e *MountpointError) Unwrap() error { return e.Err }

// CheckMountpoint returns an error unless a view can be mounted on a path: it must be an
// existing empty directory, and neither a mount point nor a dead mount. Symbolic links are
// followed, and the error names the real path. Errors are [*MountpointError].
func CheckMountpoint(path string) error {
	p, err := openEmpty(path, served.OpenDir)
	if err != nil {
		return err
	}
	p.close()
	return nil
}

// heldDir is a directory, held by a descriptor that allows nothing but to name it
// (O_PATH), and the mount that it is in.
type heldDir struct {
	fd    int
	path  string // the real path, by the kernel
	mount *mountinfo.Info

	// unique is a number of the mount that is never reused, unlike mount.ID; 0 if the kernel has
	// none.
	unique uint64

	// isMountpoint: the directory is the root of the mount that it is in.
	isMountpoint bool
}

// close may be called again.
func (p *heldDir) close() {
	if p.fd >= 0 {
		_ = unix.Close(p.fd)
	}
	p.fd = -1
}

// openHeld resolves a path, once. It sends no request to a FUSE file system that is mounted on it,
// so it does not block or fail on a dead one, and returns [ErrForeign] for one of another user on
// the path.
func openHeld(path string) (*heldDir, error) { return openHeldWith(path, served.OpenDir) }

func openHeldWith(path string, open func(path string) (int, error)) (*heldDir, error) {
	fd, err := open(path)
	if err != nil {
		return nil, &MountpointError{path, openError(err)}
	}
	p, err := heldDirOf(fd)
	if err != nil {
		return nil, &MountpointError{path, err}
	}
	return p, nil
}

// heldDirOf takes ownership of a descriptor.
func heldDirOf(fd int) (*heldDir, error) {
	p := &heldDir{fd: fd}
	var id int
	var err error
	if p.path, err = os.Readlink(p.link()); err == nil {
		id, err = served.MountID(fd)
	}
	if err == nil {
		p.mount, err = served.Numbered(id)
	}
	if err != nil {
		p.close()
		return nil, err
	}
	p.unique, p.isMountpoint = uniqueOf(fd), p.isRoot()
	return p, nil
}

// isRoot reports whether the descriptor names the root of its mount. The kernel decides: the
// path of the descriptor and that of the mount table could be read before and after a
// directory above is renamed. No attribute is requested, so a FUSE server gets no request.
func (p *heldDir) isRoot() bool {
	var st unix.Statx_t
	err := unix.Statx(p.fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, 0, &st)
	if err != nil || st.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT == 0 {
		return p.mount.Mountpoint == p.path // before Linux 5.8
	}
	return st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}

// link returns a path that leads to this directory, even if it is moved.
func (p *heldDir) link() string { return fmt.Sprintf("/proc/self/fd/%d", p.fd) }

func openError(err error) error {
	switch {
	case errors.Is(err, unix.ENOTDIR):
		return ErrNotDirectory
	case errors.Is(err, unix.ENOTCONN):
		return ErrDeadMount // above the mount point
	}
	return err
}

// openEmpty is openPlace for a directory on which a view can be mounted.
func openEmpty(path string, open func(path string) (int, error)) (*heldDir, error) {
	p, err := openHeldWith(path, open)
	if err != nil {
		return nil, err
	}
	if err := p.checkEmpty(); err != nil {
		p.close()
		return nil, &MountpointError{p.path, err}
	}
	return p, nil
}

func (p *heldDir) checkEmpty() error {
	if served.IsForeign(p.mount) {
		if p.isMountpoint && p.isDead() {
			return ErrDeadMount
		}
		if p.isMountpoint {
			return fmt.Errorf("%w: %s of user %d", ErrAlreadyMounted, p.mount.FSType, served.By(p.mount))
		}
		return &served.ForeignError{UserID: served.By(p.mount)}
	}
	if p.isMountpoint {
		if p.isDead() {
			return ErrDeadMount
		}
		return fmt.Errorf("%w: %s", ErrAlreadyMounted, p.mount.FSType)
	}
	fd, err := unix.Openat(p.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return openError(err)
	}
	dir := os.NewFile(uintptr(fd), p.path)
	defer dir.Close()
	names, err := dir.Readdirnames(1)
	if len(names) > 0 {
		return ErrNotEmpty
	}
	if !errors.Is(err, io.EOF) {
		return openError(err)
	}
	return nil
}

// deadAfter is the time in which a FUSE server must answer a request.
const deadAfter = 2 * time.Second

// isDead reports whether the server of a mounted FUSE file system has died. A statfs always reaches
// the server, even if everything is cached. The server of another user gets no request; its process
// is looked up instead. A stopped server is not dead, but does not answer either: hence the time
// limit. The pending request then keeps the mount busy until it is answered.
func (p *heldDir) isDead() bool {
	if !served.IsFUSE(p.mount) {
		return false
	}
	if served.IsForeign(p.mount) {
		return os.Geteuid() == 0 && !isServed(p.mount.Minor)
	}
	fd, err := unix.FcntlInt(uintptr(p.fd), unix.F_DUPFD_CLOEXEC, 3) // the caller may close its descriptor first
	if err != nil {
		return false
	}
	answer := make(chan error, 1)
	go func() {
		defer func() { _ = unix.Close(fd) }()
		var st unix.Statfs_t
		answer <- unix.Fstatfs(fd, &st)
	}()
	select {
	case err := <-answer:
		return errors.Is(err, unix.ENOTCONN)
	case <-time.After(deadAfter):
		return false
	}
}

// mountID identifies a mount, as far as the mount table can.
type mountID struct {
	id           int
	major, minor int
}

func idOf(m *mountinfo.Info) mountID { return mountID{m.ID, m.Major, m.Minor} }

// uniqueOf returns the mount number that is never used again (Linux 6.8), or 0.
func uniqueOf(fd int) uint64 {
	var st unix.Statx_t
	err := unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_MNT_ID_UNIQUE, &st)
	if err != nil || st.Mask&unix.STATX_MNT_ID_UNIQUE == 0 {
		return 0
	}
	return st.Mnt_id
}
