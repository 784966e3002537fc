package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// keysOf returns the keys that the table of a command may have, sorted; those of the root are for all
// commands.
func keysOf(of *cobra.Command) (keys []string) {
	flags := of.LocalNonPersistentFlags()
	if !of.HasParent() {
		flags = of.PersistentFlags()
	}
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && isAllowed(of, f.Name) {
			keys = append(keys, f.Name)
		}
	})
	return keys
}

// configHelp is the help about config files.
func configHelp(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString(`Config files set defaults of flags, in TOML:

  ~/.config/spectrum/config.toml   of this user (XDG_CONFIG_HOME)
  /etc/spectrum/config.toml        of the machine; the user's file overrides it

The command line overrides the environment, which overrides the files. With
SPECTRUM_CONFIG=FILE only that file is read, and none with SPECTRUM_CONFIG= (empty).
"spectrum doctor" checks the files. A table is named as its command:

  no-progress = true
  [snapshot.take]
  lock-timeout = "5m"

Keys by table:

`)
	for _, cmd := range allCommands(root) {
		words := strings.Fields(cmd.CommandPath())[1:]
		keys := keysOf(cmd)
		switch {
		case len(keys) == 0 || cmd.Hidden || len(words) > 0 && !configurable(cmd):
			continue
		case len(words) == 0:
			b.WriteString("  for all commands\n")
		default:
			fmt.Fprintf(&b, "  [%s]\n", strings.Join(words, "."))
		}
		for group := range slices.Chunk(keys, 4) {
			fmt.Fprintf(&b, "      %s\n", strings.Join(group, ", "))
		}
	}
	return b.String()
}
