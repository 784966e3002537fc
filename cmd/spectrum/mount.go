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

// attestedSuffix follows the source of a lazy view in the mount table.
const attestedSuffix = " (attested)"

// unmountGrace is how long a busy view is waited for before it is removed.
const unmountGrace = 5 * time.Second

func newMount(app *app) *cobra.Command {
	var opts mountOptions
	cmd := &cobra.Command{
		Use:   "mount [--chain | --all] [--lazy] RUN_DIR... MOUNTPOINT",
		Short: "mount a verified, read-only view of a candidate",
		Long: `mount verifies the candidate and mounts the tree that a restore would write: for a
single run the root of the view, for a chain one directory for each run. Every
byte is checked against its signed hash when it is read, and a mismatch is an I/O
error. With --all, the one directory given contains run directories, as
CONTRACTS/_runs does, and the view shows all of them.

With --lazy only the signature is verified first, so that the view is there at once:
each block is checked against the signed block table when it is read. Nothing can be
approved from such a view, which is "attested" and not verified. A file of a run
without a block table is hashed when it is first opened; until then its size is that
of the source. With --all, this is done for each run when it is first entered. Of a
run in a store (STORE@BUNDLE_ROOT) with a block table only what is read is fetched.

mount stays in the foreground until Ctrl-C. Under a service manager with
Type=notify it reports when the view is ready. With --daemon it returns when the
view is ready, and "spectrum umount MOUNTPOINT" unmounts it.

A view is always read-only, nosuid and nodev, and noexec unless --exec is given. A
flag overrides a mount option (-o), which overrides the environment.`,
		Args: atLeast(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			last := len(args) - 1
			if last == 0 && (args[0] == latest || isInRuns(args[0])) {
				return &usageError{command: cmd.CommandPath(), err: fmt.Errorf("no mount point was given after %q", args[0]), next: takes(cmd)}
			}
			runDirs, err := opts.settle(cmd, app, args[:last])
			if err != nil {
				return err
			}
			return runMount(cmd, app, opts, runDirs, args[last])
		},
	}
	opts.addFlags(cmd)
	app.addPatience(cmd)
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
		return usage(cmd, "the mount point must come last: %q is a run directory, but %q is not", mountpoint, runDirs[0])
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

// keepMemory closes the memory of this process to other processes of its user, which could read the
// key of the block checks: no debugger can attach to it, and it leaves no core dump.
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
	if opts.lazy {
		shown += attestedSuffix
	}
	view, err := source.mount(mountpoint, fusemount.Options{
		Source: shown, Exec: opts.exec, AllowOther: opts.allowOther, Log: a.logger(), NoLinks: true,
	})
	var bad *fusemount.MountpointError
	if errors.As(err, &bad) {
		err = mountpointError(err, mountpoint)
	}
	return view, err
}

// serve keeps the view until it is unmounted from outside, or unmounts it when ctx is done, which
// is how a foreground mount ends. After a second signal it does not wait for readers. A view that a
// rollback revokes is [errRevoked].
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
		a.tell("spectrum: the view is unmounted, but a read of a source file hangs: %s", oneLine(err.Error()))
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
