package main

import (
	"cmp"
	"fmt"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/pathsafe"
)

// meantRoot returns the known restore root whose path differs from a missing one by a slip, or else
// such an existing directory; "" where there is none, or several are as near.
func meantRoot(state *statedir.Dir, path string) string {
	const longest = 512 // of the paths that are compared
	found, best := "", nearest+1
	paths, _ := state.RootPaths() // what cannot be read is not known
	for _, known := range paths {
		if len(path) > longest || len(known) > longest || known == found {
			continue
		}
		switch far := slipsBetween(path, known); {
		case far < best:
			found, best = known, far
		case far == best:
			found = ""
		}
	}
	if best > nearest {
		found = ""
	}
	return cmp.Or(found, nearPath(path))
}

// didYouMean puts the restore root that may be meant in the place of a missing one before a hint.
func didYouMean(state *statedir.Dir, path, hint string) string {
	if meant := meantRoot(state, path); meant != "" {
		return fmt.Sprintf("did you mean %s; %s", shellQuote(meant), hint)
	}
	return hint
}

// listsRoots is the next step where a restore root is not known.
const listsRoots = "\"spectrum status\" lists all roots"

// notKnown returns an error for a root that is not there, and of which nothing is kept.
func notKnown(state *statedir.Dir, root, what string) error {
	if way, err := pathsafe.WayTo(root); err == nil && way.Missing {
		return refusedHint(fmt.Errorf("%q does not exist, and no %s of it is known", root, what), didYouMean(state, root, listsRoots))
	}
	return nil
}
