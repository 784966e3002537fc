package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/spectrumfs/spectrum/fusefs"
	"github.com/spf13/cobra"
)

type mountOptions struct {
	chain       bool
	all         bool
	restoreRoot string
	daemon      bool
	allowOther  bool
	exec        bool
}

// unmountGrace is how long a busy view is waited for before it is taken away.
const unmountGrace = 5 * time.Second

func newMount(app *app) *cobra.Command {
	var opts mountOptions
	cmd := &cobra.Command{
		Use:   "mount [--chain] RUN_DIR... MOUNTPOINT",
		Short: "mount the verified view of a restore, read-only",
		Long: `mount verifies the candidate and mounts what a restore of it would put under
the restore root: the root of the view in single mode, a directory for each
run in a chain. Every byte is checked against its signed hash as it is read; a
read of what does not match is an I/O error. Ctrl-C ends the view.`,
		Args: atLeast(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			runDirs, mountpoint := args[:len(args)-1], args[len(args)-1]
			return runMount(cmd, app, opts, runDirs, mountpoint)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&opts.chain, "chain", false, "the run directories are a chain, even if there is only one")
	flags.BoolVar(&opts.all, "all", false, "show every run of a runs directory")
	flags.StringVar(&opts.restoreRoot, "restore-root", "", "`directory` that a restore would go to; the view must not be mounted there")
	flags.BoolVar(&opts.daemon, "daemon", false, "return when the view is ready, and serve it in the background")
	flags.BoolVar(&opts.allowOther, "allow-other", false, "let other users look into the view")
	flags.BoolVar(&opts.exec, "exec", false, "let programs be run from the view")
	return cmd
}

func runMount(cmd *cobra.Command, app *app, opts mountOptions, runDirs []string, mountpoint string) error {
	if len(runDirs) == 0 && !opts.chain {
		return usage(cmd, "no run directory was given")
	}
	ready, isDaemon := readyPipe()
	if opts.daemon && !isDaemon {
		return startDaemon(cmd.Context())
	}
	source, err := app.openViewSource(cmd, opts, runDirs)
	if err != nil {
		return err
	}
	defer source.close()
	if err := app.checkMountpoint(source.places(), mountpoint); err != nil {
		return err
	}
	var log *os.File
	if isDaemon {
		if log, err = app.openViewLog(); err != nil {
			return err
		}
		defer log.Close()
	}
	if err := source.prepare(cmd.Context(), mountpoint); err != nil {
		return err
	}
	view, err := source.mount(mountpoint, fusefs.Options{
		Source: "spectrum", Exec: opts.exec, AllowOther: opts.allowOther, Log: app.logger(),
	})
	var bad *fusefs.MountpointError
	if errors.As(err, &bad) {
		return mountpointError(err)
	}
	if err != nil {
		return err
	}
	how := "Ctrl-C"
	if isDaemon {
		how = "\"spectrum umount\""
	}
	text, fields := source.describe()
	app.say("mounted %s, at %q; %s ends it", text, view.Path(), how)
	fields["mountpoint"], fields["ok"] = jsonText(view.Path()), true
	err = app.result("", fields)
	if err == nil && isDaemon {
		err = ready.signal(log)
	}
	if err != nil {
		return errors.Join(err, view.Unmount(context.WithoutCancel(cmd.Context()), 0))
	}
	return app.serve(cmd.Context(), view)
}

// serve keeps the view until it is unmounted from outside, or ends it when ctx
// is done, which is how a foreground mount is meant to end.
func (a *app) serve(ctx context.Context, view *fusefs.View) error {
	select {
	case <-view.Done():
	case <-ctx.Done():
	}
	err := view.Unmount(context.WithoutCancel(ctx), unmountGrace)
	if errors.Is(err, fusefs.ErrStuck) {
		a.tell("spectrum: the view is unmounted, but a read of a source does not return: %s", oneLine(err.Error()))
		return nil
	}
	return err
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
	return slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: level}))
}
