package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/signal"
	"time"

	"github.com/spectrumfs/spectrum/fusefs/fusemount"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// unmountGrace is how long a busy view is waited for before it is taken away.
const unmountGrace = 5 * time.Second

func newMount(app *app) *cobra.Command {
	var opts mountOptions
	cmd := &cobra.Command{
		Use:   "mount [--chain | --all] RUN_DIR... MOUNTPOINT",
		Short: "mount the verified view of a restore, read-only",
		Long: `mount verifies the candidate and mounts what a restore of it would put under
the restore root: the root of the view in single mode, a directory for each
run in a chain. Every byte is checked against its signed hash as it is read; a
read of what does not match is an I/O error. With --all the one directory given
holds run directories, as CONTRACTS/_runs does, and the view is of all of them.

It stays in the foreground, and Ctrl-C ends the view. Under a service manager
that asks to be told (Type=notify), it tells when the view is ready. With --daemon
it returns then, and "spectrum umount MOUNTPOINT" ends the view.

A view is always read-only, nosuid and nodev, and noexec but for --exec. A flag
wins over a mount option (-o), which wins over the environment.`,
		Args: atLeast(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			last := len(args) - 1
			runDirs, err := opts.settle(cmd, app, args[:last])
			if err != nil {
				return err
			}
			return runMount(cmd, app, opts, runDirs, args[last])
		},
	}
	opts.addFlags(cmd)
	return cmd
}

func runMount(cmd *cobra.Command, app *app, opts mountOptions, runDirs []string, mountpoint string) error {
	waiting := listeners{manager: takeManager()}
	if opts.daemon {
		var isDaemon bool
		if waiting, isDaemon = readyPipe(); !isDaemon {
			return startDaemon(cmd.Context(), opts.namespace)
		}
	}
	defer waiting.close()
	if err := keepMemory(); err != nil {
		return err
	}
	if len(runDirs) > 0 && !opts.all && isInRuns(mountpoint) && !isInRuns(runDirs[0]) {
		return usage(cmd, "the mount point comes last: %q is a run directory, and %q is none", mountpoint, runDirs[0])
	}
	source, err := app.openViewSource(cmd, opts, runDirs)
	if err != nil {
		return err
	}
	defer source.close()
	if mountpoint, err = app.checkMountpoint(source.places(), mountpoint); err != nil {
		return err
	}
	if err := waiting.openLog(app); err != nil {
		return err
	}
	if err := source.prepare(cmd.Context(), mountpoint); err != nil {
		return err
	}
	view, err := app.mountSource(source, mountpoint, opts)
	if err != nil {
		return err
	}
	if err := app.announce(source, view, waiting); err != nil {
		return errors.Join(err, view.Unmount(context.WithoutCancel(cmd.Context()), 0))
	}
	return app.serve(cmd.Context(), view, waiting.manager)
}

// keepMemory closes the memory of this process to others of its user, who could read the
// key that blocks are checked with: no debugger attaches to it, and it leaves no core dump.
func keepMemory() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("close the memory of this process: %w", err)
	}
	return nil
}

func (a *app) mountSource(source viewSource, mountpoint string, opts mountOptions) (*fusemount.View, error) {
	shown := opts.source
	if shown == "" {
		shown = "spectrum"
	}
	view, err := source.mount(mountpoint, fusemount.Options{
		Source: shown, Exec: opts.exec, AllowOther: opts.allowOther, Log: a.logger(), NoLinks: true,
	})
	var bad *fusemount.MountpointError
	if errors.As(err, &bad) {
		err = mountpointError(err)
	}
	return view, err
}

// serve keeps the view until it is unmounted from outside, or ends it when ctx
// is done, which is how a foreground mount is meant to end. A second signal
// means that those who use it are not waited for. A view that a rollback revokes
// is [errRevoked].
func (a *app) serve(ctx context.Context, view *fusemount.View, manager manager) error {
	grace := unmountGrace
	select {
	case <-view.Revoked():
		grace = 0
	case <-view.Done():
	case <-ctx.Done():
	}
	a.notify(manager, "STOPPING=1")
	patience, stop := signal.NotifyContext(context.WithoutCancel(ctx), endings...)
	defer stop()
	err := view.Unmount(patience, grace)
	if errors.Is(err, fusemount.ErrStuck) {
		a.tell("spectrum: the view is unmounted, but a read of a source does not return: %s", oneLine(err.Error()))
		err = nil
	}
	if err == nil && isClosed(view.Revoked()) {
		err = errRevoked
	}
	return err
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// logger logs in lines for people, and findings in any case.
func (a *app) logger() *slog.Logger {
	level := slog.LevelWarn
	switch {
	case a.verbose:
		level = slog.LevelDebug
	case a.quiet:
		level = slog.LevelError
	}
	return slog.New(slog.NewTextHandler(visibleWriter{a.stderr}, &slog.HandlerOptions{Level: level}))
}
