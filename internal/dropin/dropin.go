// Package dropin reads directories in which each file is one setting of the operator or the
// machine, such as trusted.d.
//
// A directory or file that others may write is an error, and so is a file that is not regular or is
// too large. Links are not followed, and no open blocks.
package dropin

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// Read calls each with the path and the content of every file of the directory name of a place, in
// the order of their names. It skips names that begin with a dot, and ignores a missing place or
// directory. limit is the maximum size of a file in bytes. The error names the directory or the
// file.
func Read(place, name string, limit int64, each func(path string, raw []byte) error) error {
	dir, err := open(place, name)
	if err != nil || dir == nil {
		return err
	}
	defer dir.Close()
	names, err := dir.Names()
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		if strings.HasPrefix(name, ".") {
			continue
		}
		path := filepath.Join(dir.Name(), name)
		raw, err := File(dir, name, limit)
		if err == nil {
			err = each(path, raw)
		}
		if err != nil {
			return FileError(path, err)
		}
	}
	return nil
}

// open opens a directory of a place, or returns nil if either is missing.
func open(path, name string) (*pathsafe.Dir, error) {
	place, err := pathsafe.OpenRoot(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer place.Close()
	if err := checkDir(place); err != nil {
		return nil, err
	}
	dir, err := place.OpenDir(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := checkDir(dir); err != nil {
		dir.Close()
		return nil, err
	}
	return dir, nil
}

// ErrWritable reports that other users can write a file or a directory.
var ErrWritable = errors.New("is writable by other users")

// ErrOwner reports that another user owns a file or a directory.
var ErrOwner = errors.New("it belongs to another user")

// Error is an error about a file or a directory of a place.
type Error struct {
	kind string
	Path string
	Err  error
}

// Error names the file or directory, and the cause.
func (e *Error) Error() string { return fmt.Sprintf("%s %q: %v", e.kind, e.Path, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// FileError is the error for the content of a file.
func FileError(path string, err error) error { return &Error{"file", path, err} }

// checkDir requires a directory that other users cannot write.
func checkDir(dir *pathsafe.Dir) error {
	st, err := dir.Stat()
	if err == nil {
		err = checkOwner(st)
	}
	if err != nil {
		return &Error{"directory", dir.Name(), err}
	}
	return nil
}

// File reads one file of a directory, as [Read] does.
func File(dir *pathsafe.Dir, name string, limit int64) ([]byte, error) {
	f, st, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := checkOwner(st); err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(raw)) > limit {
		return nil, fmt.Errorf("it has more than %d bytes", limit)
	}
	return raw, nil
}

// checkOwner requires that only root and this user can write.
func checkOwner(st pathsafe.Stat) error {
	switch {
	case st.UID != 0 && int(st.UID) != os.Geteuid():
		return ErrOwner
	case st.Perm&0o022 != 0:
		return fmt.Errorf("mode %04o %w", st.Perm, ErrWritable)
	}
	return nil
}
