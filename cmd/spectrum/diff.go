package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/view"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spf13/cobra"
)

type diffOptions struct {
	chain, lazy, unified, patch, list, stat, names bool
	restoreRoot                                    string
	paged                                          paged
}

// form is what is printed. The flags exclude each other.
func (o *diffOptions) form() diffForm {
	switch {
	case o.list:
		return formList
	case o.stat:
		return formStat
	case o.names:
		return formNames
	}
	return formPatch
}

// sides returns what is compared: the run directories, and the restore root, which is the last argument
// unless a flag names it or the candidate was sealed over it.
func (o *diffOptions) sides(cmd *cobra.Command, app *app, args []string) (runDirs []string, root string, err error) {
	runDirs, root = args, o.restoreRoot
	if last := len(args) - 1; last >= 0 && !cmd.Flags().Changed("restore-root") {
		runDirs, root = args[:last], args[last]
	}
	if len(args) == 1 && root == args[0] {
		over, err := app.overOf(args[0])
		if err != nil {
			return nil, "", err
		}
		if abs, err := filepath.Abs(args[0]); over == "" && err == nil && !isThere(abs) {
			return nil, "", &usageError{command: cmd.CommandPath(), err: fmt.Errorf("run directory %q does not exist", abs), next: namesRun}
		}
		if over != "" {
			runDirs, root = args, over
		}
	}
	if root == "" || len(runDirs) == 0 && !o.chain {
		return nil, "", &usageError{command: cmd.CommandPath(), err: errors.New("diff needs a run directory and a restore root"), next: takes(cmd), noRuns: len(args) == 0}
	}
	return runDirs, root, nil
}

func newDiff(app *app) *cobra.Command {
	var opts diffOptions
	cmd := &cobra.Command{
		Use:   "diff [-u | --list | --stat | --name-status] [--chain] [--lazy] RUN_DIR... [RESTORE_ROOT]",
		Short: "compare a candidate with a restore root, without a mount",
		Long: `diff verifies the candidate as mount does, and compares each file that a restore
would write with the file in the restore root. For each file that is not there
already it prints a comment and, for text, the lines that differ. The output is a
patch that "git apply" and "patch -p1" accept in the restore root. Binary and large
files get only the comment, and the result artifacts of a commit are left out. The
comments, which --list prints alone, begin with one of

    create    nothing exists at this path
    conflict  something else exists there, which a restore does not overwrite
    blocked   a parent of this path is not a directory, or leads elsewhere

For a change set they also begin with one of

    replace   the file is as the change set expects, and is replaced
    remove    the file is as the change set expects, and is removed
    diverged  the file was changed or removed; a preview does not propose it

--stat counts the changed lines. --name-status prints a letter for each file: A
for create, M for replace and for a conflict with a file, T for a conflict with
anything else, B for blocked, D for remove, U for diverged. On a terminal the
comments have no hashes, and the output has colours, unless NO_COLOR is set, and
goes to a pager (SPECTRUM_PAGER, PAGER or less).

RESTORE_ROOT is optional for a candidate of "spectrum run" or "seal --base": the
default is the directory that the candidate would change.

With --lazy, diff verifies only the signature first, and checks what it prints.

diff looks only at the files that the candidate names, never opens links, FIFOs or
devices, writes nothing, and also works while a commit runs.

The exit status is 0 if all files exist with the same content, and 1 if not, or if
the candidate is rejected. With --json the code shows which: ROOT_DIFFERS is a difference.`,
		Args: atLeast(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			runDirs, root, err := opts.sides(cmd, app, args)
			if err != nil {
				return err
			}
			return unlessGone(runDiff(cmd, app, opts, runDirs, root))
		},
	}
	cmd.Flags().BoolVarP(&opts.unified, "unified", "u", false, "show changed lines as a patch (the default)")
	cmd.Flags().BoolVarP(&opts.patch, "patch", "p", false, "the same as -u")
	cmd.Flags().BoolVar(&opts.list, "list", false, "list the files, with size and hash")
	cmd.Flags().StringVar(&opts.restoreRoot, "restore-root", "", "`directory` to compare with; all arguments are then run directories")
	cmd.Flags().BoolVar(&opts.stat, "stat", false, "count the changed lines of each file")
	cmd.Flags().BoolVar(&opts.names, "name-status", false, "show a status letter and the name of each file")
	opts.paged.addFlags(cmd)
	addChain(cmd, &opts.chain)
	addLazy(cmd, &opts.lazy)
	app.addPatience(cmd)
	return cmd
}

func runDiff(cmd *cobra.Command, app *app, opts diffOptions, runDirs []string, rootPath string) error {
	if err := opts.check(cmd, app.json); err != nil {
		return err
	}
	if len(runDirs) > 0 && !isInRuns(runDirs[0]) && (isInRuns(rootPath) || rootPath == latest && !isThere(rootPath)) {
		return &usageError{
			command: cmd.CommandPath(), err: fmt.Errorf("%q is a run directory, not a restore root", rootPath),
			next: "the restore root comes last: spectrum diff RUN_DIR... RESTORE_ROOT",
		}
	}
	d, err := app.printDiff(cmd, opts, runDirs, rootPath)
	if err != nil {
		return err
	}
	return d.verdict(app)
}

// printDiff compares a candidate with a restore root, and prints the differences unless --json is
// set.
func (a *app) printDiff(cmd *cobra.Command, opts diffOptions, runDirs []string, rootPath string) (*rootDiff, error) {
	root, err := pathsafe.OpenRoot(rootPath)
	if err != nil {
		return nil, refusedHint(fmt.Errorf("restore root: %w", err), "the last argument is the restore root, an existing directory")
	}
	defer root.Close()
	if rootPath, err = root.RealPath(); err != nil {
		return nil, err
	}
	l, err := a.lookInto(cmd, runDirs, opts.chain, opts.lazy)
	if err != nil {
		return nil, err
	}
	defer l.close()
	if l.files, _, err = withFacts(l.files); err != nil {
		return nil, err
	}
	d, err := a.printDiffOf(cmd, opts, l, root, rootPath)
	l.sayChecked()
	return d, err
}

// printDiffOf is printDiff of a candidate and a restore root that are open.
func (a *app) printDiffOf(cmd *cobra.Command, opts diffOptions, l *look, root *pathsafe.Dir, rootPath string) (*rootDiff, error) {
	origin := l.candidate.origin
	origin.RestoreRoot = rootPath
	d := &rootDiff{previews: a.commandLine(previewWords(origin, preview.Requested{})...), plan: l.scene, candidate: l.files, root: root, rootPath: rootPath, form: opts.form(), store: a.snapshotsPath()}
	bar := a.newBar("comparing")
	bar.begin("comparing", len(l.files)+len(l.scene.Removes()), unknown)
	err := l.whileReading(cmd.Context(), func() error {
		if err := d.compare(cmd.Context(), bar.add); err != nil {
			return err
		}
		for i := range d.files {
			if err := settleFile(cmd.Context(), &d.files[i].File); err != nil {
				return err
			}
		}
		return nil
	})
	bar.done()
	if err != nil {
		return nil, err
	}
	if len(d.files) > 0 && !a.json {
		err = opts.paged.show(a, func(w *diffWriter) error {
			return l.whileReading(cmd.Context(), func() error { return d.print(cmd.Context(), w) })
		})
	}
	return d, unlessGone(err)
}

// showDiff shows on stderr, or in a pager on a terminal, the lines that a restore would change. It
// reads the candidate that the preview is of: another one may be at its path by now.
func (a *app) showDiff(cmd *cobra.Command, paged paged, made *proposal) error {
	over := *a
	over.stdout = a.stderr
	paged.asText = true
	root, plan := made.restore.Root(), made.restore.Plan()
	rootPath, err := root.RealPath()
	if err != nil {
		return err
	}
	l := &look{app: &over, candidate: made.candidate, scene: view.SceneOf(plan), files: slices.SortedFunc(view.Files(plan), byPath)}
	_, err = over.printDiffOf(cmd, diffOptions{paged: paged}, l, root, rootPath)
	return err
}

// check reports flags that exclude each other.
func (o *diffOptions) check(cmd *cobra.Command, json bool) error {
	asked := 0
	for _, is := range []bool{o.unified || o.patch, o.list, o.stat, o.names} {
		if is {
			asked++
		}
	}
	if json && asked > 0 {
		return usage(cmd, "--json cannot be combined with -u, --list, --stat or --name-status; it always has sizes and hashes")
	}
	if asked > 1 {
		return usage(cmd, "give one of -u, --list, --stat and --name-status")
	}
	return o.paged.check(cmd)
}
