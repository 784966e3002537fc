package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/cancelable"
	"github.com/spectrumfs/spectrum/internal/served"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/store"
	"github.com/spf13/cobra"
)

// candidate is the run directories of a command, opened.
type candidate struct {
	origin   preview.Origin // without a restore root
	asked    preview.Requested
	project  *pathsafe.Dir // nil without a run
	runs     []*verify.Run
	reread   bool            // its content will be read through the plan
	sources  *verify.Sources // for a commit: outputs that stay open until they are copied
	stuck    bool            // a reader that was left behind may still use it
	warning  string          // of its last preview; "" for none
	unpinned preview.Signed  // the signers of a savepoint's files, if its key needs a pin because of them
	shown    []string        // the bundle roots that a view shows of it; nil if unknown
	fetched  *box            // the project of a run that was fetched from a store; nil for none
	far      *store.Run      // whose outputs were not fetched; nil for none
	ranges   *store.Ranges   // that reads them; nil for none
}

// addChain adds the flag that makes a chain of one run directory.
func addChain(cmd *cobra.Command, chain *bool) {
	cmd.Flags().BoolVar(chain, "chain", false, "treat the run directories as a chain, even if there is only one")
}

// explained adds the next step to a verdict whose cause is not in the bundle.
func (c *candidate) explained(err error) error {
	return hinted(err, rejectedRunHint(err, c.missingRun))
}

// missingRun returns the first run directory that does not exist, "" for none.
func (c *candidate) missingRun() string {
	for _, dir := range c.origin.RunDirs {
		if way, err := pathsafe.WayTo(dir); err == nil && way.Missing {
			return dir
		}
	}
	return ""
}

// openCandidate opens the run directories and their project root.
func (a *app) openCandidate(cmd *cobra.Command, runDirs []string, chain bool) (*candidate, error) {
	return a.openToLook(cmd, runDirs, chain, false)
}

// openToLook is openCandidate; if it is to be looked at lazily, the outputs of a run in a store are not
// fetched.
func (a *app) openToLook(cmd *cobra.Command, runDirs []string, chain, lazy bool) (*candidate, error) {
	runDirs, sealed, err := a.namedRuns(runDirs)
	if err != nil {
		return nil, err
	}
	dirs, err := absolute(runDirs)
	if _, is := errors.AsType[*store.AddressError](err); is {
		return nil, usage(cmd, "%w", err)
	}
	if err != nil {
		return nil, refusedHint(err, runDirHint)
	}
	c := &candidate{origin: preview.Origin{RunDirs: dirs, Chain: chain || len(dirs) > 1}}
	if len(dirs) == 0 {
		return c, nil
	}
	if slices.ContainsFunc(dirs, store.IsAddress) {
		return a.openAddress(cmd, c.origin, lazy)
	}
	root := a.projectRoot
	if root == "" {
		if root, err = projectRootOf(dirs); err != nil {
			return nil, unknownProject(cmd, dirs, err)
		}
	}
	if c.origin.ProjectRoot, err = filepath.Abs(root); err != nil {
		return nil, err
	}
	if c, err = a.reopen(cmd.Context(), c.origin); err != nil {
		return nil, err
	}
	for i, run := range c.runs {
		run.Expect(sealed[i])
	}
	return c, nil
}

// unknownProject is the error for run directories that are in no project. One that does
// not exist is named as that: no flag makes it a run directory.
func unknownProject(cmd *cobra.Command, dirs []string, err error) error {
	for n, dir := range dirs {
		if err := notServed("run directory", dir); err != nil {
			return err
		}
		if way, err := pathsafe.WayTo(dir); err == nil && way.Missing {
			next := namesRun
			if root := cmd.Flag("restore-root"); n > 0 && n == len(dirs)-1 && root != nil && !root.Changed {
				next = fmt.Sprintf("if it is the restore root: mkdir -p %s; else %s", shellQuote(dir), namesRun)
				if meant := nearPath(dir); meant != "" {
					next = fmt.Sprintf("did you mean %s; %s", shellQuote(meant), next)
				}
			}
			return &usageError{command: cmd.CommandPath(), err: fmt.Errorf("run directory %q does not exist", dir), next: next}
		}
	}
	for _, dir := range dirs {
		if bundle.IsRunsDir(dir) {
			return &usageError{
				command: cmd.CommandPath(), err: fmt.Errorf("%q holds run directories, but is not one", dir),
				next: "name one of them: " + runsIn(dir) + "; \"spectrum mount --all\" shows all of them",
			}
		}
	}
	for _, dir := range dirs {
		if way, err := pathsafe.WayTo(filepath.Join(dir, bundle.TaskSpec)); err == nil && way.Missing {
			return &usageError{
				command: cmd.CommandPath(), err: fmt.Errorf("%q is not a run directory: it has no %s", dir, bundle.TaskSpec), next: namesRunOrRoot(cmd, dir),
			}
		}
	}
	return usage(cmd, "%w", err)
}

// namesRun is the next step where a run directory was to be named.
const namesRun = "name an existing run directory, such as CONTRACTS/_runs/NAME of a project; create one with \"spectrum seal\", or a sample with \"spectrum demo\""

// namesRunOrRoot is [namesRun] for an existing directory that may be meant as the restore root.
func namesRunOrRoot(cmd *cobra.Command, dir string) string {
	root := cmd.Flag("restore-root")
	if root == nil || root.Changed {
		return namesRun
	}
	return fmt.Sprintf("if it is the restore root, name it last, or with --restore-root %s; else %s", shellQuote(dir), namesRun)
}

// notServed is an error for a path that leads into a file system of another user.
func notServed(what, path string) error {
	if _, err := pathsafe.WayFrom(path); errors.Is(err, served.ErrForeign) {
		return fmt.Errorf("%s %q: %w", what, path, err)
	}
	return nil
}

// isInRuns reports whether a path is that of a run directory in a project.
func isInRuns(path string) bool {
	abs, err := filepath.Abs(path)
	return err == nil && bundle.IsRunsDir(filepath.Dir(abs))
}

// runsIn names some of the runs in a directory, for a hint.
func runsIn(path string) string {
	const most = 3
	dir, err := pathsafe.OpenRoot(path)
	if err != nil {
		return err.Error()
	}
	defer dir.Close()
	names, err := dir.Names()
	if err != nil || len(names) == 0 {
		return "no run directory exists yet; create one with \"spectrum seal\""
	}
	slices.Sort(names)
	var runs []string
	for _, name := range names[:min(len(names), most)] {
		runs = append(runs, shellQuote(filepath.Join(path, name)))
	}
	if len(names) > most {
		runs = append(runs, fmt.Sprintf("and %s", numberOf(len(names)-most, "other")))
	}
	return strings.Join(runs, ", ")
}

// reopen opens the candidate of a preview. A run in a store is fetched.
func (a *app) reopen(ctx context.Context, o preview.Origin) (*candidate, error) {
	if len(o.RunDirs) > 0 && store.IsAddress(o.RunDirs[0]) {
		return a.reopenAddress(ctx, o)
	}
	return cancelable.Do(ctx, func() (*candidate, error) {
		c := &candidate{origin: o}
		if err := c.open(); err != nil {
			return nil, err
		}
		return c, nil
	})
}

func (c *candidate) open() error {
	project, err := openProject(c.origin.ProjectRoot)
	if err != nil {
		return err
	}
	c.project = project
	for _, dir := range c.origin.RunDirs {
		if err := notServed("run directory", dir); err != nil { // no verdict of a law
			c.close()
			return err
		}
		run, err := verify.OpenRun(project, dir)
		if err != nil {
			c.close()
			return refusedHint(err, runDirHint)
		}
		c.runs = append(c.runs, run)
	}
	return nil
}

// runDirHint is for a run directory that cannot be opened.
const runDirHint = "name an existing run directory, or create one with \"spectrum seal\""

func openProject(path string) (*pathsafe.Dir, error) {
	project, err := pathsafe.OpenRoot(path)
	if err != nil {
		return nil, refusedHint(fmt.Errorf("project root: %w", err), "name the directory that the output paths are relative to with --project-root DIR")
	}
	return project, nil
}

// close closes what was opened; outputs can no longer be read after it.
func (c *candidate) close() {
	if c.stuck {
		return
	}
	c.sources.Close()
	for _, run := range c.runs {
		run.Close()
	}
	if c.project != nil {
		c.project.Close()
	}
	if c.ranges != nil {
		_ = c.ranges.Close()
	}
	if c.fetched != nil {
		_ = c.fetched.close() // what is left of it is removed by a later command
	}
}

// restore returns the candidate in the form of package restore; the bar shows the progress of
// verification.
func (c *candidate) restore(b *bar) restore.Candidate {
	watch := b.verifying(len(c.runs))
	watch.Reread, watch.Sources = c.reread, c.sources
	return restore.Candidate{Runs: c.runs, Chain: c.origin.Chain, Watch: watch}
}

func absolute(paths []string) ([]string, error) {
	out := make([]string, 0, len(paths))
	for _, p := range paths {
		if p == "" {
			return nil, errors.New("the path of a run directory is empty")
		}
		if address, err := store.Parse(p); store.IsAddress(p) {
			if err != nil {
				return nil, err
			}
			out = append(out, address.String())
			continue
		}
		abs, err := absoluteRunDir(p)
		if err != nil {
			return nil, err
		}
		out = append(out, abs)
	}
	return out, nil
}

// absoluteRunDir makes a path absolute. Its last component names the run, so
// "." and ".." are resolved as the kernel does, and not by the letter.
func absoluteRunDir(path string) (string, error) {
	if base := filepath.Base(path); base == "." || base == ".." {
		return pathsafe.ResolveDir(path)
	}
	return filepath.Abs(path)
}

// projectRootOf finds the directory that holds the CONTRACTS/_runs/ or
// LAW/CONTRACTS/_runs/ of which all run directories are direct children.
//
// A run in a store has none: "".
func projectRootOf(runDirs []string) (string, error) {
	if len(runDirs) == 1 && store.IsAddress(runDirs[0]) {
		return "", nil
	}
	roots := make([]string, 0, len(runDirs))
	for _, dir := range runDirs {
		root, ok := bundle.ProjectOf(dir)
		if !ok {
			return "", fmt.Errorf("%q is not in a CONTRACTS/_runs directory, so --project-root must be given", dir)
		}
		roots = append(roots, root)
	}
	if slices.Sort(roots); roots[0] != roots[len(roots)-1] {
		return "", fmt.Errorf("the run directories lie in different projects (%q and %q), so --project-root must be given", roots[0], roots[len(roots)-1])
	}
	return roots[0], nil
}
