package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"
	"unicode/utf8"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spf13/cobra"
)

type previewOptions struct {
	restoreRoot string
	chain       bool
	fromMount   string
	silent      bool // the report is not wanted
	wait        time.Duration
}

func (o *previewOptions) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.restoreRoot, "restore-root", "", "existing `directory` to restore under, as an absolute path")
	lockFlag(cmd, &o.wait)
	cmd.Flags().StringVar(&o.fromMount, "from-mount", "", "take the candidate that the view on this `mountpoint` shows")
	cmd.Flags().BoolVar(&o.chain, "chain", false, "the run directories are a chain, even if there is only one")
}

func newPreview(app *app) *cobra.Command {
	var opts previewOptions
	cmd := &cobra.Command{
		Use:   "preview --restore-root DIR [--chain] RUN_DIR... | --from-mount MOUNTPOINT",
		Short: "show what a restore would do, and print the id of this preview",
		Long: `preview verifies the candidate, plans the restore, and shows the plan held
against the restore root. It writes nothing under the restore root. The id on
stdout is what "spectrum commit --preview ID" takes.`,
		Args: asUsage(cobra.ArbitraryArgs),
		RunE: func(cmd *cobra.Command, runDirs []string) error {
			return runPreview(cmd, app, opts, runDirs)
		},
	}
	opts.flags(cmd)
	return cmd
}

func runPreview(cmd *cobra.Command, app *app, opts previewOptions, runDirs []string) error {
	if err := opts.check(cmd, runDirs); err != nil {
		return err
	}
	if err := opts.takeRoot(); err != nil {
		return err
	}
	opts.silent = app.quiet || app.json
	state, err := app.openStateApart(opts.restoreRoot)
	if err != nil {
		return err
	}
	defer state.Close()
	shown, err := app.showPreview(cmd, state, opts, runDirs)
	if err != nil {
		return err
	}
	if app.json {
		return app.raw(shown.json)
	}
	return app.text(shown.id)
}

// shownPreview is a preview that was shown and kept.
type shownPreview struct {
	id   string
	json []byte
}

// showPreview plans a restore, keeps its preview, and shows it.
func (a *app) showPreview(cmd *cobra.Command, state *statedir.Dir, opts previewOptions, runDirs []string) (shownPreview, error) {
	c, err := a.openProposed(cmd, opts, runDirs)
	if err != nil {
		return shownPreview{}, err
	}
	defer c.close()
	if err := checkText(c.origin); err != nil {
		return shownPreview{}, err
	}
	r, p, err := a.previewClean(cmd.Context(), state, c, opts.wait)
	if err != nil {
		return shownPreview{}, err
	}
	defer r.Close()
	raw, err := keepPreview(state, p)
	if err != nil {
		return shownPreview{}, err
	}
	if !opts.silent {
		if err := writeReport(a.stderr, p); err != nil {
			return shownPreview{}, err
		}
	}
	return shownPreview{p.ID(), raw}, nil
}

// check refuses what says too little or too much about the candidate.
func (o *previewOptions) check(cmd *cobra.Command, runDirs []string) error {
	switch {
	case o.fromMount != "" && (len(runDirs) > 0 || o.chain || cmd.Flags().Changed("project-root")):
		return usage(cmd, "--from-mount says already which run directories are meant")
	case o.fromMount == "" && len(runDirs) == 0 && !o.chain:
		return usage(cmd, "no run directory was given")
	}
	return nil
}

// takeRoot takes the restore root from the view where none was given. It has to
// be known before the state directory is opened, which must not lie in it.
func (o *previewOptions) takeRoot() error {
	if o.fromMount == "" || o.restoreRoot != "" {
		return nil
	}
	_, record, err := readCandidate(o.fromMount)
	if err == nil && record.RestoreRoot != nil {
		o.restoreRoot = *record.RestoreRoot
	}
	return err
}

// openProposed opens the candidate that is to be previewed.
func (a *app) openProposed(cmd *cobra.Command, opts previewOptions, runDirs []string) (*candidate, error) {
	if opts.fromMount != "" {
		return openMounted(cmd.Context(), opts.fromMount, opts.restoreRoot)
	}
	c, err := a.openCandidate(cmd, runDirs, opts.chain)
	if err != nil {
		return nil, err
	}
	c.origin.RestoreRoot = opts.restoreRoot
	return c, nil
}

// keepPreview keeps a preview in the state directory, for its approval.
func keepPreview(state *statedir.Dir, p *preview.Preview) ([]byte, error) {
	raw, err := p.JSON()
	if err != nil {
		return nil, err
	}
	if err := state.SavePreview(p.ID(), raw); err != nil {
		return nil, fmt.Errorf("keeping the preview: %w", err)
	}
	return raw, nil
}

// checkText refuses paths that a preview cannot name.
func checkText(o preview.Origin) error {
	paths := append([]string{o.ProjectRoot, o.RestoreRoot}, o.RunDirs...)
	if o.View != nil {
		paths = append(paths, o.View.Mountpoint)
	}
	for _, path := range paths {
		if !utf8.ValidString(path) {
			return refused(fmt.Errorf("path %q is not UTF-8, so a preview cannot name it", path))
		}
	}
	return nil
}

func writeReport(w io.Writer, p *preview.Preview) error {
	buffered := bufio.NewWriter(w)
	return errors.Join(p.WriteReport(buffered), buffered.Flush())
}

// previewClean is makePreview for a root that is entered meanwhile: nobody is at
// work in it, and nothing is left in it of a commit that was killed.
func (a *app) previewClean(ctx context.Context, state *statedir.Dir, c *candidate, wait time.Duration) (*restore.Restore, *preview.Preview, error) {
	in, err := a.enterFor(ctx, state, c.origin.RestoreRoot, wait)
	if err != nil {
		return nil, nil, err
	}
	defer in.Leave()
	return a.makePreview(ctx, state, c)
}

// makePreview runs PREFLIGHT and PLAN and makes the preview of what came out.
// The caller closes the restore.
func (a *app) makePreview(ctx context.Context, state *statedir.Dir, c *candidate) (*restore.Restore, *preview.Preview, error) {
	bar := a.newBar("verifying", -1)
	defer bar.done()
	r, err := examine(ctx, c, func() (*restore.Restore, error) {
		return restore.ForRoot(ctx, c.restore(bar.add), c.origin.RestoreRoot)
	})
	if err != nil {
		return nil, nil, err
	}
	p, err := previewOf(ctx, state, c, r)
	if err != nil {
		r.Close()
		return nil, nil, err
	}
	return r, p, nil
}

func previewOf(ctx context.Context, state *statedir.Dir, c *candidate, r *restore.Restore) (*preview.Preview, error) {
	if err := c.isAsShown(r.Plan()); err != nil {
		return nil, err
	}
	policy, err := loadTrust(state)
	if err != nil {
		return nil, err
	}
	return preview.New(ctx, r, c.origin, policy)
}

// loadRecord reads a preview that was kept.
func loadRecord(state *statedir.Dir, id string) (*preview.Record, error) {
	raw, err := state.LoadPreview(id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no preview %q: %w", id, errApprovalRequired)
	}
	if err != nil {
		return nil, err
	}
	return preview.ParseRecord(raw, id)
}
