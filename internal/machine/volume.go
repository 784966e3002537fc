package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

// Volume describes the file system of a directory.
type Volume struct {
	Type       string   // from the mount table; "" if not known
	Mountpoint string   // "" if not known
	Source     string   // such as a device
	Options    []string // of the mount and of the file system
	ReadOnly   bool
	NoJournal  bool // it is one of the ext family, and keeps no journal
	NameMax    int64
	Bytes      Space
	Inodes     Space  // Total 0: it does not count them
	Unit       uint64 // bytes of a block
	Unreserved uint64 // free bytes, with those reserved for privileged users
}

// Space is the size of a file system, and the part that this user may still use.
type Space struct{ Free, Total uint64 }

// Has reports whether the file system was mounted with an option.
func (v *Volume) Has(option string) bool { return slices.Contains(v.Options, option) }

// Describe describes the file system of a directory. It writes nothing. Fields that the mount table
// does not have are zero.
func Describe(dir *pathsafe.Dir) (Volume, error) {
	var sf unix.Statfs_t
	var sx unix.Statx_t
	err := os.NewSyscallError("statfs", ignoringEINTR(func() error { return unix.Fstatfs(dir.Fd(), &sf) }))
	if err == nil {
		err = os.NewSyscallError("statx", ignoringEINTR(func() error {
			return unix.Statx(dir.Fd(), "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &sx)
		}))
	}
	runtime.KeepAlive(dir)
	if err != nil {
		return Volume{}, fmt.Errorf("file system of %q: %w", dir.Name(), err)
	}
	v := Volume{
		ReadOnly: sf.Flags&unix.ST_RDONLY != 0,
		NameMax:  sf.Namelen,
		Bytes:    Space{sf.Bavail * uint64(sf.Bsize), sf.Blocks * uint64(sf.Bsize)},
		Inodes:   Space{sf.Ffree, sf.Files},

		Unit: uint64(sf.Bsize), Unreserved: sf.Bfree * uint64(sf.Bsize),
	}
	if sx.Mask&unix.STATX_MNT_ID != 0 {
		v.look(sx.Mnt_id)
	}
	return v, nil
}

// look finds the mount in the table.
func (v *Volume) look(id uint64) {
	found, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) {
		return uint64(m.ID) != id, uint64(m.ID) == id
	})
	if err != nil || len(found) != 1 {
		return
	}
	m := found[0]
	v.Type, v.Mountpoint, v.Source = m.FSType, m.Mountpoint, m.Source
	v.Options = append(strings.Split(m.Options, ","), strings.Split(m.VFSOptions, ",")...)
	v.NoJournal = hasNoJournal("/sys", m)
}

// hasNoJournal reports whether the file system has no journal, by the sysfs mounted at sys. Only
// the ext family can lack a journal without showing it in the mount table.
func hasNoJournal(sys string, m *mountinfo.Info) bool {
	if m.FSType == "ext2" {
		return true
	}
	if m.FSType != "ext3" && m.FSType != "ext4" {
		return false
	}
	device, err := os.Readlink(filepath.Join(sys, "dev", "block", fmt.Sprintf("%d:%d", m.Major, m.Minor)))
	if err != nil {
		return false
	}
	task, err := os.ReadFile(filepath.Join(sys, "fs", "ext4", filepath.Base(device), "journal_task"))
	return err == nil && strings.TrimSpace(string(task)) == "<none>"
}

func ignoringEINTR(f func() error) error {
	for {
		if err := f(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// IsLacking reports whether an error means that a feature is not available here at all; any
// other error means that it should have worked, and failed.
func IsLacking(err error) bool {
	lacking := []error{errors.ErrUnsupported, unix.EINVAL, unix.ENOTTY, unix.EXDEV, unix.EPERM, unix.EBADF, unix.EISDIR, fs.ErrPermission}
	return slices.ContainsFunc(lacking, func(e error) bool { return errors.Is(err, e) })
}
