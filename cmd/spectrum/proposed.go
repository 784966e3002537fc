package main

import (
	"errors"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spf13/cobra"
)

// openProposed opens the candidate that is to be previewed.
func (a *app) openProposed(cmd *cobra.Command, state *statedir.Dir, opts previewOptions, runDirs []string) (*candidate, error) {
	if opts.fromMount != "" {
		return a.openMounted(cmd.Context(), opts.fromMount, opts.restoreRoot)
	}
	if opts.savepoint != "" {
		return a.openSavepoint(cmd.Context(), state, opts)
	}
	c, err := a.openCandidate(cmd, runDirs, opts.chain)
	if err != nil {
		return nil, opts.meantReport(err, runDirs)
	}
	c.origin.RestoreRoot = opts.restoreRoot
	return c, nil
}

// meantReport changes the hint for a run directory that does not exist, if it may be the value of
// --report, which requires a "=".
func (o *previewOptions) meantReport(err error, runDirs []string) error {
	use, isUse := errors.AsType[*usageError](err)
	if !isUse || o.report != onStream {
		return err
	}
	dirs, _ := absolute(runDirs) // none where they could not be named
	for i, dir := range dirs {
		if way, failed := pathsafe.WayTo(dir); failed == nil && way.Missing && runDirs[i] != latest {
			use.next = "to write the report to a file, name it with an equals sign: --report=" + shellQuote(runDirs[i])
			break
		}
	}
	return err
}
