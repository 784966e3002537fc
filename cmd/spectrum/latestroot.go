package main

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spf13/cobra"
)

// namesLatest is the next step where it is not known which restore root latest is of.
const namesLatest = "name the root with --restore-root DIR, or run this in a directory of it"

// ofLatest are the commands that take latest, and have no flag for a restore root otherwise.
var ofLatest = []string{
	"spectrum rollback", "spectrum savepoint show",
	"spectrum snapshot show", "spectrum snapshot verify", "spectrum snapshot restore", "spectrum snapshot diff", "spectrum snapshot export",
}

// addLatestRoot adds the flag for the restore root that latest is of.
func (a *app) addLatestRoot(root *cobra.Command) {
	for _, cmd := range allCommands(root) {
		if slices.Contains(ofLatest, cmd.CommandPath()) {
			cmd.Flags().StringVar(&a.latestOf, "restore-root", "", "the restore root, a `directory`, of the ID or of latest")
		}
	}
}

// rootCommands are the commands with a restore root as their last argument, which --restore-root
// sets as well.
var rootCommands = []string{
	"spectrum status", "spectrum log", "spectrum recover", "spectrum doctor", "spectrum savepoint list",
	"spectrum snapshot list", "spectrum snapshot take", "spectrum snapshot prune", "spectrum snapshot watch",
}

// addRootFlag adds the flag that replaces the restore root among the arguments.
func addRootFlag(root *cobra.Command) {
	for _, cmd := range allCommands(root) {
		if !slices.Contains(rootCommands, cmd.CommandPath()) {
			continue
		}
		path := cmd.Flags().String("restore-root", "", "the restore root, a `directory`; the same as the argument")
		with := func(args []string) []string {
			if *path == "" {
				return args
			}
			return append(slices.Clone(args), *path)
		}
		count, run := cmd.Args, cmd.RunE
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := noEmptyArgument(cmd, args); err != nil {
				return err
			}
			return count(cmd, with(args))
		}
		cmd.RunE = func(cmd *cobra.Command, args []string) error { return run(cmd, with(args)) }
	}
}

// latestRoot returns the name of the restore root that latest is of: the one that was named, or
// the known one that the working directory is in; "" where neither is.
func (a *app) latestRoot(state *statedir.Dir) (string, error) {
	path := a.latestOf
	if path == "" {
		path = rootHere(state)
	}
	if path == "" {
		return "", nil
	}
	root, err := rootArg(path)
	if err != nil {
		return "", err
	}
	name, err := nameOfRoot(state, root, true)
	if err != nil || a.latestOf == "" {
		return name, err
	}
	if isKnown, unknown := state.Names(name); unknown == nil && !isKnown {
		err = notKnown(state, root, "commit or snapshot")
	}
	return name, err
}

// rootHere returns the path of the innermost known restore root that the working directory is in;
// "" for none.
func rootHere(state *statedir.Dir) string {
	here, err := os.Getwd()
	if err == nil {
		here, err = realPath(here)
	}
	if err != nil {
		return ""
	}
	return state.RootAround(here)
}

// newestCommit returns the savepoint of the newest active commit of the restore root.
func (a *app) newestCommit(state *statedir.Dir, survey func() (savepoint.Survey, error)) (savepoint.Savepoint, error) {
	root, err := a.latestRoot(state)
	if err != nil {
		return savepoint.Savepoint{}, err
	}
	var named action.Named
	for range 2 { // a commit may end between the survey and the read of the log: then its savepoint seems lost
		all, err := survey()
		if err != nil {
			return savepoint.Savepoint{}, err
		}
		if named = action.LatestCommit(root, &all, logOf(state)); named.Kind != action.NamesLost {
			break
		}
	}
	switch named.Kind {
	case action.NamesCommit:
		return named.Savepoint, nil
	case action.NamesSeveral:
		return savepoint.Savepoint{}, refusedHint(errors.New("there are commits in several restore roots, so latest names none"),
			namesLatest+"; \"spectrum log\" lists them"+eachRoot(state, named.Roots))
	}
	if err := cannotUndo(state, &named); err != nil {
		return savepoint.Savepoint{}, err
	}
	err = errors.New("there is no commit that could be undone")
	if root != "" {
		err = fmt.Errorf("there is no commit in %q that could be undone", root)
	}
	hint := findsCommits
	if known, damage := actionsOf(state, ""); len(known) == 0 && damage == nil {
		hint = fmt.Sprintf("the state directory %s has no commit yet; if another one was used, name it with --state-dir DIR", shellQuote(state.Path()))
	}
	return savepoint.Savepoint{}, refusedHint(err, hint)
}

// maxRoots is how many restore roots are named where latest names none.
const maxRoots = 5

// eachRoot returns the command that was typed for each of the restore roots of these names, as the rest
// of a hint.
func eachRoot(state *statedir.Dir, names []string) string {
	typed, text := shellLine(os.Args[1:]), ""
	for n, name := range names {
		path, err := state.RootPath(name)
		if err != nil || n >= maxRoots {
			continue
		}
		text += fmt.Sprintf("; for %s: spectrum %s --restore-root %[1]s", shellQuote(path), typed)
	}
	return text
}

// checkRoot rejects what is of another restore root than the one that was named.
func (a *app) checkRoot(state *statedir.Dir, what, root string) error {
	if a.latestOf == "" {
		return nil
	}
	named, err := a.latestRoot(state)
	if err == nil && named != root {
		err = refusedHint(fmt.Errorf("%s belongs to %q, not to %q", what, root, named), "leave out the restore root, or name another ID")
	}
	return err
}
