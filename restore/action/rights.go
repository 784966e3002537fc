package action

import "github.com/spectrumfs/spectrum/restore/snapshot"

// restoredBy returns the entries that changes bring, in the order of the changes.
func restoredBy(changes []Change, left []Left, target comes) (all []snapshot.Entry) {
	stays := make(map[string]bool, len(left))
	for _, l := range left {
		stays[l.Path] = true
	}
	for _, c := range changes {
		if !stays[c.Path] && (c.Kind == Created || c.Kind == Replaced) {
			all = append(all, target(c.Path)...)
		}
	}
	return all
}
