package snapshot

import (
	"errors"
	"slices"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// A Difference is a name at which two snapshots are not the same.
type Difference struct {
	Path     string
	Old, New Entry // Absent where nothing stood
	// What differs where both are of one type: "content", "mode", "owner", "time",
	// "attributes", "target", "hard links". Empty for others.
	What []string
}

// Compare returns what differs between two snapshots, as far as both of them cover it, in
// the order of the paths: what the newer one has that the older one has not, and the other
// way around. Names of the one with a scope that the other one does not cover are not
// compared, and returned too; nor are the times of directories, which change with the
// names in them.
func Compare(older, newer *Snapshot) (all []Difference, apart []string, err error) {
	scope, with := older, newer
	if older.header.Whole {
		scope, with = newer, older
	}
	if scope.header.Whole {
		return compareTrees(older.Tree(""), newer.Tree("")), nil, nil
	}
	for _, p := range scope.Scope() {
		is, err := with.covers(p)
		if err != nil {
			return nil, nil, err
		}
		if !is {
			apart = append(apart, p.String())
			continue
		}
		all = append(all, compareTrees(older.Tree(p.String()), newer.Tree(p.String()))...)
	}
	return all, apart, nil
}

// covers reports whether a snapshot has all that stood at a path, or that nothing did.
func (s *Snapshot) covers(p pathsafe.Path) (bool, error) {
	e, covered, err := s.at(p)
	if errors.Is(err, ErrNotCovered) || errors.Is(err, pathsafe.ErrEscape) {
		return false, nil
	}
	return (covered || e.Type == Absent) && e.Path == p.String(), err
}

// compareTrees compares entries that are in the order of their paths.
func compareTrees(old, now []Entry) (all []Difference) {
	for len(old) > 0 || len(now) > 0 {
		order := len(now) - len(old) // right where one of them is empty
		if len(old) > 0 && len(now) > 0 {
			order = comparePaths(old[0].Path, now[0].Path)
		}
		var d Difference
		if order <= 0 {
			d.Path, d.Old, old = old[0].Path, old[0], old[1:]
		}
		if order >= 0 {
			d.Path, d.New, now = now[0].Path, now[0], now[1:]
		}
		if d.compare() {
			all = append(all, d)
		}
	}
	return all
}

// compare notes what differs, and reports whether anything does.
func (d *Difference) compare() bool {
	if d.Old.Type == "" || d.Old.Type == Absent {
		d.Old = Entry{Path: d.Path, Type: Absent}
	}
	if d.New.Type == "" || d.New.Type == Absent {
		d.New = Entry{Path: d.Path, Type: Absent}
	}
	old, now := &d.Old, &d.New
	if old.Type != now.Type {
		return true
	}
	for _, c := range []struct {
		what string
		same bool
	}{
		{"content", old.Digest == now.Digest && old.Size == now.Size},
		{"target", old.Target == now.Target},
		{"mode", old.Mode == now.Mode || old.Type == Link},
		{"owner", old.UID == now.UID && old.GID == now.GID},
		{"time", old.ModTime.Equal(now.ModTime) || old.Type == Dir},
		{"attributes", slices.Equal(old.xattrs, now.xattrs)},
		{"hard links", old.First() == now.First()},
	} {
		if !c.same {
			d.What = append(d.What, c.what)
		}
	}
	return len(d.What) > 0
}
