package main

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/internal/served"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// helperNames are the names under which mount(8) looks for the program that
// mounts a file system of type spectrum or fuse.spectrum.
var helperNames = []string{"mount.spectrum", "mount.fuse.spectrum"}

// isMountHelper reports whether the program was started under one of these names.
func isMountHelper(program string) bool { return slices.Contains(helperNames, filepath.Base(program)) }

// newMountHelper is the program as mount(8) starts it. It is a mount with
// --daemon under another command line.
func newMountHelper(app *app, name string) *cobra.Command {
	var opts mountOptions
	var fake bool
	var fsType string
	cmd := &cobra.Command{
		Use:   name + " SOURCE MOUNTPOINT [-sfnv] [-N NAMESPACE] [-o OPTS] [-t TYPE]",
		Short: "mount the verified view of a run, as mount(8) asks for it",
		Long: `This is the program through which "mount -t fuse.spectrum RUN_DIR MOUNTPOINT" and
lines of /etc/fstab mount a view. SOURCE is a run directory or, with -o all, the
directory that holds them. It returns when the view is ready.`,
		Args: exactly(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			runDirs, err := opts.settle(cmd, app, args[:1])
			if err == nil {
				err = checkSource(cmd, args[0], fsType)
			}
			if err != nil || fake {
				return err
			}
			opts.daemon, opts.source = true, args[0]
			return runMount(cmd, app, opts, runDirs, args[1])
		},
	}
	setUp(cmd, app)
	addExamples(cmd)
	opts.addFlags(cmd)
	flags := cmd.Flags()
	flags.BoolVarP(&opts.sloppy, "sloppy", "s", false, "ignore unknown mount options")
	flags.BoolVarP(&fake, "fake", "f", false, "check the command line, and mount nothing")
	flags.BoolP("no-mtab", "n", false, "write no mtab; none is ever written")
	flags.StringVarP(&opts.namespace, "namespace", "N", "", "mount in this mount `namespace`, the path of one")
	flags.StringVarP(&fsType, "type", "t", "", "`type` of the file system: spectrum or fuse.spectrum")
	return cmd
}

// checkSource rejects the words of fstab for "no source".
func checkSource(cmd *cobra.Command, source, fsType string) error {
	if source == "none" || source == "spectrum" {
		return usage(cmd, "the source of a view is a run directory, not %q", source)
	}
	if fsType != "" && fsType != "spectrum" && fsType != "fuse.spectrum" {
		return usage(cmd, "the type of a view is spectrum or fuse.spectrum, not %q", fsType)
	}
	return nil
}

// startIn starts a process in a mount namespace. Only the thread that starts it enters the
// namespace, and it ends with the goroutine, because it is never unlocked.
func startIn(namespace string, child *exec.Cmd) error {
	if namespace == "" {
		return child.Start()
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		if err := enterNamespace(namespace); err != nil {
			started <- fmt.Errorf("mount namespace %q: %w", namespace, err)
			return
		}
		started <- child.Start()
	}()
	return <-started
}

// enterNamespace moves the thread, which must not share its directories with
// others any more, to a mount namespace.
func enterNamespace(path string) error {
	fd, err := openNamespace(path)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return err
	}
	return unix.Setns(fd, unix.CLONE_NEWNS)
}

// errNoNamespace: a path is neither a link of procfs to a mount namespace nor such a
// namespace itself, mounted on a file.
var errNoNamespace = errors.New("not a mount namespace")

// openNamespace opens a mount namespace and nothing else. It accesses no other user's server, and
// follows only procfs's own link at the end.
func openNamespace(path string) (int, error) {
	dir, err := served.OpenDir(filepath.Dir(path))
	if err != nil {
		return -1, err
	}
	defer func() { _ = unix.Close(dir) }()
	if err := served.Check(dir); err != nil {
		return -1, err
	}
	fd, err := unix.Openat(dir, filepath.Base(path), unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer func() { _ = unix.Close(fd) }()
	if err := served.Check(fd); err != nil {
		return -1, err
	}
	var sf unix.Statfs_t
	if err := unix.Fstatfs(fd, &sf); err != nil {
		return -1, err
	}
	target := make([]byte, 64)
	n, linkErr := unix.Readlinkat(fd, "", target)
	switch {
	case sf.Type == unix.NSFS_MAGIC:
		return unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	case sf.Type == unix.PROC_SUPER_MAGIC && linkErr == nil && strings.HasPrefix(string(target[:n]), "mnt:["):
		return unix.Openat(dir, filepath.Base(path), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	}
	return -1, refusedHint(errNoNamespace, "name one, such as /proc/1/ns/mnt")
}
