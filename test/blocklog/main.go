package blocklog

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// What is passed to a process that is started again.
const (
	serverEnv    = "SPECTRUM_TEST_BLOCKLOG" // serve: image, log and mountpoint, a line each
	namespaceEnv = "SPECTRUM_TEST_OWN_MOUNTS"
)

// self is the running test binary, for a test that starts it again.
const self = "/proc/self/exe"

// Main is the TestMain of a package that uses stores or mounts; run runs its
// tests. It returns the exit status.
//
// Root runs them in a mount namespace of their own, without the views of other
// processes: a rollback elsewhere that looks at all views makes none of the tests' own
// busy. Nor does a namespace that is made elsewhere meanwhile get copies of their mounts: a
// copy keeps the file system, the loop device and the image after the original is unmounted.
// What is mounted when they end, and was not before, is a failure.
func Main(run func() int) int {
	if task, ok := os.LookupEnv(serverEnv); ok {
		args := strings.Split(task, "\n")
		if err := serve(args[0], args[1], args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	if os.Geteuid() != 0 {
		return run()
	}
	if _, ok := os.LookupEnv(namespaceEnv); !ok {
		return inNamespace()
	}
	before, err := ownMounts()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mounts of the tests' own:", err)
		return 1
	}
	status := run()
	after, err := mountpoints("")
	for _, path := range after {
		if !slices.Contains(before, path) {
			err = errors.Join(err, fmt.Errorf("left mounted: %q", path))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = max(status, 1)
	}
	return status
}

// ownMounts makes the mounts of this process private, takes the views of others out of
// them, and returns the mount points that are left.
func ownMounts() ([]string, error) {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, err
	}
	views, err := mountpoints("fuse.spectrum")
	if err != nil {
		return nil, err
	}
	for _, path := range views {
		// It may have gone meanwhile.
		if err := unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
			return nil, fmt.Errorf("detach the view of another process on %q: %w", path, err)
		}
	}
	return mountpoints("")
}

// mountpoints returns the mount points of file systems of a type, or all.
func mountpoints(fsType string) ([]string, error) {
	filter := mountinfo.FSTypeFilter(fsType)
	if fsType == "" {
		filter = nil
	}
	mounts, err := mountinfo.GetMounts(filter)
	paths := make([]string, len(mounts))
	for i, m := range mounts {
		paths[i] = m.Mountpoint
	}
	return paths, err
}

// inNamespace runs the tests in a mount namespace of their own, which takes all
// mounts along when its last process ends.
func inNamespace() int {
	runtime.LockOSThread() // the child is killed when the thread that started it ends
	cmd := exec.Command(self)
	cmd.Args = os.Args
	cmd.Env = append(os.Environ(), namespaceEnv+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	err := cmd.Run()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return max(exit.ExitCode(), 1)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "a mount namespace for the tests:", err)
		return 1
	}
	return 0
}

// Need skips a test where disks cannot be served or mounted. The package must run its tests
// with [Main].
func Need(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	if _, ok := os.LookupEnv(namespaceEnv); !ok {
		t.Fatal("the TestMain of this package must call blocklog.Main: the volumes of its tests need a mount namespace of their own")
	}
	for _, dev := range []string{"/dev/fuse", "/dev/loop-control"} {
		if _, err := os.Stat(dev); err != nil {
			t.Skip(err)
		}
	}
}
