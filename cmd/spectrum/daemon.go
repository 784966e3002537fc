package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

// readyVariable marks a mount as the background half of --daemon, and has the descriptor on which
// it reports that the view is ready.
const readyVariable = "SPECTRUM_READY_FD"

// startDaemon runs this command again in its own session and returns when the view is ready. If
// that fails, the child has printed the reason, and its exit status is used.
func startDaemon(ctx context.Context, namespace string) error {
	if err := keepDescriptors(); err != nil {
		return err
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return err
	}
	defer reader.Close()
	child := exec.Command("/proc/self/exe", os.Args[1:]...)
	child.Args[0] = os.Args[0]
	child.Env = append(os.Environ(), readyVariable+"=3")
	child.ExtraFiles = []*os.File{writer}
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = startIn(namespace, child)
	_ = writer.Close() // or we would wait for ourselves
	if err != nil {
		return fmt.Errorf("starting the background process: %w", err)
	}
	return awaitReady(ctx, child, reader)
}

// keepDescriptors keeps from the background what this process was started
// with: a lock of the caller's, or the end of a pipe, would be held by the view.
func keepDescriptors() error {
	open, err := os.ReadDir("/proc/self/fd")
	if errors.Is(err, fs.ErrNotExist) {
		return pathsafe.ErrNoProc
	}
	if err != nil {
		return err
	}
	for _, entry := range open {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

func awaitReady(ctx context.Context, child *exec.Cmd, ready *os.File) error {
	stop := context.AfterFunc(ctx, func() { _ = child.Process.Signal(syscall.SIGTERM) })
	n, _ := io.ReadFull(ready, make([]byte, 1))
	if told := !stop(); n == 1 && !told {
		return child.Process.Release()
	}
	err := child.Wait()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return &childError{exit.ExitCode()}
	case ctx.Err() != nil && err == nil:
		return &keptError{"the view was ready, and is unmounted again", ctx.Err()}
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		err = errors.New("it was ended")
	}
	return fmt.Errorf("the background process ended before the view was ready: %w", err)
}

// readyPipe returns the pipe to the waiting process if this process is the background half.
func readyPipe() (listeners, bool) {
	fd, err := strconv.Atoi(os.Getenv(readyVariable))
	if err != nil || fd < 3 {
		return listeners{}, false
	}
	_ = os.Unsetenv(readyVariable) // it fails for names that no variable can have
	unix.CloseOnExec(fd)
	_ = os.WriteFile("/proc/self/comm", []byte("spectrum"), 0) // ps would call it "exe"
	return listeners{parent: os.NewFile(uintptr(fd), "ready")}, true
}

// leave releases streams and working directory of the waiting process. Only the log remains.
func leave(log *os.File) error {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	for _, turn := range []struct{ from, to *os.File }{{null, os.Stdout}, {log, os.Stderr}} {
		if err := unix.Dup3(int(turn.from.Fd()), int(turn.to.Fd()), 0); err != nil {
			return err
		}
	}
	return os.Chdir("/")
}
