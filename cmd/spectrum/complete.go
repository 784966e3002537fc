package main

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// completeWords sets the shell completion of every argument and flag of the tree, by its name in
// the usage line and the help: directories, files, and values that only the program knows.
func completeWords(cmd *cobra.Command) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		switch value, _ := pflag.UnquoteUsage(f); value {
		case "directory", "mountpoint":
			f.Annotations = map[string][]string{cobra.BashCompSubdirsInDir: {}}
		}
	})
	if !cmd.HasSubCommands() && cmd.ValidArgsFunction == nil {
		cmd.ValidArgsFunction = completionOf(cmd.Use)
	}
	for _, sub := range cmd.Commands() {
		completeWords(sub)
	}
}

// flagsOfUsage are the flags of a usage line, with their values; directories are
// the arguments that are directories.
var (
	flagsOfUsage = regexp.MustCompile(`--[a-z-]+ [A-Z_]+`)
	directories  = regexp.MustCompile(`\b(DIR|RUN_DIR|MOUNTPOINT|RESTORE_ROOT)\b`)
)

// completionOf is how the arguments of a usage line are completed.
func completionOf(usage string) cobra.CompletionFunc {
	arguments := flagsOfUsage.ReplaceAllString(usage, "")
	directive := cobra.ShellCompDirectiveNoFileComp
	switch {
	case directories.MatchString(arguments):
		directive = cobra.ShellCompDirectiveFilterDirs
	case strings.Contains(arguments, "OUTPUT"):
		directive = cobra.ShellCompDirectiveDefault
	}
	return func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return nil, directive
	}
}
