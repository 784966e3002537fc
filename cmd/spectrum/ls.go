package main

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/view"
	"github.com/spectrumfs/spectrum/fusefs"
	"github.com/spf13/cobra"
)

type lsOptions struct{ chain, long bool }

func newLs(app *app) *cobra.Command {
	var opts lsOptions
	cmd := &cobra.Command{
		Use:   "ls [-l] [--chain] RUN_DIR... [-- PATH...]",
		Short: "list what a view of the candidate would show, without a mount",
		Long: `ls verifies the candidate as mount does, and lists the files that a view of it
would show, one path a line in byte order; with -l mode, bytes, time and SHA-256
before it. Paths after "--" are files or directories of the candidate, and only
those are listed. A path that cannot stand on a line as it is, is quoted.

Neither FUSE nor a mount point is needed, and nothing is written.`,
		Args: atLeast(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			runDirs, paths, _ := splitPaths(cmd, args)
			return unlessGone(runLs(cmd, app, opts, runDirs, paths))
		},
	}
	cmd.Flags().BoolVarP(&opts.long, "long", "l", false, "mode, bytes, time and SHA-256 of each file too")
	addChain(cmd, &opts.chain)
	return cmd
}

func runLs(cmd *cobra.Command, app *app, opts lsOptions, runDirs, paths []string) error {
	l, err := app.lookInto(cmd, runDirs, opts.chain)
	if err != nil {
		return err
	}
	defer l.close()
	app.saySigned(bundlesOf(l.plan))
	files, err := l.choose(paths)
	if err != nil {
		return err
	}
	switch {
	case app.json:
		return app.result("", l.listing(files))
	case opts.long:
		return app.writeLines(longLines(files))
	default:
		return app.writeLines(shortLines(files))
	}
}

// choose are the files at some paths, each once and in path order; all of them
// where no path is given.
func (l *look) choose(paths []string) ([]fusefs.File, error) {
	if len(paths) == 0 {
		return l.files, nil
	}
	var chosen []fusefs.File
	for _, path := range paths {
		files, err := l.at(path)
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, files...)
	}
	slices.SortFunc(chosen, byPath)
	return slices.CompactFunc(chosen, func(x, y fusefs.File) bool { return x.Path == y.Path }), nil
}

func shortLines(files []fusefs.File) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, f := range files {
			if !yield(shownPath(f.Path)) {
				return
			}
		}
	}
}

func longLines(files []fusefs.File) iter.Seq[string] {
	width := 0
	for _, f := range files {
		width = max(width, len(strconv.FormatInt(f.Size, 10)))
	}
	return func(yield func(string) bool) {
		for _, f := range files {
			if !yield(fmt.Sprintf("%s %*d %s %s %s", viewMode(f), width, f.Size, f.ModTime.UTC().Format(time.RFC3339), sha256Of(f), shownPath(f.Path))) {
				return
			}
		}
	}
}

// listing is what --json shows.
func (l *look) listing(files []fusefs.File) map[string]any {
	records := make([]any, 0, len(files))
	for _, f := range files {
		records = append(records, map[string]any{
			"bytes": f.Size, "mode": fmt.Sprintf("%04o", viewMode(f)), "modified_at": f.ModTime.UTC().Format(time.RFC3339Nano),
			"path": jsonText(f.Path), "sha256": sha256Of(f),
		})
	}
	listing := map[string]any{"bundle_roots": view.BundleRoots(l.plan), "code": "OK", "files": records, "ok": true}
	if l.plan.IsChain() {
		listing["chain_root"], listing["run_ids"], listing["task_ids"] = l.plan.ChainRoot(), runIDs(l.candidate.runs), taskIDs(l.plan)
	}
	return listing
}

func byPath(x, y fusefs.File) int { return strings.Compare(x.Path, y.Path) }
