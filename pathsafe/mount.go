package pathsafe

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/spectrumfs/spectrum/internal/served"
	"golang.org/x/sys/unix"
)

// A MountError is an [ErrCrossesMount] that names the mount. Its server got no request.
type MountError struct {
	Mountpoint string // absolute, as in the mount table
	Type       string // of its file system
	UserID     int    // the user who serves it (FUSE); -1 if no user does
}

func (e *MountError) Error() string {
	by := ""
	if e.UserID >= 0 {
		by = fmt.Sprintf(" of user %d", e.UserID)
	}
	return fmt.Sprintf("%v: a mount (%s%s) on %q", ErrCrossesMount, e.Type, by, e.Mountpoint)
}

// Is makes it an [ErrCrossesMount].
func (e *MountError) Is(target error) bool { return target == ErrCrossesMount }

// crossing returns the error for a descriptor on another mount than the root's, or in a subvolume
// of the same mount.
func crossing(fd int, st Stat, root ID) error {
	if st.ID.Mount == root.Mount {
		return ErrCrossesMount
	}
	id, err := served.MountID(fd)
	if err != nil {
		return ErrCrossesMount
	}
	m, err := served.Numbered(id)
	if err != nil { // it was unmounted in the meantime
		return ErrCrossesMount
	}
	e := &MountError{Mountpoint: m.Mountpoint, Type: m.FSType, UserID: -1}
	if served.IsFUSE(m) {
		e.UserID = served.By(m)
	}
	return e
}

// An entry is a name in a directory.
type entry struct {
	dir  *Dir
	name string
}

// moving runs a call that moves or removes these names. If a name has a mount on it the kernel
// rejects that ([MountError]), unless the directory is one [Dir.WithoutMounts].
func moving(f func() error, entries ...entry) error {
	err := f()
	if !errors.Is(err, unix.EBUSY) {
		return err
	}
	for _, p := range entries {
		if _, free := p.dir.w.(freeWalker); free {
			return outsideMounts(f)
		}
		if found := p.mount(); found != nil {
			return found
		}
	}
	return err
}

// mount returns the [MountError] of the mount on a name, or nil if there is none.
func (p entry) mount() error {
	fd, err := retryFd(func() (int, error) {
		return unix.Openat(p.dir.Fd(), p.name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil
	}
	defer closeFd(fd)
	in, err := peekFd(p.dir.Fd())
	if err != nil {
		return nil
	}
	st, err := peekFd(fd)
	if err != nil || st.ID.Mount == in.ID.Mount {
		return nil
	}
	return crossing(fd, st, in.ID)
}

// A freeWalker walks in a copy of a mount without the mounts in it.
type freeWalker struct{ walker }

// WithoutMounts returns a handle on the same directory in which nothing is mounted, and in which no
// process can mount: names beneath it are those of its own file system, even if a mount hides them
// or is on them. A mount on a name moves with the name, and is removed with it. It requires
// CAP_SYS_ADMIN and Linux 5.2.
func (d *Dir) WithoutMounts() (*Dir, error) {
	tree, err := d.openFd("copy the mount of", ".", func(fd int) (int, error) {
		return unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	})
	if err != nil {
		return nil, err
	}
	defer closeFd(tree)
	fd, err := retryFd(func() (int, error) { return unix.Openat(tree, ".", openDirectory|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, d.wrap("copy the mount of", ".", err)
	}
	return newDir(fd, d.Name(), freeWalker{d.w}), nil
}

// outsideMounts runs f on a thread of its own that sees no mounts, and ends with it: the
// kernel rejects only moves and removals of a mount point of the calling thread.
func outsideMounts(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked
		err := unix.Unshare(unix.CLONE_NEWNS)
		if err == nil {
			err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
		}
		if err == nil {
			err = unix.Unmount("/", unix.MNT_DETACH)
		}
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}
