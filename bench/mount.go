package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/moby/sys/mountinfo"
)

// mounted is a file system that is served by a program in the foreground.
type mounted struct {
	cmd        *exec.Cmd
	mountpoint string
	root       string // the directory beside that of the project
	ended      chan error

	interrupted int // the exit status of a program that counts SIGINT as a failure
}

// mountSpectrum mounts the view of s. mountLoopback mounts its project with a server that
// reads, as ours does; mountPassthrough with one that lends its files to the kernel, which
// then asks no server for any byte.
func (b *bench) mountSpectrum(ctx context.Context, s set) (*mounted, error) {
	return b.mount("fuse.spectrum", func(mountpoint string) *exec.Cmd {
		return b.spectrum.command(ctx, "", "mount", s.runDir(), mountpoint)
	})
}

func (b *bench) mountLoopback(ctx context.Context, s set) (*mounted, error) {
	return b.mount("fuse.loopback", func(mountpoint string) *exec.Cmd {
		return command(ctx, "", b.loopback, "-passthrough=false", mountpoint, s.project)
	})
}

func (b *bench) mountPassthrough(ctx context.Context, s set) (*mounted, error) {
	return b.mount("fuse.loopback", func(mountpoint string) *exec.Cmd {
		return command(ctx, "", b.loopback, mountpoint, s.project)
	})
}

// mount starts the command that prepare returns for a fresh mountpoint, and returns when a file system of
// type fstype, or of any when that is empty, is there.
func (b *bench) mount(fstype string, prepare func(mountpoint string) *exec.Cmd) (*mounted, error) {
	mountpoint := filepath.Join(b.work, "mnt")
	if err := os.Mkdir(mountpoint, 0o755); err != nil {
		return nil, err
	}
	m := &mounted{cmd: prepare(mountpoint), mountpoint: mountpoint, root: mountpoint, ended: make(chan error, 1)}
	if err := m.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { m.ended <- explain(m.cmd, m.cmd.Wait()) }()
	if err := m.ready(fstype); err != nil {
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

func (m *mounted) ready(fstype string) error {
	for {
		ok, err := isMounted(m.mountpoint, fstype)
		if ok || err != nil {
			return err
		}
		select {
		case err := <-m.ended:
			m.ended <- nil // close waits for it too
			return errors.Join(fmt.Errorf("%q ended before it was mounted", m.cmd.Path), err)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// isMounted reports whether a file system of type fstype, or of any when that is empty, is
// mounted at mountpoint. It does not touch the mountpoint: a dead one does not answer.
func isMounted(mountpoint, fstype string) (bool, error) {
	mounts, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter(mountpoint))
	return len(mounts) == 1 && (fstype == "" || mounts[0].FSType == fstype), err
}

// close ends the program by SIGINT, and leaves nothing running or mounted.
func (m *mounted) close() error {
	_ = m.cmd.Process.Signal(os.Interrupt) // it may have ended by itself
	err := m.wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == m.interrupted {
		err = nil
	}
	if still, mountErr := isMounted(m.mountpoint, ""); still || mountErr != nil {
		err = errors.Join(err, mountErr, fmt.Errorf("%q was left mounted", m.mountpoint),
			umount(m.mountpoint, "--lazy"))
	}
	return errors.Join(err, os.Remove(m.mountpoint))
}

// wait waits some time for the program to end, and then kills it. A server that waits for an
// answer of its own mount does not even die of SIGKILL, so the mount is cut off too.
func (m *mounted) wait() error {
	select {
	case err := <-m.ended:
		return err
	case <-time.After(grace):
	}
	err := errors.Join(fmt.Errorf("%q did not end", m.cmd.Path), m.cmd.Process.Kill())
	_ = umount(m.mountpoint, "--force") // cuts off, and then often fails as busy
	return errors.Join(err, <-m.ended)
}

// umount runs even when the benchmark was interrupted.
func umount(mountpoint, how string) error {
	return runCommand(context.Background(), "", "umount", how, mountpoint)
}
