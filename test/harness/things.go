// This file makes what a test puts at a path where nothing is.

package harness

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// FIFO makes a FIFO.
func FIFO(path string) error { return unix.Mkfifo(path, 0o644) }

// Socket makes a socket that nothing listens on.
func Socket(path string) error { return unix.Mknod(path, unix.S_IFSOCK|0o644, 0) }

// Directory makes an empty directory.
func Directory(path string) error { return os.Mkdir(path, 0o755) }

// LinkTo makes a symbolic link.
func LinkTo(target string) func(path string) error {
	return func(path string) error { return os.Symlink(target, path) }
}

// Device makes a device file of a kind, S_IFCHR or S_IFBLK.
func Device(kind uint32, major, minor uint32) func(path string) error {
	return func(path string) error { return unix.Mknod(path, kind|0o644, int(unix.Mkdev(major, minor))) }
}

// Sparse makes a file of this size that is one hole.
func Sparse(size int64) func(path string) error {
	return func(path string) error {
		return errors.Join(os.WriteFile(path, nil, 0o644), os.Truncate(path, size))
	}
}
