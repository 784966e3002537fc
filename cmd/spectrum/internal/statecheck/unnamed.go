package statecheck

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/words"
	"github.com/spectrumfs/spectrum/internal/statedir"
)

// UnnamedRoots returns the names of the restore roots that have snapshots or savepoints and are not
// in roots.log: it was lost, cut or damaged. A store that is missing, or cannot be read, names
// none; other checks report it.
func UnnamedRoots(state *statedir.Dir) (map[string]bool, error) {
	unnamed, failed := map[string]bool{}, error(nil)
	see := func(root string) {
		isNamed, err := state.Names(root)
		if failed = cmp.Or(failed, err); !isNamed {
			unnamed[root] = true
		}
	}
	if _, err := state.Root().Lstat("snapshots"); !errors.Is(err, fs.ErrNotExist) {
		if store, err := Snapshots(state); err == nil {
			defer store.Close()
			for _, root := range store.RootNames() {
				see(root)
			}
		}
	}
	if _, err := state.Root().Lstat("savepoints"); !errors.Is(err, fs.ErrNotExist) && !allNamed(state) {
		if store, err := Savepoints(state); err == nil {
			defer store.Close()
			found, _ := store.Survey("")
			for _, sp := range slices.Concat(found.Standing, found.Retired) {
				see(sp.Root())
			}
		}
	}
	return unnamed, failed
}

// allNamed reports whether roots.log has the root of each directory of savepoints, so that none of these
// has to be read.
func allNamed(state *statedir.Dir) bool {
	place, err := state.Savepoints()
	if err != nil {
		return false
	}
	defer place.Close()
	keys, err := place.Names()
	return err == nil && !slices.ContainsFunc(keys, func(key string) bool { return state.RootOfKey(key) == "" })
}

// UnnamedError reports that roots.log does not have a root.
func UnnamedError(state *statedir.Dir, root string) error {
	return fmt.Errorf("the record of restore roots, %q, was lost or damaged: it does not have %q, which has a history", filepath.Join(state.Path(), statedir.RootsLog), root)
}

// RootFlaws are the restore roots that [UnnamedRoots] returns.
func RootFlaws(state *statedir.Dir) ([]Flaw, error) {
	unnamed, err := UnnamedRoots(state)
	if err != nil {
		return nil, err
	}
	flaws := make([]Flaw, 0, len(unnamed))
	for root := range unnamed {
		flaws = append(flaws, Flaw{
			Path: filepath.Join(state.Path(), statedir.RootsLog), What: UnnamedError(state, root).Error(),
			Remedy: fmt.Sprintf("\"spectrum recover %s\" writes it again; if the root was moved, name the path at which it is now", words.Shell(root)),
		})
	}
	slices.SortFunc(flaws, func(a, b Flaw) int { return cmp.Compare(a.What, b.What) })
	return flaws, nil
}
