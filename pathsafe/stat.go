package pathsafe

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// ID identifies an inode among all existing ones, and the mount through which it was seen. It
// is comparable. Some file systems reuse inode numbers at once, so to recognise a file later
// compare the birth time and size too. Mount is 0 if the kernel does not report it, and is
// meaningless after the file system was mounted again.
type ID struct {
	Dev   uint64
	Ino   uint64
	Mount uint64
}

// Stat is the result of statx for one inode.
type Stat struct {
	Mode       fs.FileMode // type, permission, set-id and sticky bits
	Perm       uint32      // st_mode & 07777, as the kernel numbers it
	Size       int64       // bytes
	Allocated  int64       // bytes allocated on the disk
	ModTime    time.Time
	ChangeTime time.Time
	BirthTime  time.Time // zero if the file system does not have it
	ID         ID
	Links      uint32
	UID        uint32
	GID        uint32
	Immutable  bool   // chattr +i: nothing of it can be changed, its names included
	AppendOnly bool   // chattr +a
	Device     uint64 // the number of a device; 0 for anything else
}

// IsWhiteout reports whether this is the mark of overlayfs for a removed name in its upper layer: a
// character device with the number 0.
func (st Stat) IsWhiteout() bool {
	return st.Mode.Type() == fs.ModeDevice|fs.ModeCharDevice && st.Device == 0
}

// StatFile describes the file that f holds.
func StatFile(f Opened) (Stat, error) {
	st, err := statFd(int(f.Fd()))
	runtime.KeepAlive(f)
	if err != nil {
		return Stat{}, fmt.Errorf("stat %q: %w", f.Name(), err)
	}
	return st, nil
}

// statMask requests everything in a Stat. Kernels since 6.8 return the mount ID that is never
// reused, older ones the plain one.
const statMask = unix.STATX_BASIC_STATS | unix.STATX_BTIME |
	unix.STATX_MNT_ID | unix.STATX_MNT_ID_UNIQUE

// statFd describes what fd holds.
func statFd(fd int) (Stat, error) { return statAt(fd, "", unix.AT_EMPTY_PATH) }

// peekFd describes fd without a request to a server; everything except the type and the ID may be
// out of date.
func peekFd(fd int) (Stat, error) { return statAt(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC) }

// statName describes the name in the directory dir, without following a link. It sends no request
// to the server of a file system that is mounted there: the ID identifies that mount, the rest may
// be out of date.
func statName(dir int, name string) (Stat, error) {
	st, err := statAt(dir, name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_STATX_DONT_SYNC)
	if err != nil || unix.Major(st.ID.Dev) != 0 { // a block device has no server
		return st, err
	}
	in, err := peekFd(dir)
	if err != nil || st.ID.Mount != in.ID.Mount {
		return st, err
	}
	return statAt(dir, name, unix.AT_SYMLINK_NOFOLLOW)
}

func statAt(fd int, name string, flags int) (Stat, error) {
	var sx unix.Statx_t
	err := retry(func() error {
		return unix.Statx(fd, name, flags|unix.AT_NO_AUTOMOUNT, statMask, &sx)
	})
	if errors.Is(err, fs.ErrPermission) && flags&unix.AT_STATX_DONT_SYNC != 0 {
		return statMount(fd, name, flags, err)
	}
	if err != nil {
		return Stat{}, err
	}
	return makeStat(&sx), nil
}

// statMount describes the root of a file system that this user may not access because another user
// serves it privately, even from root: if no attribute is requested, the kernel still reports which
// mount it is. Otherwise it returns the error barred.
func statMount(fd int, name string, flags int, barred error) (Stat, error) {
	var sx unix.Statx_t
	err := retry(func() error {
		return unix.Statx(fd, name, flags|unix.AT_NO_AUTOMOUNT, 0, &sx)
	})
	if err != nil || sx.Attributes&unix.STATX_ATTR_MOUNT_ROOT == 0 {
		return Stat{}, barred
	}
	st := makeStat(&sx)
	st.Mode = fs.ModeIrregular
	return st, nil
}

func makeStat(sx *unix.Statx_t) Stat {
	st := Stat{
		Mode:       fileMode(uint32(sx.Mode)),
		Perm:       uint32(sx.Mode) & 0o7777,
		Size:       int64(sx.Size),
		Allocated:  int64(sx.Blocks) * 512,
		ModTime:    time.Unix(sx.Mtime.Sec, int64(sx.Mtime.Nsec)),
		ChangeTime: time.Unix(sx.Ctime.Sec, int64(sx.Ctime.Nsec)),
		ID:         ID{Dev: unix.Mkdev(sx.Dev_major, sx.Dev_minor), Ino: sx.Ino},
		Links:      sx.Nlink,
		UID:        sx.Uid,
		GID:        sx.Gid,
		Immutable:  sx.Attributes&unix.STATX_ATTR_IMMUTABLE != 0,
		AppendOnly: sx.Attributes&unix.STATX_ATTR_APPEND != 0,
		Device:     unix.Mkdev(sx.Rdev_major, sx.Rdev_minor),
	}
	if sx.Mask&unix.STATX_BTIME != 0 {
		st.BirthTime = time.Unix(sx.Btime.Sec, int64(sx.Btime.Nsec))
	}
	if sx.Mask&(unix.STATX_MNT_ID|unix.STATX_MNT_ID_UNIQUE) != 0 {
		st.ID.Mount = sx.Mnt_id
	}
	return st
}

func fileMode(raw uint32) fs.FileMode {
	mode := fs.FileMode(raw & 0o777)
	switch raw & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		mode |= fs.ModeDir
	case unix.S_IFLNK:
		mode |= fs.ModeSymlink
	case unix.S_IFIFO:
		mode |= fs.ModeNamedPipe
	case unix.S_IFSOCK:
		mode |= fs.ModeSocket
	case unix.S_IFCHR:
		mode |= fs.ModeDevice | fs.ModeCharDevice
	case unix.S_IFBLK:
		mode |= fs.ModeDevice
	default:
		mode |= fs.ModeIrregular
	}
	return mode | specialBits(raw)
}

func specialBits(raw uint32) (mode fs.FileMode) {
	if raw&unix.S_ISUID != 0 {
		mode |= fs.ModeSetuid
	}
	if raw&unix.S_ISGID != 0 {
		mode |= fs.ModeSetgid
	}
	if raw&unix.S_ISVTX != 0 {
		mode |= fs.ModeSticky
	}
	return mode
}

// IsOn reports whether st is on the same file system as the directory top, and on the same mount,
// so that it can be renamed there and back. A directory must also have the device of top: a
// subvolume of btrfs is on the mount of its parent, but is another file system to rename. Without a
// mount only a directory can begin another file system; the device of a file is ignored, because
// overlay reports that of its layer. If the kernel returns no mount IDs, only the device is
// compared, which misses bind mounts.
func (st Stat) IsOn(top ID) bool {
	if st.ID.Mount == 0 || top.Mount == 0 {
		return st.ID.Dev == top.Dev
	}
	return st.ID.Mount == top.Mount && (st.ID.Dev == top.Dev || !st.Mode.IsDir())
}
