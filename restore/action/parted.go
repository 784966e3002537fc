package action

import (
	"slices"
	"strings"
	"time"
)

// A Parted is a file that is restored as a new file for some of its names only: the others are
// not in the restored part, and keep the present file.
type Parted struct {
	Path  string // the first of the names that come back
	Names int    // that the file had
	Back  int    // that come back, as names of one file
}

// partedOf returns the files of several names that changes bring back with fewer, in the order of
// their paths.
func partedOf(changes []Change, left []Left, target comes) []Parted {
	type inode struct {
		dev, ino uint64
		birth    time.Time
	}
	back := map[inode]*Parted{}
	for _, c := range changes {
		stays := slices.ContainsFunc(left, func(l Left) bool { return l.Path == c.Path })
		if stays || c.Kind != Created && c.Kind != Replaced {
			continue
		}
		for _, e := range target(c.Path) {
			if e.Links < 2 || !e.Type.Kept() {
				continue
			}
			is := inode{e.Dev, e.Ino, e.BirthTime}
			if back[is] == nil {
				back[is] = &Parted{Path: e.Path, Names: int(e.Links)}
			}
			back[is].Back++
		}
	}
	var parted []Parted
	for _, p := range back {
		if p.Back < p.Names {
			parted = append(parted, *p)
		}
	}
	slices.SortFunc(parted, func(a, b Parted) int { return strings.Compare(a.Path, b.Path) })
	return parted
}
