package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

// A Feature is something that spectrum uses of a file system.
type Feature string

// The features, in the order in which they are tried.
const (
	Lock          Feature = "lock"             // flock on a file shuts out another handle
	MountID       Feature = "mount-id"         // statx distinguishes mounts
	BirthTime     Feature = "birth-time"       // statx returns the time of creation
	Mode          Feature = "mode"             // permission bits are kept as they are set
	Time          Feature = "time"             // modification times are kept to the nanosecond
	NoReplace     Feature = "rename-noreplace" // renameat2 with RENAME_NOREPLACE
	Exchange      Feature = "rename-exchange"  // renameat2 with RENAME_EXCHANGE
	FileSync      Feature = "fsync"            // of a file
	DirSync       Feature = "fsync-directory"
	SyncFS        Feature = "syncfs"
	CaseSensitive Feature = "case" // names that differ in case are two
	Symlinks      Feature = "symlinks"
	HardLinks     Feature = "hard-links"
	UserXattrs    Feature = "xattrs" // user.* extended attributes
	UnnamedFiles  Feature = "unnamed-files"
	FindHoles     Feature = "holes" // SEEK_HOLE
	ShareBlocks   Feature = "clone" // FICLONE
)

// trials are the tests of the features.
var trials = []struct {
	feature Feature
	try     func(*bench) error
}{
	{Lock, (*bench).lock},
	{MountID, (*bench).mountID},
	{BirthTime, (*bench).birthTime},
	{Mode, (*bench).mode},
	{Time, (*bench).time},
	{NoReplace, (*bench).noReplace},
	{Exchange, (*bench).exchange},
	{FileSync, (*bench).fileSync},
	{DirSync, func(b *bench) error { return b.dir.Sync() }},
	{SyncFS, func(b *bench) error { return b.dir.SyncFS() }},
	{CaseSensitive, (*bench).caseSensitive},
	{Symlinks, func(b *bench) error { return b.dir.Symlink("nowhere", b.name()) }},
	{HardLinks, (*bench).hardLinks},
	{UserXattrs, (*bench).userXattrs},
	{UnnamedFiles, (*bench).unnamed},
	{FindHoles, (*bench).findHoles},
	{ShareBlocks, (*bench).shareBlocks},
}

// unlike returns the error for a file system that did not do what was requested.
func unlike(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, errors.ErrUnsupported)...)
}

func (b *bench) lock() error {
	return b.withFile(func(f *os.File, name string) error {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			return err
		}
		second, err := b.dir.OpenToWrite(name)
		if err != nil {
			return err
		}
		defer second.Close()
		err = unix.Flock(int(second.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil
		}
		if err == nil {
			err = unlike("two have the lock at once")
		}
		return err
	})
}

func (b *bench) mountID() error {
	st, err := b.dir.Stat()
	if err == nil && st.ID.Mount == 0 {
		err = unlike("statx returns no mount id")
	}
	return err
}

func (b *bench) birthTime() error {
	return b.withFile(func(f *os.File, _ string) error {
		st, err := pathsafe.StatFile(f)
		if err == nil && st.BirthTime.IsZero() {
			err = unlike("statx returns no birth time")
		}
		return err
	})
}

func (b *bench) mode() error {
	return b.withFile(func(f *os.File, _ string) error {
		for _, perm := range []uint32{0o755, 0o640, 0o444} {
			if err := pathsafe.FileNode(f).Chmod(perm); err != nil {
				return err
			}
			st, err := pathsafe.StatFile(f)
			if err != nil {
				return err
			}
			if st.Perm != perm {
				return unlike("a file that was given mode %04o has %04o", perm, st.Perm)
			}
		}
		return nil
	})
}

func (b *bench) time() error {
	return b.withFile(func(f *os.File, _ string) error {
		want := time.Date(2001, 2, 3, 4, 5, 7, 123456789, time.UTC)
		if err := pathsafe.FileNode(f).SetModTime(want); err != nil {
			return err
		}
		st, err := pathsafe.StatFile(f)
		if err == nil && !st.ModTime.Equal(want) {
			err = unlike("a time that was set is off by %v", st.ModTime.Sub(want))
		}
		return err
	})
}

// noReplace moves a file and a directory, and requires that existing entries at the new names are
// kept.
func (b *bench) noReplace() error {
	dir, moved, taken := b.name(), b.name(), b.name()
	err := errors.Join(b.dir.Mkdir(dir, 0o700), b.dir.Mkdir(taken, 0o700))
	if err == nil {
		err = b.dir.RenameNoReplace(dir, b.dir, moved)
	}
	if err != nil {
		return err
	}
	return b.withFile(func(_ *os.File, name string) error {
		file := b.name()
		if err := b.dir.RenameNoReplace(name, b.dir, file); err != nil {
			return err
		}
		err := b.dir.RenameNoReplace(moved, b.dir, taken) // which a plain rename would replace
		if err == nil {
			return unlike("it has replaced what was there")
		}
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	})
}

// exchange exchanges two directories with an entry each, and requires that each has the entry of
// the other; then it exchanges one of them and a file.
func (b *bench) exchange() (left error) {
	dirs := [2]string{b.name(), b.name()}
	for _, dir := range dirs {
		if err := b.dir.Mkdir(dir, 0o700); err != nil {
			return err
		}
		in, err := b.dir.OpenDir(dir)
		if err != nil {
			return err
		}
		defer in.Close()
		if err := in.Mkdir("of-"+dir, 0o700); err != nil {
			return err
		}
		defer func() { left = errors.Join(left, in.Rmdir("of-"+dir)) }()
	}
	if err := b.dir.RenameExchange(dirs[0], b.dir, dirs[1]); err != nil {
		return err
	}
	for i, dir := range dirs {
		in, err := b.dir.OpenDir(dir)
		if err != nil {
			return err
		}
		_, err = in.Lstat("of-" + dirs[1-i])
		in.Close()
		if errors.Is(err, fs.ErrNotExist) {
			return unlike("directories were exchanged, and what is in them was not")
		}
		if err != nil {
			return err
		}
	}
	return b.withFile(func(_ *os.File, name string) error { return b.dir.RenameExchange(name, b.dir, dirs[0]) })
}

func (b *bench) fileSync() error {
	return b.withFile(func(f *os.File, _ string) error { return f.Sync() })
}

func (b *bench) caseSensitive() error {
	f, err := b.dir.Create("case", 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = b.dir.Lstat("CASE")
	switch {
	case err == nil:
		return unlike("\"case\" is found as \"CASE\"")
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return err
}

func (b *bench) hardLinks() error {
	return b.withFile(func(_ *os.File, name string) error { return b.dir.LinkName(name, b.dir, b.name()) })
}

func (b *bench) userXattrs() error {
	return b.withFile(func(f *os.File, _ string) error {
		want := pathsafe.Xattr{Name: "user.spectrum.doctor", Value: "tried"}
		node := pathsafe.FileNode(f)
		if err := node.SetXattr(want); err != nil {
			return err
		}
		have, err := node.Xattrs()
		if err == nil && !slices.Contains(have, want) {
			err = unlike("an extended attribute that was set is not there")
		}
		return err
	})
}

func (b *bench) unnamed() error {
	f, err := b.dir.CreateUnnamed(0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	return b.dir.Link(f, b.name())
}

// findHoles requires the end of a file, which was never written, to be a hole.
func (b *bench) findHoles() error {
	return b.withFile(func(f *os.File, _ string) error {
		const size = 1 << 20
		if err := f.Truncate(size); err != nil {
			return err
		}
		hole, err := f.Seek(0, unix.SEEK_HOLE)
		if err == nil && hole >= size {
			err = unlike("a hole is not found")
		}
		return err
	})
}

func (b *bench) shareBlocks() error {
	return b.withFile(func(src *os.File, _ string) error {
		return b.withFile(func(dst *os.File, _ string) error {
			return os.NewSyscallError("FICLONE", unix.IoctlFileClone(int(dst.Fd()), int(src.Fd())))
		})
	})
}
