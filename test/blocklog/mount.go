package blocklog

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Mount mounts the file system in a file on a directory. The loop device
// between them releases the file when the file system is unmounted.
func Mount(file, dir, kind, options string) error {
	loop, err := attach(file)
	if err != nil {
		return fmt.Errorf("loop device for %q: %w", file, err)
	}
	defer loop.Close()
	if err := unix.Mount(loop.Name(), dir, kind, 0, options); err != nil {
		return fmt.Errorf("mount %s on %q: %w", kind, dir, err)
	}
	return nil
}

// patience is how long others may be in the way; a healthy system needs none of it.
const patience = 30 * time.Second

func attach(file string) (*os.File, error) {
	back, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer back.Close()
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer control.Close()
	for end := time.Now().Add(patience); ; {
		loop, err := configure(control, back)
		if !errors.Is(err, unix.EBUSY) || time.Now().After(end) { // another process took the same one
			return loop, err
		}
	}
}

func configure(control, back *os.File) (*os.File, error) {
	n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
	if err != nil {
		return nil, err
	}
	loop, err := os.OpenFile(fmt.Sprintf("/dev/loop%d", n), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	config := unix.LoopConfig{Fd: uint32(back.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR}}
	copy(config.Info.File_name[:len(config.Info.File_name)-1], back.Name())
	if err := unix.IoctlLoopConfigure(int(loop.Fd()), &config); err != nil {
		loop.Close() //nolint:errcheck // nothing was written
		return nil, err
	}
	return loop, nil
}

// Unmount unmounts a directory. One that stays busy is detached, which is an
// error all the same.
func Unmount(dir string) error {
	err := unix.Unmount(dir, 0)
	for end := time.Now().Add(patience); errors.Is(err, unix.EBUSY) && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
		err = unix.Unmount(dir, 0)
	}
	if errors.Is(err, unix.EBUSY) {
		return errors.Join(fmt.Errorf("unmount %q: %w", dir, err), unix.Unmount(dir, unix.MNT_DETACH))
	}
	if err != nil {
		return fmt.Errorf("unmount %q: %w", dir, err)
	}
	return nil
}
