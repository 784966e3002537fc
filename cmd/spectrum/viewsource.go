package main

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/fusefs"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spf13/cobra"
)

// viewSource is what a view can be mounted of. Its methods are called in this
// order, close at the end of the view.
type viewSource interface {
	// places are the directories that the mount point must keep clear of.
	places() []place
	// prepare does what must have succeeded before anything is mounted.
	prepare(ctx context.Context) error
	mount(mountpoint string, opts fusefs.Options) (*fusefs.View, error)
	// describe says what was mounted: in words, and as fields of the result.
	describe() (text string, fields map[string]any)
	close()
}

// openViewSource opens what the command line names.
func (a *app) openViewSource(cmd *cobra.Command, opts mountOptions, runDirs []string) (viewSource, error) {
	c, err := a.openCandidate(cmd, runDirs, opts.chain)
	if err != nil {
		return nil, err
	}
	return &candidateView{app: a, candidate: c, restoreRoot: opts.restoreRoot}, nil
}

// candidateView is the view of one candidate: what a restore of it would put
// under the restore root.
type candidateView struct {
	app         *app
	candidate   *candidate
	restoreRoot string
	plan        *restore.Plan
}

func (v *candidateView) close() { v.candidate.close() }

func (v *candidateView) places() []place {
	places := []place{{"the project root", v.candidate.origin.ProjectRoot}, {"the restore root", v.restoreRoot}}
	for _, dir := range v.candidate.origin.RunDirs {
		places = append(places, place{"a run directory", dir})
	}
	return places
}

func (v *candidateView) prepare(ctx context.Context) (err error) {
	v.plan, err = v.app.planView(ctx, v.candidate)
	return err
}

func (v *candidateView) mount(mountpoint string, opts fusefs.Options) (*fusefs.View, error) {
	tree, err := fusefs.NewTree(viewFiles(v.plan))
	if err != nil {
		return nil, err
	}
	return fusefs.Mount(tree, mountpoint, opts)
}

func (v *candidateView) describe() (text string, fields map[string]any) {
	return fmt.Sprintf("%d files, %s", v.plan.Files(), bytesText(v.plan.Bytes())),
		map[string]any{"bytes": v.plan.Bytes(), "files": v.plan.Files()}
}

func (a *app) planView(ctx context.Context, c *candidate) (*restore.Plan, error) {
	bar := a.newBar("verifying", -1)
	defer bar.done()
	return restore.ForView(ctx, c.restore(verify.Watch{Hashed: bar.add}))
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
