package pathsafe

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Readlink returns the target of the symbolic link name; EINVAL for anything
// else.
func (d *Dir) Readlink(name string) (target string, err error) {
	buf := make([]byte, MaxPath+1)
	err = d.doName("read link", name, func(fd int) error {
		n, err := unix.Readlinkat(fd, name, buf)
		target = string(buf[:max(n, 0)])
		return err
	})
	if err != nil {
		return "", err
	}
	return target, nil
}

// Symlink creates the symbolic link name with any target. It returns fs.ErrExist if the name
// exists.
func (d *Dir) Symlink(target, name string) error {
	return d.doName("make link", name, func(fd int) error { return unix.Symlinkat(target, fd, name) })
}

// Mkfifo creates the FIFO name with the permission bits perm less the umask. It returns fs.ErrExist
// if the name exists.
func (d *Dir) Mkfifo(name string, perm uint32) error {
	return d.doName("make fifo", name, func(fd int) error {
		return unix.Mknodat(fd, name, unix.S_IFIFO|perm&0o777, 0)
	})
}

// LinkName creates newName in the directory to as another name of the entry at name, also if that
// is a symbolic link. It returns fs.ErrExist if newName exists.
func (d *Dir) LinkName(name string, to *Dir, newName string) error {
	if err := checkName(newName); err != nil {
		return to.wrap("link to", newName, err)
	}
	err := d.doName("link", name, func(fd int) error {
		return unix.Linkat(fd, name, to.Fd(), newName, 0)
	})
	runtime.KeepAlive(to)
	return err
}

// TryLockShared is TryLock for a lock that any number of handles may have at
// once, as long as none has that of TryLock. A handle that has one of the two
// changes to it, and may lose the one it has with an error.
func (d *Dir) TryLockShared() error {
	return d.do("lock", ".", func(fd int) error {
		err := unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB)
		if err == unix.EWOULDBLOCK {
			return ErrLocked
		}
		return err
	})
}

// A Node is a handle on an inode of any type, to read and set its metadata: of a link itself, not
// of its target. The inode is not opened. The handle that the Node was made from must stay open.
type Node struct {
	fd   int
	name string
	pin  *os.File // nil if the descriptor is that of keep
	keep any
}

// Node returns the inode of the directory.
func (d *Dir) Node() *Node { return &Node{fd: d.Fd(), name: d.Name(), keep: d} }

// FileNode returns the inode that f holds.
func FileNode(f Opened) *Node { return &Node{fd: int(f.Fd()), name: f.Name(), keep: f} }

// Pin returns the inode at name, until it is closed. An entry on another mount is
// ErrCrossesMount, and its server gets no request.
func (d *Dir) Pin(name string) (*Node, error) {
	if err := checkName(name); err != nil {
		return nil, d.wrap("open", name, err)
	}
	fd, err := d.openFd("open", name, func(at int) (int, error) {
		fd, err := unix.Openat(at, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return -1, err
		}
		if err := sameMount(at, fd); err != nil {
			closeFd(fd)
			return -1, err
		}
		return fd, nil
	})
	if err != nil {
		return nil, err
	}
	return &Node{fd: fd, name: name, pin: os.NewFile(uintptr(fd), name)}, nil
}

// sameMount returns an error unless two descriptors are on the same mount.
func sameMount(at, fd int) error {
	in, err := peekFd(at)
	if err != nil {
		return err
	}
	st, err := peekFd(fd)
	if err == nil && st.ID.Mount != in.ID.Mount {
		err = crossing(fd, st, in.ID)
	}
	return err
}

// Name returns the name that the inode was found at.
func (n *Node) Name() string { return n.name }

// Close closes a handle made by Pin.
func (n *Node) Close() error {
	if n.pin == nil {
		return nil
	}
	return n.pin.Close()
}

// do runs f, again when a signal interrupted it.
func (n *Node) do(op string, f func() error) error {
	err := retry(f)
	runtime.KeepAlive(n)
	if err != nil {
		return fmt.Errorf("%s %q: %w", op, n.name, err)
	}
	return nil
}

// doPath is do for calls that do not accept a descriptor without access. They get its path in
// procfs, which leads to the inode itself, even if that is a link.
func (n *Node) doPath(op string, f func(path string) error) error {
	if err := checkProc(); err != nil {
		return fmt.Errorf("%s %q: %w", op, n.name, err)
	}
	path := procPath(n.fd)
	return n.do(op, func() error { return f(path) })
}

// Stat describes the inode.
func (n *Node) Stat() (st Stat, err error) {
	err = n.do("stat", func() error {
		st, err = statFd(n.fd)
		return err
	})
	return st, err
}

// Chmod sets the permission, set-id and sticky bits perm (07777) exactly. A
// symbolic link has none that could be set: EOPNOTSUPP.
func (n *Node) Chmod(perm uint32) error {
	if n.pin == nil {
		return n.do("set mode of", func() error { return unix.Fchmod(n.fd, perm) })
	}
	return n.doPath("set mode of", func(path string) error { return unix.Chmod(path, perm) })
}

// Chown sets user and group. Set-id bits and file capabilities may go with it.
func (n *Node) Chown(uid, gid uint32) error {
	return n.do("set owner of", func() error {
		return unix.Fchownat(n.fd, "", int(uid), int(gid), unix.AT_EMPTY_PATH)
	})
}

// SetModTime sets the times of modification and of access to t, which may lie
// before 1970.
func (n *Node) SetModTime(t time.Time) error {
	ts := unix.Timespec{Sec: t.Unix(), Nsec: int64(t.Nanosecond())}
	times := []unix.Timespec{ts, ts}
	err := n.do("set times of", func() error {
		return unix.UtimesNanoAt(n.fd, "", times, unix.AT_EMPTY_PATH)
	})
	if !errors.Is(err, unix.EINVAL) {
		return err
	}
	return n.doPath("set times of", func(path string) error { // before Linux 5.8
		return unix.UtimesNanoAt(unix.AT_FDCWD, path, times, 0)
	})
}

// An Xattr is an extended attribute.
type Xattr struct {
	Name  string
	Value string
}

// MaxXattrs bounds the names of all extended attributes of an inode together,
// and each of their values, in bytes. The kernel has the same bounds.
const MaxXattrs = 64 << 10

// Xattrs returns the extended attributes that this process may read, sorted by name; none on a
// file system without them.
func (n *Node) Xattrs() ([]Xattr, error) {
	return n.xattrs(func(_ string, err error) error { return err })
}

// ReadableXattrs is Xattrs without those whose value this process may not read: denied gets the
// name of each, and why.
func (n *Node) ReadableXattrs(denied func(name string, err error)) ([]Xattr, error) {
	return n.xattrs(func(name string, err error) error {
		if !errors.Is(err, fs.ErrPermission) {
			return err
		}
		denied(name, err)
		return nil
	})
}

// xattrs returns all extended attributes; failed decides what to do about one that cannot be read.
func (n *Node) xattrs(failed func(name string, err error) error) ([]Xattr, error) {
	var small [512]byte
	names, err := n.readXattr("list extended attributes of", small[:], n.list)
	if errors.Is(err, unix.ENOTSUP) || err == nil && len(names) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Xattr
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		value, err := n.readXattr("read extended attribute of", small[:], n.getter(name))
		if errors.Is(err, unix.ENODATA) { // removed in the meantime
			continue
		}
		if err != nil {
			if err := failed(name, err); err != nil {
				return nil, err
			}
			continue
		}
		all = append(all, Xattr{name, string(value)})
	}
	slices.SortFunc(all, func(a, b Xattr) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// readXattr calls f with a buffer that is large enough for its result.
func (n *Node) readXattr(op string, buf []byte, f func(buf []byte) (int, error)) ([]byte, error) {
	size := 0
	read := func() (err error) {
		if err := checkProc(); err != nil {
			return err
		}
		size, err = f(buf)
		return err
	}
	err := n.do(op, read)
	if errors.Is(err, unix.ERANGE) {
		buf = make([]byte, MaxXattrs)
		err = n.do(op, read)
	}
	if err != nil {
		return nil, err
	}
	return bytes.Clone(buf[:size]), nil
}

func (n *Node) list(buf []byte) (int, error) {
	if n.pin == nil {
		return unix.Flistxattr(n.fd, buf)
	}
	return unix.Listxattr(procPath(n.fd), buf)
}

func (n *Node) getter(name string) func(buf []byte) (int, error) {
	return func(buf []byte) (int, error) {
		if n.pin == nil {
			return unix.Fgetxattr(n.fd, name, buf)
		}
		return unix.Getxattr(procPath(n.fd), name, buf)
	}
}

// SetXattr sets an extended attribute.
func (n *Node) SetXattr(x Xattr) error {
	return n.doPath("set extended attribute of", func(path string) error {
		return unix.Setxattr(path, x.Name, []byte(x.Value), 0)
	})
}

// RemoveXattr removes an extended attribute, if it exists.
func (n *Node) RemoveXattr(name string) error {
	err := n.doPath("remove extended attribute of", func(path string) error {
		return unix.Removexattr(path, name)
	})
	if errors.Is(err, unix.ENODATA) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// CopyUp makes the upper layer of an overlay hold the inode, if it is in a lower layer; its
// identity then changes. Elsewhere only the time of change is set, and for a directory of another
// user the modification time too. If this user may neither set times nor write, CopyUp has no
// effect.
func (n *Node) CopyUp() error {
	st, err := n.Stat()
	if err != nil {
		return err
	}
	omit := unix.Timespec{Nsec: unix.UTIME_OMIT}
	touch := func(mod unix.Timespec) error {
		return n.do("copy up", func() error {
			return unix.UtimesNanoAt(n.fd, "", []unix.Timespec{omit, mod}, unix.AT_EMPTY_PATH)
		})
	}
	err = touch(unix.Timespec{Sec: st.ModTime.Unix(), Nsec: int64(st.ModTime.Nanosecond())})
	switch {
	case !errors.Is(err, fs.ErrPermission):
		return err
	case st.Mode.IsDir():
		omit = unix.Timespec{Nsec: unix.UTIME_NOW} // both, or it is not allowed
		err = touch(omit)
	case st.Mode.IsRegular():
		err = n.doPath("copy up", func(path string) error {
			fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
			if err == nil {
				closeFd(fd)
			}
			return err
		})
	}
	if errors.Is(err, fs.ErrPermission) {
		err = nil
	}
	return err
}
