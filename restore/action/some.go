package action

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/snapshot"
)

// ErrNothingThere reports that a snapshot has no entry at a path to be restored from it: the
// restore would only remove the present entry.
var ErrNothingThere = errors.New("the snapshot has no entry there that can be restored")

// narrowed returns a snapshot of only these paths. If the directory of a path is gone, the
// result has the first missing parent instead, without the names that were absent in it.
func narrowed(root *pathsafe.Dir, t *snapshot.Snapshot, paths []pathsafe.Path) (*snapshot.Snapshot, error) {
	chosen, err := Chosen(t, paths)
	if err != nil {
		return nil, err
	}
	absent := map[pathsafe.Path]bool{}
	for i, c := range chosen {
		e, err := t.At(c.Path)
		if err != nil {
			return nil, err
		}
		if absent[c.Path] = e.Type == snapshot.Absent; absent[c.Path] {
			continue
		}
		if chosen[i].From, err = firstMissing(root, c.Path); err != nil {
			return nil, err
		}
	}
	return t.Only(slices.DeleteFunc(slices.Clone(chosen), func(c snapshot.Chosen) bool {
		return absent[c.Path] && slices.ContainsFunc(chosen, func(made snapshot.Chosen) bool {
			return strings.HasPrefix(c.Path.String(), made.From.String()+"/")
		})
	})), nil
}

// Chosen returns the resolved paths in a snapshot, each once, and none that is beneath another
// one. For a directory of which the snapshot has only some names, it returns these, including
// absent ones. The error for a path that the snapshot does not have is [ErrNothingThere], or
// [snapshot.ErrNotCovered].
func Chosen(t *snapshot.Snapshot, paths []pathsafe.Path) ([]snapshot.Chosen, error) {
	real := make([]string, 0, len(paths))
	for _, p := range paths {
		e, err := t.At(p)
		if err != nil {
			return nil, err
		}
		if e.Type == snapshot.Absent || !e.Type.Kept() {
			return nil, fmt.Errorf("%q: %w", p, ErrNothingThere)
		}
		known := t.Known(e.Path)
		if len(known) == 0 {
			return nil, fmt.Errorf("path %q in snapshot %s: %w", p, t.ID(), snapshot.ErrNotCovered)
		}
		real = append(real, known...)
	}
	slices.Sort(real)
	real = slices.Compact(real)
	var chosen []snapshot.Chosen
	for _, path := range real {
		if slices.ContainsFunc(real, func(other string) bool { return strings.HasPrefix(path, other+"/") }) {
			continue
		}
		p, err := pathsafe.Found(path)
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, snapshot.Chosen{Path: p, From: p})
	}
	return chosen, nil
}

// errNoWay reports that the parent of a name is not a directory.
var errNoWay = machine.Disturbed("it is a parent of the path and no longer a directory; move it away first")

// firstMissing is the first name on the way to a path that is not there: the path itself if
// all the others are directories.
func firstMissing(root *pathsafe.Dir, p pathsafe.Path) (pathsafe.Path, error) {
	names := p.Components()
	for n := 1; n < len(names); n++ {
		at, err := pathsafe.Found(strings.Join(names[:n], "/"))
		if err != nil {
			return pathsafe.Path{}, err
		}
		st, err := standing(root, at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return at, nil
		case err != nil:
			return pathsafe.Path{}, err
		case !st.Mode.IsDir():
			return pathsafe.Path{}, fmt.Errorf("%q: %w", at, errNoWay)
		}
	}
	return p, nil
}
