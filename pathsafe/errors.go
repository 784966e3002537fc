package pathsafe

import (
	"errors"
	"fmt"
	"strings"
)

// Reasons for which an output path is refused before the disk is touched.
var (
	// ErrTraversal: normalisation would change the path, or it has a "." or ".." component
	// (RESTORE_PATH_TRAVERSAL_DETECTED).
	ErrTraversal = errors.New("not a normalised relative path")
	// ErrNullByte: the path contains a NUL (RESTORE_PATH_NULL_BYTE_DETECTED).
	ErrNullByte = errors.New("null byte in path")
)

// Reasons for which an access is rejected.
var (
	// ErrEscape: a symbolic link in the path leaves the root at some step, even if a later one
	// returns to it, or the links form a loop.
	ErrEscape = errors.New("symbolic link leaves the root")
	// ErrSymlink: a symbolic link where none is allowed.
	ErrSymlink = errors.New("is a symbolic link")
	// ErrNotRegular: something other than a regular file; it was not opened.
	ErrNotRegular = errors.New("not a regular file")
	// ErrCrossesMount: the path leads into another mount, or into a subvolume of btrfs. See
	// [Stat.IsOn].
	ErrCrossesMount = errors.New("is on another mount or subvolume")
	// ErrTooLong: the path exceeds MaxPath or a name exceeds MaxName.
	ErrTooLong = errors.New("path too long")
	// ErrLeased: another process has a lease on the file and has not yet released it.
	ErrLeased = errors.New("another process holds a lease on it")
	// ErrLocked: another process holds the lock of the directory.
	ErrLocked = errors.New("locked by another process")
)

// A FormError reports that a path or name does not have the form of the law.
// Kind is ErrTraversal or ErrNullByte, and errors.Is finds it.
type FormError struct {
	Path string
	Kind error
}

// Error names the path, quoted, and the reason.
func (e *FormError) Error() string {
	if e.HasBackslash() {
		return fmt.Sprintf("path %q has a name with a backslash: %v", e.Path, e.Kind)
	}
	return fmt.Sprintf("path %q: %v", e.Path, e.Kind)
}

// HasBackslash reports whether the only fault of the path is a backslash in a name.
func (e *FormError) HasBackslash() bool {
	return strings.Contains(e.Path, `\`) && checkNames(e.Path) == nil
}

// Unwrap returns Kind.
func (e *FormError) Unwrap() error { return e.Kind }

// An AccessError is something that could not be done with a name in a directory.
type AccessError struct {
	Op   string
	Dir  string // the path of the directory, as it was opened
	Name string
	Err  error
}

// Error returns the operation, the name and the cause.
func (e *AccessError) Error() string {
	return fmt.Sprintf("%s %q in %q: %v", e.Op, e.Name, e.Dir, e.Err)
}

// Unwrap returns the error of the system.
func (e *AccessError) Unwrap() error { return e.Err }
