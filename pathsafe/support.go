package pathsafe

import (
	"os"

	"golang.org/x/sys/unix"
)

// CheckProc returns [ErrNoProc] if there is no trusted /proc. Without it no file can be opened for
// reading.
func CheckProc() error { return checkProc() }

// CheckOpenat2 returns nil if the kernel can resolve a whole path beneath a handle, or else the
// reason: it is too old, or a filter forbids it. Then a walk of single components is used.
func CheckOpenat2() error {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS}
	fd, err := unix.Openat2(unix.AT_FDCWD, "/", &how)
	if err == nil {
		closeFd(fd)
	}
	return os.NewSyscallError("openat2", err)
}
