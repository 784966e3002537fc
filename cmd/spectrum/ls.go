package main

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/view"
	"github.com/spectrumfs/spectrum/fusefs"
	"github.com/spectrumfs/spectrum/verify/store"
	"github.com/spf13/cobra"
)

type lsOptions struct{ chain, long, lazy bool }

func newLs(app *app) *cobra.Command {
	var opts lsOptions
	cmd := &cobra.Command{
		Use:   "ls [-l] [--chain] [--lazy] RUN_DIR... [-- PATH...]",
		Short: "list the files of a candidate, or the runs of a store",
		Long: `ls verifies the candidate as mount does, and lists the files that a view of it
would show, one path on each line, in byte order. With -l each line also has the
mode, size, time and SHA-256. Paths after "--" are files or directories of the
candidate; then only those are listed. A path with unprintable characters is
quoted.

With --lazy, ls verifies the signature, and reads no output: sizes, modes and times
are those of the signed block table. Without one they are those of the sources: then
-l marks a size with a question mark. Of a run in a store no output is fetched then.

ls requires neither FUSE nor a mount point, and writes nothing.

Instead of RUN_DIR, name a STORE, file:///DIR or s3://BUCKET/PREFIX, to list its runs:
ls prints the address of each run. With -l it fetches each run without its outputs,
verifies what is signed, and puts before the address: the time of completion, the
validator, the number of files, and the name of the run, which is not signed.`,
		Args: atLeast(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && isWholeStore(args[0]) {
				return app.listStore(cmd, args[0], opts.long)
			}
			runDirs, paths, _ := splitPaths(cmd, args)
			return unlessGone(runLs(cmd, app, opts, runDirs, paths))
		},
	}
	cmd.Flags().BoolVarP(&opts.long, "long", "l", false, "also print mode, size, time and SHA-256")
	addChain(cmd, &opts.chain)
	addLazy(cmd, &opts.lazy)
	app.addPatience(cmd)
	return cmd
}

// isWholeStore reports whether an argument is meant as the address of a store.
func isWholeStore(text string) bool {
	address, err := store.Parse(text)
	return store.IsAddress(text) && (err != nil || !address.NamesRun())
}

func runLs(cmd *cobra.Command, app *app, opts lsOptions, runDirs, paths []string) error {
	l, err := app.lookInto(cmd, runDirs, opts.chain, opts.lazy)
	if err != nil {
		return err
	}
	defer l.close()
	l.saySigned()
	l.sayChecked()
	files, err := l.choose(paths)
	if err != nil {
		return err
	}
	switch {
	case app.json:
		listing, err := l.listing(files)
		if err != nil {
			return err
		}
		return app.result("", listing)
	case opts.long:
		return l.writeLong(files)
	default:
		return app.writeLines(shortLines(files))
	}
}

// choose returns the files at some paths, each once and in path order; all files if no path is
// given.
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

// writeLong writes the lines of -l. A size that is not signed has a question mark.
func (l *look) writeLong(files []fusefs.File) error {
	files, unsized, err := withFacts(files)
	if err != nil {
		return err
	}
	size := func(i int) string {
		text := strconv.FormatInt(files[i].Size, 10)
		if unsized[i] {
			text += "?"
		}
		return text
	}
	width := 0
	for i := range files {
		width = max(width, len(size(i)))
	}
	return l.app.writeLines(func(yield func(string) bool) {
		for i, f := range files {
			if !yield(fmt.Sprintf("%s %*s %s %s %s", viewMode(f), width, size(i), f.ModTime.UTC().Format(time.RFC3339), sha256Of(f), shownPath(f.Path))) {
				return
			}
		}
	})
}

// withFacts fills in the attributes of files that are those of their sources, and reports which
// are.
func withFacts(files []fusefs.File) (filled []fusefs.File, unsized []bool, err error) {
	filled, unsized = slices.Clone(files), make([]bool, len(files))
	for i := range filled {
		f := &filled[i]
		facts, is, err := view.UnsizedFacts(*f)
		if err != nil {
			return nil, nil, unreadable(&fusefs.SourceError{Path: f.Path, Err: err}, "\"spectrum verify RUN_DIR...\" shows the current state")
		}
		if is {
			f.Size, f.Mode, f.ModTime, unsized[i] = facts.Size, facts.Mode, facts.ModTime, !facts.Settled
		}
	}
	return filled, unsized, nil
}

// settleFile has a file without a signed size checked as a whole.
func settleFile(ctx context.Context, f *fusefs.File) error {
	err := view.Settle(ctx, f)
	if err == nil || ctx.Err() != nil {
		return err
	}
	return spoiled(f.Path, err)
}

// listing is what --json shows.
func (l *look) listing(files []fusefs.File) (map[string]any, error) {
	files, unsized, err := withFacts(files)
	if err != nil {
		return nil, err
	}
	records := make([]any, 0, len(files))
	for i, f := range files {
		record := map[string]any{
			"bytes": f.Size, "mode": fmt.Sprintf("%04o", viewMode(f)), "modified_at": f.ModTime.UTC().Format(time.RFC3339Nano),
			"path": jsonText(f.Path), "sha256": sha256Of(f),
		}
		if unsized[i] {
			record["unsized"] = true
		}
		records = append(records, record)
	}
	listing := map[string]any{"bundle_roots": l.scene.BundleRoots(), "code": "OK", "files": records, "ok": true}
	if l.scene.IsChain() {
		listing["chain_root"], listing["run_ids"], listing["task_ids"] = l.scene.ChainRoot(), runIDs(l.candidate.runs), taskIDs(l.scene.Bundles())
	}
	if l.lazy != nil {
		checked, bytes := l.lazy.Checked()
		listing["attested"] = map[string]any{"bytes": bytes, "checked_bytes": checked, "state": l.lazy.State()}
	}
	return listing, nil
}

func byPath(x, y fusefs.File) int { return strings.Compare(x.Path, y.Path) }
