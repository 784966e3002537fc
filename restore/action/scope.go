package action

import (
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/staging"
)

// scopeOf returns the names that a commit makes in a root: for each file the first parent that
// does not exist yet, or the file. Names beneath are included.
func scopeOf(root *pathsafe.Dir, change *staging.Change) ([]pathsafe.Path, error) {
	var tops []pathsafe.Path
	last := ""
	for _, path := range sortedPaths(change.Swaps) {
		if last != "" && strings.HasPrefix(path.String(), last) {
			continue
		}
		top, err := topOf(root, path)
		if err != nil {
			return nil, err
		}
		tops = append(tops, top)
		last = top.String() + "/"
	}
	return tops, nil
}

func sortedPaths(swaps []staging.Swap) []pathsafe.Path {
	all := make([]pathsafe.Path, len(swaps))
	for i := range swaps {
		all[i] = swaps[i].Path
	}
	slices.SortFunc(all, func(a, b pathsafe.Path) int { return strings.Compare(a.String(), b.String()) })
	return all
}

func topOf(root *pathsafe.Dir, path pathsafe.Path) (pathsafe.Path, error) {
	site, err := root.Survey(path)
	if err != nil || site.Exists { // a conflict has its own words
		return path, err
	}
	return pathsafe.Parse(strings.Join(path.Components()[:site.Missing+1], "/"))
}
