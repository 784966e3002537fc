package attack

import (
	"os/exec"
	"syscall"
)

// peakOf is the most memory that a command had, in bytes.
func peakOf(cmd *exec.Cmd) int64 {
	return cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
}
