package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/fusefs"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spf13/cobra"
)

type mountOptions struct {
	chain       bool
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
	c, err := app.openCandidate(cmd, runDirs, opts.chain)
	if err != nil {
		return err
	}
	defer c.close()
	if err := app.checkMountpoint(c, opts, mountpoint); err != nil {
		return err
	}
	var log *os.File
	if isDaemon {
		if log, err = app.openViewLog(); err != nil {
			return err
		}
		defer log.Close()
	}
	plan, err := app.planView(cmd.Context(), c)
	if err != nil {
		return err
	}
	view, err := app.mountPlan(plan, opts, mountpoint)
	if err != nil {
		return err
	}
	how := "Ctrl-C"
	if isDaemon {
		how = "\"spectrum umount\""
	}
	app.say("mounted %d files, %s, at %q; %s ends it", plan.Files(), bytesText(plan.Bytes()), view.Path(), how)
	err = app.result("", map[string]any{"bytes": plan.Bytes(), "files": plan.Files(), "mountpoint": jsonText(view.Path()), "ok": true})
	if err == nil && isDaemon {
		err = ready.signal(log)
	}
	if err != nil {
		return errors.Join(err, view.Unmount(context.WithoutCancel(cmd.Context()), 0))
	}
	return app.serve(cmd.Context(), view)
}

// checkMountpoint refuses a directory that cannot carry the view, or where it
// would stand in the way of what it shows.
func (a *app) checkMountpoint(c *candidate, opts mountOptions, mountpoint string) error {
	if err := fusefs.CheckMountpoint(mountpoint); err != nil {
		return mountpointError(err)
	}
	state, err := a.statePath()
	if err != nil {
		return err
	}
	places := []place{{"the project root", c.origin.ProjectRoot}, {"the restore root", opts.restoreRoot}, {"the state directory", state}}
	for _, dir := range c.origin.RunDirs {
		places = append(places, place{"a run directory", dir})
	}
	return refusedHint(overlap("mountpoint", mountpoint, places), "mount on an empty directory somewhere else")
}

func mountpointError(err error) error {
	hint := "make an empty directory and mount on that"
	if errors.Is(err, fusefs.ErrDeadMount) || errors.Is(err, fusefs.ErrAlreadyMounted) {
		hint = "\"spectrum umount MOUNTPOINT\" ends a view"
	}
	return refusedHint(err, hint)
}

// place is a directory that another must keep clear of.
type place struct{ what, path string }

// overlap says whether a directory is one of the places, is in one, or has one
// in it. Links are resolved.
func overlap(what, path string, places []place) error {
	real, err := realPath(path)
	if err != nil {
		return err
	}
	for _, p := range places {
		if p.path == "" {
			continue
		}
		other, err := realPath(p.path)
		if err != nil {
			continue // what leads nowhere overlaps nothing; others say what is wrong with it
		}
		if isWithin(real, other) || isWithin(other, real) {
			return fmt.Errorf("%s %q overlaps %s %q", what, path, p.what, p.path)
		}
	}
	return nil
}

// realPath resolves links; what does not exist is resolved as far as it does.
func realPath(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(abs)
	if err == nil || abs == "/" {
		return real, err
	}
	parent, err := realPath(filepath.Dir(abs))
	return filepath.Join(parent, filepath.Base(abs)), err
}

func isWithin(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

func (a *app) planView(ctx context.Context, c *candidate) (*restore.Plan, error) {
	bar := a.newBar("verifying", -1)
	defer bar.done()
	return restore.ForView(ctx, c.restore(verify.Watch{Hashed: bar.add}))
}

func (a *app) mountPlan(plan *restore.Plan, opts mountOptions, mountpoint string) (*fusefs.View, error) {
	tree, err := fusefs.NewTree(viewFiles(plan))
	if err != nil {
		return nil, err
	}
	view, err := fusefs.Mount(tree, mountpoint, fusefs.Options{
		Source: "spectrum", Exec: opts.exec, AllowOther: opts.allowOther, Log: a.logger(),
	})
	var bad *fusefs.MountpointError
	if errors.As(err, &bad) {
		return nil, mountpointError(err)
	}
	return view, err
}

// viewFiles describes the plan as a tree: what a commit would write, without
// write bits. The result artifacts have the time of the newest output.
func viewFiles(plan *restore.Plan) iter.Seq[fusefs.File] {
	return func(yield func(fusefs.File) bool) {
		for run := range plan.Runs() {
			var newest time.Time
			for o := range run.Bundle().Outputs() {
				if o.ModTime().After(newest) {
					newest = o.ModTime()
				}
				if !yield(outputFile(run, o)) {
					return
				}
			}
			for _, artifact := range run.Artifacts() {
				if !yield(artifactFile(artifact, newest)) {
					return
				}
			}
		}
	}
}

func outputFile(run *restore.Run, o verify.Output) fusefs.File {
	return fusefs.File{
		Path: run.Target(o.Path().String()), Size: o.Size(), Mode: o.Perm(), ModTime: o.ModTime(),
		Open: func() (fusefs.Content, error) { return o.Open() },
	}
}

func artifactFile(a restore.Artifact, modTime time.Time) fusefs.File {
	return fusefs.File{
		Path: a.Path, Size: int64(len(a.Data)), Mode: 0o444, ModTime: modTime,
		Open: func() (fusefs.Content, error) { return memory{strings.NewReader(string(a.Data))}, nil },
	}
}

// memory is content that is held, so nothing can change it.
type memory struct{ *strings.Reader }

func (memory) Close() error { return nil }

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
