package limits

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/spectrumfs/spectrum/test/harness"
)

// A child begins its life in the memory of its parent, which counts as its own.
// So what is measured is started by a process that has done nothing else.
const measuring = "measure what follows"

// measured is a command that is started by such a process, and reports to file
// descriptor 3.
func measured(ctx context.Context, report *os.File, argv ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], append([]string{measuring}, argv...)...)
	// A collector that works beside the program lets more garbage pile up when the
	// machine is busy.
	cmd.Env = append(os.Environ(), "GODEBUG=gcstoptheworld=1")
	cmd.ExtraFiles = []*os.File{report}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}

// measure runs a command and reports its exit status and its largest resident
// set, in bytes.
func measure(argv []string) int {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); cmd.ProcessState == nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	memory := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
	if _, err := fmt.Fprintf(os.NewFile(3, "report"), "%d %d", harness.ExitStatus(cmd.ProcessState), memory); err != nil {
		return 1
	}
	return 0
}
