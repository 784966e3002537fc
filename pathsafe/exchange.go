package pathsafe

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// RenameExchange exchanges the entry at name with the entry at newName in the directory to, in one
// step: neither name is ever missing. It returns fs.ErrNotExist unless both exist, and
// errors.ErrUnsupported if the file system has no such rename; then nothing has changed.
func (d *Dir) RenameExchange(name string, to *Dir, newName string) error {
	if err := checkName(newName); err != nil {
		return to.wrap("exchange with", newName, err)
	}
	err := d.doName("exchange", name, func(fd int) error {
		err := moving(func() error {
			return unix.Renameat2(fd, name, to.Fd(), newName, unix.RENAME_EXCHANGE)
		}, entry{d, name}, entry{to, newName})
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
			return fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
		}
		return err
	})
	runtime.KeepAlive(to)
	return err
}

// Chmod sets the permission, set-id and sticky bits (07777) of the directory
// itself.
func (d *Dir) Chmod(perm uint32) error {
	return d.do("set mode of", ".", func(fd int) error { return unix.Fchmod(fd, perm) })
}

// SetModTime sets the modification time of the directory itself, and no other
// time.
func (d *Dir) SetModTime(t time.Time) error {
	ts, err := unix.TimeToTimespec(t)
	if err != nil {
		return d.wrap("set times of", ".", err)
	}
	times := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, ts}
	return d.do("set times of", ".", func(fd int) error {
		err := unix.UtimesNanoAt(fd, "", times, unix.AT_EMPTY_PATH)
		if err == unix.EINVAL { // before Linux 5.8
			err = unix.UtimesNanoAt(fd, ".", times, 0)
		}
		return err
	})
}

// ChmodDir sets the mode bits of the directory name without opening it for
// reading, which its own bits may forbid. It follows no link (ENOTDIR) and
// enters no other mount or subvolume (ErrCrossesMount).
func (d *Dir) ChmodDir(name string, perm uint32) error {
	if err := checkName(name); err != nil {
		return d.wrap("set mode of", name, err)
	}
	if err := checkProc(); err != nil {
		return d.wrap("set mode of", name, err)
	}
	fd, st, err := d.openPath(name, NoLinks)
	if err != nil {
		return d.wrap("set mode of", name, err)
	}
	defer closeFd(fd)
	if !st.Mode.IsDir() {
		return d.wrap("set mode of", name, unix.ENOTDIR)
	}
	return d.wrap("set mode of", name, retry(func() error { return unix.Chmod(procPath(fd), perm) }))
}
