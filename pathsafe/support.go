package pathsafe

import (
	"os"

	"golang.org/x/sys/unix"
)

// CheckProc returns an error if there is no trusted /proc. Without it nothing here opens a
// file for reading: the error is then [ErrNoProc].
func CheckProc() error { return checkProc() }

// CheckOpenat2 reports why the kernel does not resolve a whole path beneath a handle
// by itself, or nil: it is too old, or a filter forbids it. A walk of single
// components takes its place then.
func CheckOpenat2() error {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS}
	fd, err := unix.Openat2(unix.AT_FDCWD, "/", &how)
	if err == nil {
		closeFd(fd)
	}
	return os.NewSyscallError("openat2", err)
}
