package action

import (
	"maps"
	"slices"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
)

// A Change is what an undo or a restore does at a name, with all that is in it.
type Change struct {
	Path     string
	Kind     ChangeKind
	Old, New Content // the zero Content where there is nothing
}

// ChangeKind is the kind of a change.
type ChangeKind string

// The kinds of changes. If a directory stays and gets another mode, owner or other attributes,
// its entries have changes of their own.
const (
	Removed  ChangeKind = "remove"
	Created  ChangeKind = "create"
	Replaced ChangeKind = "replace"
	Adjusted ChangeKind = "metadata"
)

// Content is the type of the entry at a name, and its size. A file with several names counts
// once in Bytes.
type Content struct {
	Type  snapshot.Type
	Names int // with its own
	Files int // regular ones
	Bytes int64
}

// comes returns the entries that are restored at and beneath a path.
type comes func(path string) []snapshot.Entry

// changesOf returns what swaps do, in the order of the paths.
func changesOf(swaps []staging.Swap, before *snapshot.Snapshot, target comes) ([]Change, error) {
	all, swapped := map[string]Change{}, map[pathsafe.Path]bool{}
	for _, swap := range swaps {
		if _, stays := swap.New.(*staging.Metadata); !stays {
			swapped[swap.Path] = true
		}
	}
	for _, swap := range swaps {
		path := swap.Path.String()
		if m, stays := swap.New.(*staging.Metadata); stays {
			is := before.Tree(path)[0]
			if is.Mode != m.Mode || is.UID != m.UID || is.GID != m.GID || !slices.Equal(is.Xattrs(), m.Xattrs) {
				one := Content{Type: snapshot.Dir, Names: 1}
				all[path] = Change{Path: path, Kind: Adjusted, Old: one, New: one}
			}
			continue
		}
		if isBeneath(swapped, swap.Path) { // of a directory that is removed file by file
			continue
		}
		c := Change{Path: path, Kind: Created}
		if swap.Old != nil {
			c.Kind = Removed
			was, err := before.At(swap.Path) // which follows the links of then
			if err != nil {
				return nil, err
			}
			c.Old = contentOf(before.Tree(was.Path))
		}
		if swap.New != nil {
			if c.Kind == Removed {
				c.Kind = Replaced
			}
			c.New = contentOf(target(path))
		}
		all[path] = c
	}
	sorted := make([]Change, 0, len(all))
	for _, path := range slices.Sorted(maps.Keys(all)) {
		sorted = append(sorted, all[path])
	}
	return sorted, nil
}

// isBeneath reports whether one of the paths is a directory on the way to a path.
func isBeneath(paths map[pathsafe.Path]bool, path pathsafe.Path) bool {
	for up, ok := path.Parent(); ok; up, ok = up.Parent() {
		if paths[up] {
			return true
		}
	}
	return false
}

func contentOf(entries []snapshot.Entry) (c Content) {
	counted := map[string]bool{} // files of several names
	for i, e := range entries {
		if i == 0 {
			c.Type = e.Type
		}
		c.Names++
		if e.Type != snapshot.File {
			continue
		}
		c.Files++
		if !counted[e.First()] {
			c.Bytes += e.Size
		}
		counted[e.First()] = true
	}
	return c
}
