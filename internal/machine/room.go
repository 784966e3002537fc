package machine

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

// A Need is the space that an operation needs on a file system at least.
type Need struct{ Bytes, Inodes uint64 }

// Plus returns the sum.
func (n Need) Plus(m Need) Need { return Need{n.Bytes + m.Bytes, n.Inodes + m.Inodes} }

// A FullError reports that a file system has not the room that something needs. It is ENOSPC.
type FullError struct {
	Path       string // a directory in that file system
	Of         string // "bytes" or "files"
	Need, Free uint64 // at least needed, at most free
}

// Error has both numbers.
func (e *FullError) Error() string {
	return fmt.Sprintf("no space in the file system of %q: at least %d %s are needed, and %d are free", e.Path, e.Need, e.Of, e.Free)
}

// Unwrap returns ENOSPC.
func (e *FullError) Unwrap() error { return unix.ENOSPC }

// Room estimates the space that files take on the file system of a directory. The estimates are
// lower bounds: what does not fit by [Room.Check] never fits. They are 0 for an unknown file
// system, and for one that compresses.
type Room struct {
	dir     *pathsafe.Dir
	kind    int64
	unit    uint64 // bytes of a block
	least   uint64 // size in bytes from which a file takes whole blocks
	counted bool   // bytes
	shares  bool   // files may share blocks
	inodes  bool   // each file takes one of a fixed number of inodes
	all     bool   // the space reserved for privileged users counts as free
}

// RoomOf looks at the file system of a directory, which has to stay open.
func RoomOf(dir *pathsafe.Dir) (*Room, error) {
	v, err := Describe(dir)
	if err != nil {
		return nil, err
	}
	kind, err := dir.FileSystem()
	if err != nil {
		return nil, err
	}
	r := &Room{dir: dir, kind: kind, unit: max(v.Unit, 1)}
	r.all = os.Geteuid() == 0 || mayReserved(v.Options)
	switch kind {
	case unix.TMPFS_MAGIC:
		r.counted, r.least, r.inodes = true, 1, true
	case unix.EXT4_SUPER_MAGIC: // of ext2 and ext3 too; a file of less than a block may lie in its inode
		r.counted, r.least, r.inodes = true, r.unit, true
	case unix.XFS_SUPER_MAGIC:
		r.counted, r.least, r.shares = true, 1, true
	case unix.BTRFS_SUPER_MAGIC: // a small file may lie in a tree
		flags, err := unix.IoctlGetInt(dir.Fd(), unix.FS_IOC_GETFLAGS)
		compresses := err != nil || flags&compressed != 0 || has(v.Options, "compress", "compress-force")
		r.counted, r.least, r.shares, r.all = !compresses, r.unit, true, false
	}
	return r, nil
}

// compressed is FS_COMPR_FL of a directory: new files in it are compressed.
const compressed = 4

func has(options []string, names ...string) bool {
	return slices.ContainsFunc(options, func(o string) bool {
		name, _, _ := strings.Cut(o, "=")
		return slices.Contains(names, name)
	})
}

// mayReserved reports whether a file system is mounted with an option that lets this user use the
// space reserved for privileged users.
func mayReserved(options []string) bool {
	groups, _ := os.Getgroups() // without them nothing more is counted as free
	groups = append(groups, os.Getegid())
	return slices.ContainsFunc(options, func(o string) bool {
		name, value, _ := strings.Cut(o, "=")
		id, err := strconv.Atoi(value)
		return err == nil && (name == "resuid" && id == os.Geteuid() || name == "resgid" && slices.Contains(groups, id))
	})
}

// File returns what a new file of this size needs.
func (r *Room) File(size int64) Need {
	n := r.Entry()
	if r.counted && size > 0 && uint64(size) >= r.least {
		n.Bytes = (uint64(size) + r.unit - 1) / r.unit * r.unit
	}
	return n
}

// Entry returns what an entry needs at least, such as a file that shares its content.
func (r *Room) Entry() Need {
	if !r.inodes {
		return Need{}
	}
	return Need{Inodes: 1}
}

// Directory returns what a new directory with an entry needs: on ext4 a block.
func (r *Room) Directory() Need {
	n := r.Entry()
	if r.kind == unix.EXT4_SUPER_MAGIC {
		n.Bytes = r.unit
	}
	return n
}

// MayShare reports whether a copy of a file in another file system, or in this one, may
// share the blocks of it.
func (r *Room) MayShare(kind int64) bool { return r.shares && kind == r.kind }

// SameAs reports whether both are one file system.
func (r *Room) SameAs(other *Room) (bool, error) {
	a, err := r.dir.Stat()
	if err != nil {
		return false, err
	}
	b, err := other.dir.Stat()
	return err == nil && a.ID.Dev == b.ID.Dev, err
}

// How often, and after which delay, the free space is read again: some file systems count freed
// blocks late.
const (
	looks = 5
	pause = 20 * time.Millisecond
)

// Check returns a [*FullError] if there is less space than needed.
func (r *Room) Check(n Need) error {
	var full *FullError
	for range looks {
		v, err := Describe(r.dir)
		if err != nil {
			return err
		}
		if full = r.short(&v, n); full == nil {
			return nil
		}
		_ = r.dir.SyncFS() // only so that freed blocks are counted; writers sync their own data
		time.Sleep(pause)
	}
	return full
}

// Free returns the free space, as Check counts it. Inodes is 0 if they are not counted.
func (r *Room) Free() (Need, error) {
	v, err := Describe(r.dir)
	if err != nil {
		return Need{}, err
	}
	return Need{r.free(&v), v.Inodes.Free}, nil
}

// MayLack reports whether less is free than would be needed at most.
func (r *Room) MayLack(most Need) (bool, error) {
	free, err := r.Free()
	return most.Bytes > free.Bytes || most.Inodes > free.Inodes, err
}

func (r *Room) free(v *Volume) uint64 {
	if r.all {
		return max(v.Bytes.Free, v.Unreserved)
	}
	return v.Bytes.Free
}

func (r *Room) short(v *Volume, n Need) *FullError {
	free := r.free(v)
	counted := v.Bytes.Total > 0 && (free > 0 || r.kind != unix.BTRFS_SUPER_MAGIC) // Btrfs reports 0 if only metadata is short
	switch {
	case counted && n.Bytes > free:
		return &FullError{r.dir.Name(), "bytes", n.Bytes, free}
	case v.Inodes.Total > 0 && n.Inodes > v.Inodes.Free:
		return &FullError{r.dir.Name(), "files", n.Inodes, v.Inodes.Free}
	}
	return nil
}
