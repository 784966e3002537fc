package main

import (
	"errors"
	"fmt"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spf13/cobra"
)

type diffOptions struct {
	chain, unified, patch, list, stat, names bool
	restoreRoot                              string
	paged                                    paged
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

func newDiff(app *app) *cobra.Command {
	var opts diffOptions
	cmd := &cobra.Command{
		Use:   "diff [-u | --list | --stat | --name-status] [--chain] RUN_DIR... [RESTORE_ROOT]",
		Short: "show what a restore would find in a restore root, without a mount",
		Long: `diff verifies the candidate as mount does, and holds each file that a restore
would write against what stands there now, by content. It prints a comment and the
lines of each text file that is not there already, from what is there to what the
candidate holds: a patch that "git apply" and "patch -p1" accept in the restore
root, into a pipe byte for byte. Of binary and large files it has the comment alone.
The result artifacts of a commit are no part of the patch. The comments, which are
what --list prints, begin with one of

    create    nothing is there
    conflict  something else is there, which a restore never overwrites
    blocked   something on the way there is no directory, or leads elsewhere

and of a change set instead of a conflict, and for each file that it removes:

    replace   what the change started from is there, and is replaced
    remove    what the change started from is there, and is removed
    diverged  something else is there, or nothing, which a preview does not propose

--stat counts the lines, --name-status prints a letter for each file: A for
create, M for replace and a conflict of contents, T for one with something that is
no file, B for blocked, D for remove, U for diverged. On a terminal there are
colours, unless NO_COLOR is set, and a pager (SPECTRUM_PAGER, PAGER, else less).

RESTORE_ROOT may be left out for one candidate of "spectrum run" or "seal --base": it is
the directory that the candidate would change.

What the candidate does not name is not looked at. Links,
FIFOs and devices are named, and never opened; nothing is written, and a restore
root in which a commit is at work can be looked at too.

The exit status is 0 when all files are there with the same content, and 1 when
not, or when the candidate is rejected; --json tells by the code (ROOT_DIFFERS).`,
		Args: atLeast(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			runDirs, root := args, opts.restoreRoot
			if last := len(args) - 1; last >= 0 && !cmd.Flags().Changed("restore-root") {
				runDirs, root = args[:last], args[last]
			}
			if len(args) == 1 && root == args[0] {
				over, err := app.overOf(args[0])
				if err != nil {
					return err
				}
				if over != "" {
					runDirs, root = args, over
				}
			}
			if root == "" || len(runDirs) == 0 && !opts.chain {
				return &usageError{command: cmd.CommandPath(), err: errors.New("diff needs a run directory and a restore root"), next: takes(cmd)}
			}
			return unlessGone(runDiff(cmd, app, opts, runDirs, root))
		},
	}
	cmd.Flags().BoolVarP(&opts.unified, "unified", "u", false, "show the lines of text files that differ, as a patch; the default")
	cmd.Flags().BoolVarP(&opts.patch, "patch", "p", false, "the same as -u")
	cmd.Flags().BoolVar(&opts.list, "list", false, "show a line for each file, with its size and hash")
	cmd.Flags().StringVar(&opts.restoreRoot, "restore-root", "", "`directory` to compare with; then all arguments are run directories")
	cmd.Flags().BoolVar(&opts.stat, "stat", false, "show how many lines each file has more and less")
	cmd.Flags().BoolVar(&opts.names, "name-status", false, "show a letter and the name of each file")
	opts.paged.addFlags(cmd)
	addChain(cmd, &opts.chain)
	return cmd
}

func runDiff(cmd *cobra.Command, app *app, opts diffOptions, runDirs []string, rootPath string) error {
	if err := opts.check(cmd, app.json); err != nil {
		return err
	}
	if len(runDirs) > 0 && !isInRuns(runDirs[0]) && (isInRuns(rootPath) || rootPath == latest && !isThere(rootPath)) {
		return &usageError{
			command: cmd.CommandPath(), err: fmt.Errorf("%q is a run directory, and no restore root", rootPath),
			next: "the restore root comes last: spectrum diff RUN_DIR... RESTORE_ROOT",
		}
	}
	d, err := app.printDiff(cmd, opts, runDirs, rootPath)
	if err != nil {
		return err
	}
	return d.verdict(app)
}

// printDiff holds a candidate against a restore root, and prints what differs unless JSON is asked for.
func (a *app) printDiff(cmd *cobra.Command, opts diffOptions, runDirs []string, rootPath string) (*rootDiff, error) {
	root, err := pathsafe.OpenRoot(rootPath)
	if err != nil {
		return nil, refusedHint(fmt.Errorf("restore root: %w", err), "the last argument is the restore root, an existing directory")
	}
	defer root.Close()
	if rootPath, err = root.RealPath(); err != nil {
		return nil, err
	}
	l, err := a.lookInto(cmd, runDirs, opts.chain)
	if err != nil {
		return nil, err
	}
	defer l.close()
	origin := l.candidate.origin
	origin.RestoreRoot = rootPath
	d := &rootDiff{previews: a.commandLine(previewWords(origin, preview.Asked{})...), plan: l.plan, candidate: l.files, root: root, rootPath: rootPath, form: opts.form(), store: a.snapshotsPath()}
	bar := a.newBar("comparing")
	bar.begin("comparing", len(l.files)+len(l.plan.Removes()), unknown)
	err = l.whileReading(cmd.Context(), func() error { return d.compare(cmd.Context(), bar.add) })
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

// showDiff shows on stderr, or in a pager on a terminal, the lines that a restore would change.
func (a *app) showDiff(cmd *cobra.Command, paged paged, o preview.Origin) error {
	over := *a
	over.stdout, over.projectRoot = a.stderr, o.ProjectRoot
	paged.asText = true
	_, err := over.printDiff(cmd, diffOptions{chain: o.Chain, paged: paged}, o.RunDirs, o.RestoreRoot)
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
		return usage(cmd, "-u, --list, --stat and --name-status are for people; without them --json has sizes and hashes")
	}
	if asked > 1 {
		return usage(cmd, "give one of -u, --list, --stat and --name-status")
	}
	return o.paged.check(cmd)
}
