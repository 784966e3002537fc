package pathsafe

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime"
	"slices"
	"unsafe"

	"github.com/spectrumfs/spectrum/internal/served"
	"golang.org/x/sys/unix"
)

// Dir is a handle on a directory. All access goes through one; names and paths are relative to
// it. It is safe for concurrent use, but not while it is being closed. The zero value is a
// closed handle.
type Dir struct {
	f *os.File
	w walker
}

// OpenRoot opens the directory that path names now; links in path are followed this once. A
// path to another kind of entry returns ENOTDIR and is not opened; nor is a directory whose
// file system another user serves, or that is reached through such a one
// ([served.ErrForeign]): that server gets no request.
func OpenRoot(path string) (*Dir, error) { return openRoot(path, served.OpenDir) }

func openRoot(path string, name func(path string) (int, error)) (*Dir, error) {
	named, err := retryFd(func() (int, error) { return name(path) })
	if err != nil {
		return nil, fmt.Errorf("open directory %q: %w", path, err)
	}
	fd, w, err := enterNamed(named)
	if err != nil {
		return nil, fmt.Errorf("open directory %q: %w", path, err)
	}
	return newDir(fd, path, w), nil
}

// enterNamed opens a directory from an O_PATH descriptor, after it has checked that no other user
// serves it; the check sends no request to a server. It takes ownership of the descriptor.
func enterNamed(named int) (int, walker, error) {
	defer closeFd(named)
	if err := served.Check(named); err != nil {
		return -1, nil, err
	}
	fd, err := retryFd(func() (int, error) { return unix.Openat(named, ".", openDirectory|unix.O_CLOEXEC, 0) })
	if err != nil {
		return -1, nil, err
	}
	w, err := walkerFor(fd)
	if err != nil {
		closeFd(fd)
		return -1, nil, fmt.Errorf("its file system: %w", err)
	}
	return fd, w, nil
}

func newDir(fd int, name string, w walker) *Dir {
	return &Dir{f: os.NewFile(uintptr(fd), name), w: w}
}

// Close closes the handle, and releases a lock taken by TryLock.
func (d *Dir) Close() error { return d.f.Close() }

// Name returns the name under which the directory was opened, for messages
// only.
func (d *Dir) Name() string {
	if d.f == nil {
		return ""
	}
	return d.f.Name()
}

// Fd returns the descriptor, -1 when closed. It stays the property of d.
func (d *Dir) Fd() int { return int(d.f.Fd()) }

// Reopen returns a handle of its own on the same directory: with its own lock
// and its own life.
func (d *Dir) Reopen() (*Dir, error) {
	fd, err := d.openFd("reopen", ".", func(fd int) (int, error) {
		return unix.Openat(fd, ".", openDirectory|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, err
	}
	return newDir(fd, d.Name(), d.w), nil
}

// Stat describes the directory itself.
func (d *Dir) Stat() (st Stat, err error) {
	err = d.do("stat", ".", func(fd int) error {
		st, err = statFd(fd)
		return err
	})
	return st, err
}

// do runs f on the descriptor, again after an interrupt by a signal, and adds the operation
// and the name to an error.
func (d *Dir) do(op, name string, f func(fd int) error) error {
	fd := d.Fd()
	if fd < 0 {
		return d.wrap(op, name, fs.ErrClosed)
	}
	err := retry(func() error { return f(fd) })
	runtime.KeepAlive(d)
	return d.wrap(op, name, err)
}

// doName is do for an operation on a single component.
func (d *Dir) doName(op, name string, f func(fd int) error) error {
	if err := checkName(name); err != nil {
		return d.wrap(op, name, err)
	}
	return d.do(op, name, f)
}

// openFd is do for calls that make a descriptor.
func (d *Dir) openFd(op, name string, f func(fd int) (int, error)) (int, error) {
	made := -1
	err := d.do(op, name, func(fd int) (err error) {
		made, err = f(fd)
		return err
	})
	if err != nil {
		return -1, err
	}
	return made, nil
}

func (d *Dir) wrap(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &AccessError{Op: op, Dir: d.Name(), Name: name, Err: d.noSpace(1, err)}
}

// OpenDir opens the directory name: never through a symbolic link (ErrSymlink)
// and never into another mount or subvolume (ErrCrossesMount).
func (d *Dir) OpenDir(name string) (*Dir, error) {
	if err := checkName(name); err != nil {
		return nil, d.wrap("open directory", name, err)
	}
	fd, err := d.walk(name, openDirectory, NoLinks)
	if err != nil {
		return nil, d.wrap("open directory", name, err)
	}
	return newDir(fd, path.Join(d.Name(), name), d.w), nil
}

// OpenDirAcross is OpenDir for a directory that may be on another mount or subvolume. It returns
// served.ErrForeign for a directory that another user serves, and sends that server no request.
func (d *Dir) OpenDirAcross(name string) (*Dir, error) {
	if err := checkName(name); err != nil {
		return nil, d.wrap("open directory", name, err)
	}
	named, err := d.openFd("open directory", name, func(fd int) (int, error) {
		return unix.Openat(fd, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, err
	}
	fd, w, err := enterNamed(named)
	if err != nil {
		return nil, d.wrap("open directory", name, err)
	}
	return newDir(fd, path.Join(d.Name(), name), w), nil
}

// Mkdir creates the directory name with the permission bits perm less the umask. It returns
// fs.ErrExist if the name exists.
func (d *Dir) Mkdir(name string, perm uint32) error {
	return d.doName("make directory", name, func(fd int) error {
		return unix.Mkdirat(fd, name, perm)
	})
}

// Create creates the file name for reading and writing, with the permission bits perm less the
// umask. It returns fs.ErrExist if the name exists, also as a link.
func (d *Dir) Create(name string, perm uint32) (*os.File, error) {
	if err := checkName(name); err != nil {
		return nil, d.wrap("create", name, err)
	}
	return d.createAs(name, unix.O_RDWR, perm)
}

// CreateToRead is Create for a file that is open for reading only.
func (d *Dir) CreateToRead(name string, perm uint32) (*os.File, error) {
	if err := checkName(name); err != nil {
		return nil, d.wrap("create", name, err)
	}
	return d.createAs(name, unix.O_RDONLY, perm)
}

func (d *Dir) createAs(name string, access int, perm uint32) (*os.File, error) {
	const flags = unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := d.openFd("create", name, func(fd int) (int, error) {
		return unix.Openat(fd, name, flags|access, perm)
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// CreateUnnamed creates a file for reading and writing without a name. Link names it; if it is
// closed without, it is removed. It returns errors.ErrUnsupported if the file system cannot do
// this.
func (d *Dir) CreateUnnamed(perm uint32) (*os.File, error) {
	fd, err := d.openFd("create unnamed file", ".", func(fd int) (int, error) {
		made, err := unix.Openat(fd, ".", unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, perm)
		if err == unix.EISDIR { // the kernel does not know O_TMPFILE, and sees O_DIRECTORY in it
			err = errors.ErrUnsupported
		}
		return made, err
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "unnamed file"), nil
}

// Link gives the file f, created by CreateUnnamed, a name in one step. It returns fs.ErrExist if
// the name exists.
func (d *Dir) Link(f *os.File, name string) error {
	if err := checkProc(); err != nil {
		return d.wrap("link", name, err)
	}
	err := d.doName("link", name, func(fd int) error {
		return unix.Linkat(unix.AT_FDCWD, procPath(int(f.Fd())), fd, name, unix.AT_SYMLINK_FOLLOW)
	})
	runtime.KeepAlive(f)
	return err
}

// Lstat describes name without following it.
func (d *Dir) Lstat(name string) (st Stat, err error) {
	err = d.doName("stat", name, func(fd int) error {
		st, err = statName(fd, name)
		return err
	})
	return st, err
}

// RenameNoReplace moves name to newName in the directory to. It returns fs.ErrExist if newName
// exists, and errors.ErrUnsupported if the file system has no such rename; in both cases nothing
// has changed.
func (d *Dir) RenameNoReplace(name string, to *Dir, newName string) error {
	if err := checkName(newName); err != nil {
		return to.wrap("rename to", newName, err)
	}
	err := d.doName("rename", name, func(fd int) error {
		err := moving(func() error {
			return unix.Renameat2(fd, name, to.Fd(), newName, unix.RENAME_NOREPLACE)
		}, entry{d, name})
		if errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
		}
		return err
	})
	runtime.KeepAlive(to)
	return err
}

// Unlink removes the name of something that is not a directory.
func (d *Dir) Unlink(name string) error {
	return d.doName("unlink", name, func(fd int) error {
		return moving(func() error { return unix.Unlinkat(fd, name, 0) }, entry{d, name})
	})
}

// Rmdir removes an empty directory; ENOTEMPTY when it is not.
func (d *Dir) Rmdir(name string) error {
	return d.doName("remove directory", name, func(fd int) error {
		return moving(func() error { return unix.Unlinkat(fd, name, unix.AT_REMOVEDIR) }, entry{d, name})
	})
}

// Names returns the names in the directory, in byte order, without "." and
// "..".
func (d *Dir) Names() ([]string, error) {
	own, err := d.Reopen()
	if err != nil {
		return nil, err
	}
	defer own.Close()
	names, err := own.f.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list %q: %w", d.Name(), err)
	}
	slices.Sort(names)
	return names, nil
}

// Sync makes the names in the directory durable. Only the first error counts:
// never sync again after one.
func (d *Dir) Sync() error { return d.do("sync", ".", unix.Fsync) }

// SyncFS makes the whole file system of the directory durable.
func (d *Dir) SyncFS() error { return d.do("sync file system of", ".", unix.Syncfs) }

// FileSystem returns the magic number of the directory's file system (statfs).
func (d *Dir) FileSystem() (magic int64, err error) {
	err = d.do("statfs", ".", func(fd int) error {
		var sf unix.Statfs_t
		err := unix.Fstatfs(fd, &sf)
		magic = int64(sf.Type)
		return err
	})
	return magic, err
}

// Identity returns a text that identifies the directory independently of its path: the ID of its
// file system, its inode and its birth time. It stays the same after a move or a restart of the
// machine.
func (d *Dir) Identity() (string, error) {
	st, err := d.Stat()
	if err != nil {
		return "", err
	}
	var sf unix.Statfs_t
	err = d.do("statfs", ".", func(fd int) error { return unix.Fstatfs(fd, &sf) })
	if err != nil {
		return "", err
	}
	var born int64
	if !st.BirthTime.IsZero() {
		born = st.BirthTime.UnixNano()
	}
	return fmt.Sprintf("%08x%08x:%d:%d", uint32(sf.Fsid.Val[0]), uint32(sf.Fsid.Val[1]), st.ID.Ino, born), nil
}

// TryLock takes the lock of the directory (flock, on this host) for this
// handle until it is closed, or returns ErrLocked at once.
func (d *Dir) TryLock() error {
	return d.do("lock", ".", func(fd int) error {
		err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		if err == unix.EWOULDBLOCK {
			return ErrLocked
		}
		return err
	})
}

// Writable returns an error unless names may be created here: permission to write and search
// for the effective user, and a mount that is not read-only (EROFS).
func (d *Dir) Writable() error {
	return d.do("write in", ".", func(fd int) error {
		return accessible(fd, unix.W_OK|unix.X_OK)
	})
}

// accessible reports by its error whether this process may use fd in this way. Without faccessat2
// it falls back to the library, which looks only at the permission bits and ignores other reasons
// of the kernel, such as an immutable directory.
func accessible(fd int, mode uint32) error {
	_, _, errno := unix.Syscall6(unix.SYS_FACCESSAT2, uintptr(fd), uintptr(unsafe.Pointer(&dot[0])), uintptr(mode), unix.AT_EACCESS, 0, 0)
	switch errno {
	case 0:
		return nil
	case unix.ENOSYS:
		return unix.Faccessat(fd, ".", mode, unix.AT_EACCESS)
	default:
		return errno
	}
}

// dot is "." as the kernel reads it.
var dot = [...]byte{'.', 0}
