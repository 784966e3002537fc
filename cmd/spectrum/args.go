package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// This file has the usage errors of arguments, flags and unknown commands. Commands report wrong
// values of their own flags with [usage].

// usageError is wrong usage of a command.
type usageError struct {
	command string   // how it is called
	meant   []string // what may have been meant
	next    string   // what to do, "" where the help has it
	more    []string // what else, after next
	noRuns  bool     // no run directory was given
	err     error
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usage(cmd *cobra.Command, format string, args ...any) error {
	return &usageError{command: cmd.CommandPath(), err: fmt.Errorf(format, args...)}
}

// withoutRuns marks wrong usage as a command without a run directory.
func withoutRuns(err error) error {
	if use, is := errors.AsType[*usageError](err); is {
		use.noRuns = true
	}
	return err
}

func (e *usageError) hints() []string {
	hints := []string{fmt.Sprintf("see %q", e.command+" --help")}
	if len(e.meant) > 0 {
		hints = append([]string{"did you mean " + strings.Join(e.meant, " or ")}, hints...)
	}
	if e.next != "" {
		hints = slices.Concat([]string{e.next}, e.more, hints)
	}
	return hints
}

// unlimited is how many arguments a command takes that takes any number.
const unlimited = -1

// exactly, atLeast and atMost are how many arguments a command takes.
func exactly(n int) cobra.PositionalArgs { return between(n, n) }

func atLeast(n int) cobra.PositionalArgs { return between(n, unlimited) }

func atMost(n int) cobra.PositionalArgs { return between(0, n) }

func between(least, most int) cobra.PositionalArgs {
	wanted := numberOf(least, "argument")
	switch {
	case most == unlimited:
		wanted = "at least " + wanted
	case most != least:
		wanted = "at most " + numberOf(most, "argument")
	}
	return func(cmd *cobra.Command, args []string) error {
		wanted := wanted
		if len(args) < least && most > least {
			wanted = "at least " + numberOf(least, "argument")
		}
		if n := len(args); n < least || n > most && most != unlimited {
			return &usageError{command: cmd.CommandPath(), err: fmt.Errorf("%q takes %s, and got %d", cmd.CommandPath(), wanted, n), next: takes(cmd)}
		}
		return nil
	}
}

// takes names the arguments that a command takes; "" for none.
func takes(cmd *cobra.Command) string {
	if _, arguments, has := strings.Cut(cmd.Use, " "); has {
		return "after the command: " + arguments
	}
	return ""
}

// noCommand rejects an unknown command.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := &usageError{command: cmd.CommandPath(), err: fmt.Errorf("there is no command %q", args[0])}
	for _, name := range cmd.SuggestionsFor(args[0]) {
		err.meant = append(err.meant, fmt.Sprintf("%q", cmd.CommandPath()+" "+name))
	}
	return err
}

// badFlag returns the error of an unknown or malformed flag. After an unknown command it is the
// error of that command.
func badFlag(cmd *cobra.Command, err error) error {
	if words := cmd.Flags().Args(); cmd.HasSubCommands() && len(words) > 0 {
		return noCommand(cmd, words)
	}
	use := &usageError{command: cmd.CommandPath(), err: err}
	var value *pflag.InvalidValueError
	if _, isNumber := errors.AsType[*strconv.NumError](err); isNumber && errors.As(err, &value) {
		use.err = fmt.Errorf("--%s requires a number, and %q is not a valid one", value.GetFlag().Name, value.GetValue())
	}
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "" {
		use.meant = flagsLike(cmd, unknown.GetSpecifiedName())
	}
	return use
}

// asksJSON reports whether --json follows the error on a command line, where it was not parsed.
func asksJSON(err error, args []string) bool {
	var use *usageError
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return errors.As(err, &use) && slices.Contains(args, "--json")
}

// otherWords are the words of other programs for what a command does.
var otherWords = map[string][]string{
	"commit": {"apply", "approve"}, "log": {"history"}, "review": {"show"}, "rollback": {"revert", "undo"}, "status": {"candidates", "list"},
}

// suggestFor has the commands suggested for such words.
func suggestFor(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		cmd.SuggestFor = otherWords[cmd.Name()]
	}
}

// flagsLike are the flags of a command whose names are like this one, by the measure
// that commands have.
func flagsLike(cmd *cobra.Command, name string) []string {
	names := &cobra.Command{SuggestionsMinimumDistance: nearest}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		names.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
	})
	var like []string
	for _, name := range names.SuggestionsFor(name) {
		like = append(like, "--"+name)
	}
	return like
}

// nearest is how many letters of a word may be wrong for another to be suggested.
const nearest = 2

// settle makes every command of the tree, also those of cobra, reject arguments that it does not
// take, and suggest similar names.
func settle(cmd *cobra.Command) {
	cmd.SuggestionsMinimumDistance = nearest
	if cmd.HasSubCommands() {
		cmd.Args = noCommand
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	count := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if err := noneEmpty(cmd); err != nil || count == nil {
			return err
		}
		return count(cmd, args)
	}
	for _, sub := range cmd.Commands() {
		settle(sub)
	}
}

// noneEmpty rejects a flag with an empty value, such as that of an unset shell variable: it must
// not count as omitted. A value that is itself a flag of the command is such a one, without quotes. For an empty restore root the law has its own code in previews and commits,
// RESTORE_TARGET_MISSING.
func noneEmpty(cmd *cobra.Command) (err error) {
	lawful := cmd.Name() == "preview" || cmd.Name() == "commit"
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if lawful && f.Name == "restore-root" {
			return
		}
		texts := []string{f.Value.String()}
		if list, is := f.Value.(pflag.SliceValue); is {
			texts = list.GetSlice()
		}
		if err == nil && (len(texts) == 0 || slices.Contains(texts, "")) {
			err = usage(cmd, "--%s is empty", f.Name)
		}
		if next := slices.IndexFunc(texts, func(text string) bool { return isFlagOf(cmd, text) }); err == nil && next >= 0 {
			err = &usageError{
				command: cmd.CommandPath(), err: fmt.Errorf("--%s has no value: the next word is %q", f.Name, texts[next]),
				next: "if the value is that of a variable, the variable is empty",
			}
		}
	})
	return err
}

// isFlagOf reports whether a word is a flag of the command: what follows a flag whose value was the
// variable of a shell, without quotes and empty.
func isFlagOf(cmd *cobra.Command, word string) bool {
	name, isLong := strings.CutPrefix(word, "--")
	return isLong && cmd.Flag(name) != nil
}

// newHelp returns cobra's help command, which rejects unknown commands.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND...]",
		Short: "show the help of a command",
		Long: `help shows what a command does, and its flags. "spectrum help config" describes the
config files, and lists their keys.`,
		Args: atLeast(0),
		RunE: func(cmd *cobra.Command, words []string) error {
			if slices.Equal(words, []string{"config"}) {
				_, err := fmt.Fprint(cmd.OutOrStdout(), configHelp(cmd.Root()))
				return err
			}
			about, rest, err := cmd.Root().Find(words)
			if err == nil && about.HasSubCommands() {
				err = noCommand(about, rest)
			}
			if err != nil {
				return err
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

// addCompletion adds cobra's completion command. It must be called after all commands were added to
// the root.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	completion, _, err := root.Find([]string{"completion"})
	if err != nil {
		return
	}
	completion.Short = "print the completion script for a shell"
	for _, shell := range completion.Commands() {
		shell.Args = exactly(0)
	}
}
