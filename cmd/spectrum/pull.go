package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/store"
	"github.com/spf13/cobra"
)

func newPull(app *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pull STORE@BUNDLE_ROOT DIR",
		Short: "fetch a run from a store into a new project directory",
		Long: `pull creates DIR, which must not exist: a project with one run, its run directory
and its outputs. It prints the path of the run directory.

` + storeHelp + `

Every byte is checked against the signature, and the whole is verified once more as
verify does, before DIR appears. Until then pull works in a directory
.spectrum-export-... beside it; the next pull there removes that of a killed one.
This says nothing about trust: "spectrum trust" pins validators.

The name of the run directory comes from the store, and nothing has signed it. Files
get the permissions of new files; a file can be executed only where a change set
signed that.`,
		Args: exactly(2),
		RunE: func(cmd *cobra.Command, args []string) error { return app.pull(cmd, args[0], args[1]) },
	}
	app.addPatience(cmd)
	return cmd
}

func (a *app) pull(cmd *cobra.Command, from, target string) (err error) {
	s, root, err := a.openStore(cmd, from, oneRun)
	if err != nil {
		return err
	}
	path, err := filepath.Abs(target)
	if err != nil {
		return err
	}
	b, err := newBox(filepath.Dir(path))
	if err != nil {
		return refusedHint(err, "choose a directory whose parent exists")
	}
	defer func() { err = errors.Join(err, b.close()) }()
	dir := filepath.Join(b.real, filepath.Base(path))
	if err := a.checkPullTarget(b, dir); err != nil {
		return err
	}
	if err := b.make(); err != nil {
		return refusedHint(err, "choose a directory whose parent you can write to")
	}
	bar := a.newBar("fetching")
	defer bar.done()
	const tree = "0"
	pulled, err := pullInto(cmd.Context(), s, root, b.dir, tree, bar)
	if err != nil {
		return b.told(err, tree, dir)
	}
	if err := b.release(tree, filepath.Base(dir)); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return exportExists(dir)
		}
		return err
	}
	bar.done()
	a.saySigned([]*verify.Bundle{pulled.bundle})
	a.say("fetched %s; the name %s is not signed", numberOf(pulled.bundle.Len(), "file"), shellQuote(pulled.run.RunID()))
	runDir := filepath.Join(dir, pulled.run.RunDir())
	return a.result(runDir, map[string]any{
		"bundle_root": root, "code": "OK", "files": pulled.bundle.Len(), "ok": true, "run_dir": jsonText(runDir), "validator_id": pulled.bundle.ValidatorID(),
	})
}

// checkPullTarget checks the directory that is to be made: it must not exist, nor be in the state
// directory.
func (a *app) checkPullTarget(b *box, dir string) error {
	_, err := b.above.Lstat(filepath.Base(dir))
	switch {
	case err == nil:
		return exportExists(dir)
	case !errors.Is(err, fs.ErrNotExist):
		return refusedHint(err, exportElsewhere)
	}
	state, err := a.statePath()
	if err != nil {
		return err
	}
	return refusedHint(overlapReal("DIR", dir, dir, []reserved{{"the state directory", state}}), "name a directory somewhere else")
}

// A pulledRun is a run that was fetched and verified.
type pulledRun struct {
	run    *store.Run
	bundle *verify.Bundle
}

// pullInto fetches a run into a new directory tree of dir, a private directory, and verifies it there.
func pullInto(ctx context.Context, s *store.Store, root string, dir *pathsafe.Dir, tree string, bar *bar) (pulledRun, error) {
	if err := dir.Mkdir(tree, 0o777); err != nil {
		return pulledRun{}, err
	}
	project, err := dir.OpenDir(tree)
	if err != nil {
		return pulledRun{}, err
	}
	defer project.Close()
	run, err := fetchInto(ctx, s, root, project, bar)
	if err != nil {
		return pulledRun{}, err
	}
	opened, err := openFetched(project, run)
	if err != nil {
		return pulledRun{}, err
	}
	defer opened.Close()
	bundle, err := verify.Strict(ctx, opened, bar.verifying(1))
	if err == nil && bundle.Root() != root {
		err = fmt.Errorf("the fetched run is not the requested one, but %s", bundle.Root())
	}
	return pulledRun{run, bundle}, err
}

// fetchInto fetches a run into an empty private directory.
func fetchInto(ctx context.Context, s *store.Store, root string, project *pathsafe.Dir, bar *bar) (*store.Run, error) {
	run, err := s.Open(ctx, root, project)
	if err != nil {
		return nil, err
	}
	return run, run.Pull(ctx, project, fetching(bar))
}

func fetching(bar *bar) store.Watch {
	return store.Watch{Begin: func(files int, bytes int64) { bar.begin("fetching", files, bytes) }, Moved: bar.add}
}

// openFetched opens the run directory of a run that was fetched into a project.
func openFetched(project *pathsafe.Dir, run *store.Run) (*verify.Run, error) {
	at, err := pathsafe.Parse(run.RunDir())
	if err != nil {
		return nil, err
	}
	dir, err := project.OpenParent(at, len(at.Components()))
	if err != nil {
		return nil, err
	}
	return verify.RunIn(project, dir, run.RunID()), nil
}
