package fusemount

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/moby/sys/mountinfo"
	"github.com/spectrumfs/spectrum/internal/served"
	"golang.org/x/sys/unix"
)

// This file unmounts exactly the mount that was checked, by a descriptor, because a path may lead
// elsewhere a moment later. There are two kinds of descriptor. One of the view's own root
// identifies the view and keeps it busy, so that it can only be unmounted lazily. One of the
// directory beneath, which must have been opened before the mount, identifies it too, because the
// kernel goes from there to the mount on top.

// errReplaced: another mount covered the checked one at that moment, or the path given to the
// helper led to another mount, which was unmounted.
var errReplaced = errors.New("another mount was removed in its place")

// mountpointDir is the directory that a view is mounted on, held since before the mount.
type mountpointDir struct {
	mu  sync.Mutex
	dir *heldDir // nil when it is closed
}

var errClosed = errors.New("the view has ended")

// use calls do with the directory, which is not closed while do runs.
func (s *mountpointDir) use(do func(dir *heldDir) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dir == nil {
		return errClosed
	}
	return do(s.dir)
}

func (s *mountpointDir) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dir != nil {
		s.dir.close()
		s.dir = nil
	}
}

// openTop opens the mount on a directory that was opened before. It goes through the present parent
// of the directory, so it does not rely on a path.
func (p *heldDir) openTop() (*heldDir, error) {
	path, err := os.Readlink(p.link())
	if err != nil {
		return nil, err
	}
	parent, err := unix.Openat(p.fd, "..", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer func() { _ = unix.Close(parent) }()
	fd, err := unix.Openat(parent, filepath.Base(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	top, err := heldDirOf(fd)
	if err != nil {
		return nil, err
	}
	if !top.isMountpoint || top.mount.Parent != p.mount.ID {
		top.close()
		return nil, &MountpointError{path, ErrNotMounted}
	}
	return top, nil
}

// unmount unmounts the top mount on the directory, which the caller has just checked.
func (p *heldDir) unmount(flags int) error {
	if err := unix.Unmount(p.link(), flags); err != nil {
		return &os.PathError{Op: "unmount", Path: p.path, Err: err}
	}
	return nil
}

// detach unmounts lazily the mount whose root this is. With MNT_FORCE it also aborts the
// connection.
func (p *heldDir) detach(flags int) error {
	m, err := inTable(idOf(p.mount))
	switch {
	case err != nil:
		return err
	case m == nil || !isThere(p.unique):
		return nil
	case m.covered:
		return ErrHidden
	}
	err = p.unmount(unix.MNT_DETACH | flags)
	m, tableErr := inTable(idOf(p.mount))
	gone := tableErr == nil && (m == nil || !isThere(p.unique))
	switch {
	case gone && errors.Is(err, unix.EINVAL): // its server unmounted it first, when its connection was cut
		return nil
	case err == nil && !gone:
		return cmp.Or(tableErr, errReplaced)
	}
	return err
}

// entry is a mount as the table shows it now.
type entry struct {
	*mountinfo.Info
	covered bool // another mount is on its root
}

// inTable returns the entry of a mount, wherever it is mounted now, or nil.
func inTable(id mountID) (*entry, error) {
	all, err := mountinfo.GetMounts(nil)
	if err != nil {
		return nil, fmt.Errorf("read the mount table: %w", err)
	}
	var found *entry
	for _, m := range all {
		if idOf(m) == id {
			found = &entry{Info: m}
		}
	}
	if found == nil {
		return nil, nil
	}
	for _, m := range all {
		if m.Parent == found.ID && m.ID != found.ID && m.Mountpoint == found.Mountpoint {
			found.covered = true
		}
	}
	return found, nil
}

// controlDir is the mount point of the control file system of FUSE, and fusectlMagic its type.
const (
	controlDir   = "/sys/fs/fuse/connections"
	fusectlMagic = 0x65735543
)

var errNoControl = errors.New("the connection cannot be ended: the control files of FUSE are not mounted; as root, \"mount -t fusectl none " + controlDir + "\"")

// abortConnection makes the kernel abort the FUSE connection of a mount of this user, by its number
// and not through a path to the mount. The number may have been reused: so the file is opened
// first, which stays bound to one connection and has no effect after that has ended, and then the
// mount must be in the table with that number. A mount that no longer exists, or is dead, is not an
// error.
func abortConnection(m *mountinfo.Info, unique uint64) error {
	f, err := os.OpenFile(fmt.Sprintf("%s/%d/abort", controlDir, m.Minor), os.O_WRONLY, 0)
	if err != nil {
		var st unix.Statfs_t
		switch statErr := unix.Statfs(controlDir, &st); {
		case statErr != nil || st.Type != fusectlMagic:
			return errNoControl
		case errors.Is(err, fs.ErrNotExist):
			return nil
		}
		return err
	}
	defer f.Close()
	now, err := inTable(idOf(m))
	if err != nil || now == nil || !isThere(unique) || !served.IsOwn(now.Info) {
		return err
	}
	if _, err = f.Write([]byte{'1'}); errors.Is(err, unix.ENOTCONN) {
		return nil
	}
	return err
}
