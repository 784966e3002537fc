package fusemount

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// system determines how this process mounts and unmounts: directly as root, through fusermount3
// otherwise.
type system struct {
	device string // /dev/fuse
	direct bool   // mount(2) and umount(2)
	helper string // path of fusermount3, "" if there is none

	// answerOpen: answer OPEN and OPENDIR as older kernels require, although this one does not (see
	// fileSystem.Init). For tests and measurements.
	answerOpen bool
}

func hostSystem() system {
	return system{device: "/dev/fuse", direct: os.Geteuid() == 0, helper: findHelper()}
}

// mount mounts on an open directory, which was checked and is empty, and returns the descriptor of
// the FUSE device to be served.
func (s system) mount(p *heldDir, opts Options) (int, error) {
	if err := available(s.device); err != nil {
		return -1, err
	}
	if s.direct {
		return s.mountDirect(p, opts)
	}
	return s.mountHelped(p, opts)
}

// mountDirect mounts on the very directory that was checked: by its descriptor, so that no
// process can replace it in between.
func (s system) mountDirect(p *heldDir, opts Options) (int, error) {
	dev, err := openDevice(s.device)
	if err != nil {
		return -1, err
	}
	data := append([]string{
		fmt.Sprintf("fd=%d", dev),
		fmt.Sprintf("rootmode=%o", unix.S_IFDIR),
		fmt.Sprintf("user_id=%d", os.Geteuid()),
		fmt.Sprintf("group_id=%d", os.Getegid()),
	}, dataOptions(opts)...)
	var flags uintptr = unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV
	if !opts.Exec {
		flags |= unix.MS_NOEXEC
	}
	err = unix.Mount(opts.Source, p.link(), fsType, flags, strings.Join(data, ","))
	if err == nil {
		return dev, nil
	}
	_ = unix.Close(dev)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENODEV) {
		return -1, fmt.Errorf("%w: the kernel rejects the mount: %w", ErrUnavailable, err)
	}
	return -1, err
}
