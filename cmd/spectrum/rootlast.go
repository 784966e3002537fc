package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spf13/cobra"
)

// This file has the order of arguments: first IDs or run directories, last the restore root, which
// --restore-root sets as well.

// rootArgumentHelp is how the commands that restore tell a root from a run directory.
const rootArgumentHelp = `RESTORE_ROOT, an existing directory, is the last argument, or --restore-root. An
argument that has artifacts of a run, or is beside another run, is a run directory;
with --restore-root all arguments are. Any other argument is rejected.`

// rootOnce is the error of a restore root that was given as an argument and with the flag.
func rootOnce(cmd *cobra.Command) error {
	return usage(cmd, "give the restore root once: as the last argument or with --restore-root")
}

// takeRoot takes the restore root from the arguments, and returns the run directories: the last
// argument is the root where it is an existing directory and cannot be a run. Without one, and with
// infers, it is the directory that the candidate was sealed over.
func (o *previewOptions) takeRoot(cmd *cobra.Command, a *app, args []string, infers bool) ([]string, error) {
	last, isGiven := len(args)-1, cmd.Flags().Changed("restore-root")
	isNamed := o.fromMount != "" || o.savepoint != "" // what is restored
	switch {
	case last >= 0 && (last > 0 || isNamed) && !isGiven && args[last] == "":
		return nil, noEmptyArgument(cmd, args)
	case last >= 0 && (last > 0 || isNamed) && isRootArgument(args):
		if isGiven {
			if isNamed && last == 0 {
				return nil, rootOnce(cmd)
			}
			return args, nil // a run directory that is none, as the law has it
		}
		root, err := filepath.Abs(args[last])
		o.restoreRoot = root
		return args[:last], err
	case last == 0 && isNamed && !isGiven && !isThere(args[0]) && args[0] != latest:
		root, err := filepath.Abs(args[0])
		if err != nil {
			return nil, err
		}
		next := "mkdir -p " + shellQuote(root) + ", or name an existing directory"
		if meant := nearPath(root); meant != "" {
			next = fmt.Sprintf("did you mean %s; %s", shellQuote(meant), next)
		}
		return nil, &usageError{command: cmd.CommandPath(), err: fmt.Errorf("restore root %q does not exist", args[0]), next: next}
	case infers && last == 0 && !isNamed && !isGiven && o.restoreRoot == "":
		over, err := a.overOf(args[0])
		if err == nil && over != "" {
			o.restoreRoot = over
			a.say("restore root: %s, which the candidate was sealed over", shellQuote(over))
		}
		return args, err
	case infers && last == 0 && !isNamed && !isGiven: // the config has the root
		if over, err := a.overOf(args[0]); err == nil && over != "" && over != o.restoreRoot {
			a.tell("spectrum: restore root: %s, from the config file; the candidate was sealed over another directory, %s", shellQuote(o.restoreRoot), shellQuote(over))
		}
	}
	return args, nil
}

// sealedOver returns the directory that a candidate was sealed over, and the command that commits it there;
// "" where there is none.
func (a *app) sealedOver(run string) (over, command string) {
	over, unknown := a.overOf(run)
	if unknown != nil || over == "" {
		return "", ""
	}
	return over, a.commandLine("commit", run, over)
}

// isRootArgument reports whether the last of the arguments is a restore root and no run directory:
// an existing directory without any artifact of a run, and neither among the runs of a project nor
// beside another run that was named.
func isRootArgument(args []string) bool {
	last := args[len(args)-1]
	if last == latest || bundle.IsRunsDir(last) || isInRuns(last) || !isDir(last) {
		return false
	}
	for _, name := range []string{bundle.TaskSpec, bundle.OutputHashes, bundle.Proof, bundle.SignedPayload, bundle.Signature, bundle.Identity} {
		if way, err := pathsafe.WayFrom(filepath.Join(last, name)); err != nil || !way.Missing {
			return false
		}
	}
	parentOf := func(path string) string {
		real, err := realPath(path)
		if err != nil {
			return ""
		}
		return filepath.Dir(real)
	}
	beside := parentOf(last)
	return beside != "" && !slices.ContainsFunc(args[:len(args)-1], func(run string) bool { return isDir(run) && parentOf(run) == beside })
}

func isDir(path string) bool {
	way, err := pathsafe.WayFrom(path)
	return err == nil && !way.Missing && way.End.Mode.IsDir()
}

// noEmptyArgument rejects an argument with an empty text, such as that of a shell's variable which is not set:
// as a path it would be the working directory.
func noEmptyArgument(cmd *cobra.Command, args []string) error {
	if slices.Contains(args, "") {
		return usage(cmd, "an argument is empty")
	}
	return nil
}

// afterID are the commands that take an ID or latest, and then the restore root that it is of.
var afterID = []string{"spectrum rollback", "spectrum savepoint show", "spectrum snapshot show", "spectrum snapshot verify"}

// addRootAfterID has the commands take the restore root after the ID.
func (a *app) addRootAfterID(root *cobra.Command) {
	for _, cmd := range allCommands(root) {
		if !slices.Contains(afterID, cmd.CommandPath()) {
			continue
		}
		count, run := cmd.Args, cmd.RunE
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := noEmptyArgument(cmd, args); err != nil {
				return err
			}
			if emergency := cmd.Flag("emergency"); len(args) != 2 || emergency != nil && emergency.Changed {
				return count(cmd, args)
			}
			if cmd.Flags().Changed("restore-root") {
				return rootOnce(cmd)
			}
			return namesRoot(cmd, args[1])
		}
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				a.latestOf = args[1]
				args = args[:1]
			}
			return run(cmd, args)
		}
	}
}

// namesRoot rejects an argument in the place of a restore root that looks like another ID.
func namesRoot(cmd *cobra.Command, word string) error {
	if word == latest || likeAction.MatchString(word) && !isDir(word) {
		return &usageError{
			command: cmd.CommandPath(), err: fmt.Errorf("%q takes one ID, and %q looks like a second one", cmd.CommandPath(), word),
			next: "after the ID comes its restore root; a directory with such a name is ./" + word,
		}
	}
	return nil
}

// idAndRoot returns the ID and the restore root among two arguments: the ID comes first. The order
// from before, the root first, is taken where only the second argument can be the ID.
func idAndRoot(cmd *cobra.Command, args []string) (id, root string, err error) {
	isID := func(word string) bool { return word == latest || likeAction.MatchString(word) }
	first, second := isID(args[0]), isID(args[1])
	if first && second { // a directory may be called like an ID
		first, second = !isDir(args[0]) || args[0] == latest, !isDir(args[1]) || args[1] == latest
	}
	switch {
	case first && !second:
		return args[0], args[1], nil
	case second && !first:
		return args[1], args[0], nil
	case first:
		return "", "", &usageError{command: cmd.CommandPath(), err: errors.New("both arguments look like an ID"), next: "after the ID comes a restore root; a directory with such a name is ./NAME"}
	}
	return args[0], args[1], nil
}
