package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// readyVariable tells a mount that it is the background half of --daemon, and
// on which descriptor it says that the view is ready.
const readyVariable = "SPECTRUM_READY_FD"

// startDaemon runs this command again in a session of its own and returns when
// the view is ready. If it never is, the child has said why, and its exit
// status is ours.
func startDaemon(ctx context.Context) error {
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
	if err := errors.Join(child.Start(), writer.Close()); err != nil {
		return fmt.Errorf("starting the background process: %w", err)
	}
	return awaitReady(ctx, child, reader)
}

func awaitReady(ctx context.Context, child *exec.Cmd, ready *os.File) error {
	stop := context.AfterFunc(ctx, func() { _ = child.Process.Signal(syscall.SIGTERM) })
	defer stop()
	if n, _ := io.ReadFull(ready, make([]byte, 1)); n == 1 {
		return child.Process.Release()
	}
	err := child.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 {
		return &childError{exit.ExitCode()}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("the background process ended before the view was ready: %w", errors.Join(err, io.ErrUnexpectedEOF))
}

// ready is the descriptor on which the parent waits.
type ready struct{ pipe *os.File }

// readyPipe finds out whether this process is the background half.
func readyPipe() (ready, bool) {
	fd, err := strconv.Atoi(os.Getenv(readyVariable))
	if err != nil || fd < 3 {
		return ready{}, false
	}
	_ = os.Unsetenv(readyVariable) // it fails for names that no variable can have
	unix.CloseOnExec(fd)
	return ready{os.NewFile(uintptr(fd), "ready")}, true
}

// openViewLog opens the file that views in the background log to.
func (a *app) openViewLog() (*os.File, error) {
	state, err := a.openState()
	if err != nil {
		return nil, err
	}
	defer state.Close()
	return os.OpenFile(filepath.Join(state.Path(), "view.log"), os.O_WRONLY|os.O_APPEND|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
}

// signal turns stderr over to the log, lets go of stdout, and tells the parent
// that the view is ready.
func (r ready) signal(log *os.File) error {
	defer r.pipe.Close()
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
	_, err = r.pipe.Write([]byte{1})
	return err
}
