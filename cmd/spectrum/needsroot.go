package main

import (
	"slices"

	"github.com/spectrumfs/spectrum/internal/statedir"
)

// askRoot makes the next steps of an error for a missing restore root: the command, of these words, with
// the known restore root that the working directory is in, or else with each one that fits.
func (a *app) askRoot(use *usageError, fits func(state *statedir.Dir, paths []string) []string, words ...string) {
	if here := a.knownHere(); here != "" {
		use.next = "for the restore root that this is in: " + a.commandLine(append(words, here)...)
		return
	}
	state, err := a.existingState()
	if err != nil {
		return
	}
	defer state.Close()
	var paths []string
	known, _ := state.KnownRoots() // what cannot be read is not named
	for _, r := range known {
		if !slices.Contains(paths, r.Path) {
			paths = append(paths, r.Path)
		}
	}
	slices.Sort(paths)
	for n, path := range fits(state, paths) {
		switch command := a.commandLine(append(slices.Clone(words), path)...); {
		case n == 0:
			use.next = "name the restore root: " + command
		case n < maxRoots:
			use.more = append(use.more, "or: "+command)
		case n == maxRoots:
			use.more = append(use.more, "\"spectrum status\" lists all restore roots that are known")
		}
	}
}

// allRoots fits every restore root.
func allRoots(_ *statedir.Dir, paths []string) []string { return paths }

// unfinishedRoots fits the restore roots in which something is unfinished or halted; all where nothing is.
func unfinishedRoots(state *statedir.Dir, paths []string) (found []string) {
	for _, path := range paths {
		name, err := nameOfRoot(state, path, true)
		if err != nil {
			continue
		}
		st := rootStatus{name: name, path: path}
		st.unended(state)
		if dir, err := st.open(); err == nil {
			st.look(dir)
			dir.Close()
		}
		if st.state != rootClean {
			found = append(found, path)
		}
	}
	if len(found) == 0 {
		return paths
	}
	return found
}
