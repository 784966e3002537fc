package machine

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Release is the version of a kernel.
type Release struct {
	Name         string // as reported, like "6.1.0-18-amd64"
	Major, Minor int    // zero if the name does not begin with them
}

// KernelRelease returns the release of the running kernel.
func KernelRelease() (Release, error) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return Release{}, fmt.Errorf("uname: %w", err)
	}
	return ParseRelease(unix.ByteSliceToString(name.Release[:])), nil
}

// ParseRelease reads a release as uname has it.
func ParseRelease(name string) Release {
	r := Release{Name: name}
	if n, _ := fmt.Sscanf(name, "%d.%d", &r.Major, &r.Minor); n != 2 {
		r.Major, r.Minor = 0, 0
	}
	return r
}

// Before reports whether the kernel is known to be older than a version.
func (r Release) Before(major, minor int) bool {
	return r.Major > 0 && (r.Major < major || r.Major == major && r.Minor < minor)
}

// CanOpen returns the error of the system when this process cannot open n more files.
func CanOpen(n int) error {
	for range n {
		fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC) // that needs no path
		if err != nil {
			return os.NewSyscallError("open", err)
		}
		defer func() { _ = unix.Close(fd) }()
	}
	return nil
}
