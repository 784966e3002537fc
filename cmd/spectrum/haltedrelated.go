package main

import (
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/action"
)

// knownRoots returns the restore roots of which the state directory has records. What cannot be read
// is not known.
func knownRoots(state *statedir.Dir) (all []action.Known) {
	known, _ := state.KnownRoots()
	for _, r := range known {
		all = append(all, action.Known{RootRef: action.RootRef{Name: r.Known, Path: r.Path}, ID: r.ID})
	}
	return all
}

// haltedRelated returns the halts of the restore roots that share directories with the one at a path.
func haltedRelated(state *statedir.Dir, name, path string) []*action.OverlapError {
	return action.HaltsOfOverlapping(action.RootRef{Name: name, Path: path}, knownRoots(state), state, state)
}
