package blocklog

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// What a process is told that was started again.
const (
	serverEnv    = "SPECTRUM_TEST_BLOCKLOG" // serve: image, log and mountpoint, a line each
	namespaceEnv = "SPECTRUM_TEST_OWN_MOUNTS"
)

// self is the running test binary, for whoever starts it again.
const self = "/proc/self/exe"

// Main is the TestMain of a package that uses stores or mounts; run runs its
// tests. It returns the exit status.
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
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		fmt.Fprintln(os.Stderr, "make the mounts private:", err)
		return 1
	}
	return run()
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

// Need skips a test where disks cannot be served or mounted.
func Need(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	for _, dev := range []string{"/dev/fuse", "/dev/loop-control"} {
		if _, err := os.Stat(dev); err != nil {
			t.Skip(err)
		}
	}
}
