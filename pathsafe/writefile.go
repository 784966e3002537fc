package pathsafe

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// WriteFile creates the file name with this content and the permission bits perm less the umask. It
// appears whole and with its data synced, or not at all. It returns fs.ErrExist if the name exists.
// The new name is durable after [Dir.Sync].
func (d *Dir) WriteFile(name string, data []byte, perm uint32) error {
	f, err := d.CreateUnnamed(perm)
	if errors.Is(err, errors.ErrUnsupported) {
		return d.writeThenRename(name, data, perm)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if err := writeAndSync(f, data); err != nil {
		return d.noSpace(len(data), err)
	}
	return d.Link(f, name)
}

// writeThenRename serves file systems without unnamed files.
func (d *Dir) writeThenRename(name string, data []byte, perm uint32) error {
	temp := ".spectrum-" + rand.Text()
	f, err := d.Create(temp, perm)
	if err != nil {
		return err
	}
	err = d.noSpace(len(data), writeAndSync(f, data))
	err = errors.Join(err, f.Close())
	if err == nil {
		err = d.RenameNoReplace(temp, d, name)
	}
	if err != nil {
		return errors.Join(err, d.Unlink(temp))
	}
	return nil
}

// A NoSpaceError is ENOSPC or EDQUOT, with the file system that is full.
type NoSpaceError struct {
	Path       string // of the directory in it that was written in
	Need, Free uint64 // bytes that were to be written, and that this user may still write
	Files      bool   // it has no room for one more file, however small
	Err        error
}

// Error names the directory, and the needed and the free space.
func (e *NoSpaceError) Error() string {
	if e.Files {
		return fmt.Sprintf("%v: the file system of %q has no room for another file: 1 is needed, and 0 are free", e.Err, e.Path)
	}
	return fmt.Sprintf("%v: in the file system of %q %d bytes are needed, and %d are free", e.Err, e.Path, e.Need, e.Free)
}

// Unwrap returns the error of the system.
func (e *NoSpaceError) Unwrap() error { return e.Err }

// NoSpace returns the error of writing so many bytes to a file, as a [*NoSpaceError] if the
// file system is full. It must be called before the written bytes are removed.
func NoSpace(f *os.File, need int, err error) error {
	path, unnamed := os.Readlink(procPath(int(f.Fd())))
	if unnamed != nil {
		path = f.Name()
	}
	return noSpace(int(f.Fd()), filepath.Dir(path), need, err)
}

func (d *Dir) noSpace(need int, err error) error { return noSpace(d.Fd(), d.Name(), need, err) }

func noSpace(fd int, path string, need int, err error) error {
	var known *NoSpaceError
	if errors.As(err, &known) || !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EDQUOT) {
		return err
	}
	var sf unix.Statfs_t
	if unknown := retry(func() error { return unix.Fstatfs(fd, &sf) }); unknown != nil {
		return err
	}
	unit := uint64(max(sf.Bsize, 1))
	return &NoSpaceError{
		Path: path, Need: (uint64(max(need, 1)) + unit - 1) / unit * unit, Free: sf.Bavail * unit,
		Files: sf.Files > 0 && sf.Ffree == 0, Err: err,
	}
}

func writeAndSync(f *os.File, data []byte) error {
	if _, err := f.Write(data); err != nil {
		return err
	}
	return f.Sync()
}
