package main

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spf13/cobra"
)

// This file has what commands without a preview do about a restore root that another
// unprivileged user can rename, or put another one in the place of: the operator names its
// real path, or nothing is done.

func foreignFlag(cmd *cobra.Command, foreign *[]string) {
	cmd.Flags().StringArrayVar(foreign, "foreign-root", nil, "real path of a restore root that another user can rename, to use this `directory` all the same")
}

// namedRoot is a restore root that was named, with its known path. A root that does not exist has
// the path of the command line.
func namedRoot(path string, foreign []string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	way, err := pathsafe.WayTo(abs)
	if err != nil || way.Missing {
		return abs, nil //nolint:nilerr // what leads nowhere has no other name
	}
	if len(way.Loose) == 0 {
		return way.Real, action.OtherRoot(way.Real, foreign)
	}
	if !slices.Contains(foreign, way.Real) {
		return "", &action.ForeignError{Path: abs, Real: way.Real, Owner: way.End.UID, Loose: way.Loose}
	}
	return way.Real, nil
}

// foreignHint is the next step after a [*action.ForeignError].
func foreignHint(e *action.ForeignError) string {
	if e.Unfinished {
		return fmt.Sprintf("\"spectrum recover --foreign-root %[1]s %[1]s\" recovers it, if that is the intended directory; then retry", shellQuote(e.Real))
	}
	return fmt.Sprintf("nothing was changed; if %[1]s is the intended directory, run this again with --foreign-root %[1]s", shellQuote(e.Real))
}

// foreignOption is what a command that is printed for a restore root needs, with a blank
// behind it: nothing where no other user can rename the root.
func foreignOption(root string) string {
	way, err := pathsafe.WayTo(root)
	if err != nil || len(way.Loose) == 0 {
		return ""
	}
	return "--foreign-root " + shellQuote(way.Real) + " "
}

// foreignDetails is what a program needs of it.
func foreignDetails(e *action.ForeignError) map[string]any {
	l := e.Loose[0]
	return map[string]any{
		"directory": jsonText(l.In), "item": jsonText(l.Path), "owner": l.Owner,
		"restore_root": jsonText(e.Real), "restore_root_owner": e.Owner,
	}
}
