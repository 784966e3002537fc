package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// grace is how long a program may take to end once it was asked to.
const grace = 30 * time.Second

// command prepares a program that is ended by SIGINT with its context. What it writes to
// stderr is kept for an error message.
func command(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = grace
	cmd.Stderr = new(bytes.Buffer)
	return cmd
}

// runCommand runs a program to its end, with stdout thrown away.
func runCommand(ctx context.Context, dir, name string, args ...string) error {
	cmd := command(ctx, dir, name, args...)
	return explain(cmd, cmd.Run())
}

// explain adds the command and its last words to err.
func explain(cmd *exec.Cmd, err error) error {
	if err == nil {
		return nil
	}
	said := strings.TrimSpace(cmd.Stderr.(*bytes.Buffer).String())
	return fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path)+" "+strings.Join(cmd.Args[1:], " "), err, said)
}

// spectrum drives the binary under test as a script would.
type spectrum struct {
	bin   string
	key   string
	state string
}

func (s spectrum) command(ctx context.Context, dir string, args ...string) *exec.Cmd {
	return command(ctx, dir, s.bin, append(args, "--state-dir", s.state)...)
}

func (s spectrum) run(ctx context.Context, dir string, args ...string) error {
	cmd := s.command(ctx, dir, args...)
	return explain(cmd, cmd.Run())
}

func (s spectrum) keygen(ctx context.Context) error {
	return s.run(ctx, "", "keygen", "--out", s.key)
}

// seal makes everything below data an output of the set's run. It runs in the project, so
// that "data" names the same directory by either reading of a relative path.
func (s spectrum) seal(ctx context.Context, set set) error {
	return s.run(ctx, set.project, "seal", "--key", s.key,
		"--project-root", set.project, "--run-dir", set.runDir(), "data")
}

func (s spectrum) verify(ctx context.Context, set set) error {
	return s.run(ctx, "", "verify", set.runDir())
}

// verifyPeak verifies and returns the peak of resident memory in KiB. It comes from the
// kernel's account of the ended child, which no reading of VmHWM from outside can be late
// enough for. It is never less than the few MB of this program, which started the child.
func (s spectrum) verifyPeak(ctx context.Context, set set) (int64, error) {
	cmd := s.command(ctx, "", "verify", set.runDir())
	if err := cmd.Run(); err != nil {
		return 0, explain(cmd, err)
	}
	return cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss, nil
}

// preview returns the id of a new preview.
func (s spectrum) preview(ctx context.Context, set set, root string, flags ...string) (string, error) {
	cmd := s.command(ctx, "", append([]string{"preview", "--restore-root", root, set.runDir()}, flags...)...)
	out, err := cmd.Output()
	if err != nil {
		return "", explain(cmd, err)
	}
	return strings.TrimSpace(string(out)), nil
}

func (s spectrum) commit(ctx context.Context, id string) error {
	return s.run(ctx, "", "commit", "--preview", id,
		"--approve", "Approved: commit the restore preview exactly as proposed.")
}
