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

// This file is wrong usage: arguments, flags and words that are no command. What a
// command finds out about its flags itself it says with [usage].

// usageError is wrong usage of a command.
type usageError struct {
	command string   // how it is called
	meant   []string // what may have been meant
	next    string   // what to do, "" where the help has it
	err     error
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usage(cmd *cobra.Command, format string, args ...any) error {
	return &usageError{command: cmd.CommandPath(), err: fmt.Errorf(format, args...)}
}

func (e *usageError) hints() []string {
	hints := []string{fmt.Sprintf("see %q", e.command+" --help")}
	if len(e.meant) > 0 {
		hints = append([]string{"did you mean " + strings.Join(e.meant, " or ")}, hints...)
	}
	if e.next != "" {
		hints = append([]string{e.next}, hints...)
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
		if n := len(args); n < least || n > most && most != unlimited {
			return &usageError{command: cmd.CommandPath(), err: fmt.Errorf("%q takes %s, and got %d", cmd.CommandPath(), wanted, n), next: takes(cmd)}
		}
		return nil
	}
}

// takes says what a command takes beside its name; "" for nothing.
func takes(cmd *cobra.Command) string {
	if _, arguments, has := strings.Cut(cmd.Use, " "); has {
		return "after the command: " + arguments
	}
	return ""
}

// noCommand refuses a word that is no command.
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

// badFlag is what the command line says that no flag can take. After a word that is
// no command it is that word which was wrong.
func badFlag(cmd *cobra.Command, err error) error {
	if words := cmd.Flags().Args(); cmd.HasSubCommands() && len(words) > 0 {
		return noCommand(cmd, words)
	}
	use := &usageError{command: cmd.CommandPath(), err: err}
	var value *pflag.InvalidValueError
	if _, isNumber := errors.AsType[*strconv.NumError](err); isNumber && errors.As(err, &value) {
		use.err = fmt.Errorf("--%s takes a number, and %q is none that it can be", value.GetFlag().Name, value.GetValue())
	}
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "" {
		use.meant = flagsLike(cmd, unknown.GetSpecifiedName())
	}
	return use
}

// asksJSON says whether --json comes after what was wrong with a command line, so
// that nobody has read it.
func asksJSON(err error, args []string) bool {
	var use *usageError
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return errors.As(err, &use) && slices.Contains(args, "--json")
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

// settle has every command of the tree, those that cobra brings too, refuse what it
// does not take, and suggest what may have been meant.
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

// noneEmpty rejects a flag with an empty text, such as that of a shell's variable which is not set:
// that is no flag that was left out. Of an empty restore root the law has its own verdict where
// one is previewed or committed, RESTORE_TARGET_MISSING.
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
	})
	return err
}

// newHelp is cobra's command, with words that are no command refused.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND...]",
		Short: "show what a command does, and its flags",
		Args:  atLeast(0),
		RunE: func(cmd *cobra.Command, words []string) error {
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

// addCompletion adds cobra's command. It knows what the root has when it is made.
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
