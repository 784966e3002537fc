package action

import (
	"slices"

	"github.com/spectrumfs/spectrum/restore/snapshot"
)

// restoredBy returns the entries that changes bring, in the order of the changes.
func restoredBy(changes []Change, left []Left, target comes) (all []snapshot.Entry) {
	for _, c := range changes {
		stays := slices.ContainsFunc(left, func(l Left) bool { return l.Path == c.Path })
		if !stays && (c.Kind == Created || c.Kind == Replaced) {
			all = append(all, target(c.Path)...)
		}
	}
	return all
}
