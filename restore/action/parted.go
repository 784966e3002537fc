package action

import (
	"slices"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/restore/snapshot"
)

// A Parted is a file that is restored as a new file for some of its names only: the others are
// not in the restored part, and keep the present file.
type Parted struct {
	Path  string // the first of the names that come back
	Names int    // that the file had
	Back  int    // that come back, as names of one file
}

// partedOf returns the files of several names that come back with fewer among the restored entries, in
// the order of their paths.
func partedOf(restored []snapshot.Entry) []Parted {
	type inode struct {
		dev, ino uint64
		birth    time.Time
	}
	back := map[inode]*Parted{}
	for _, e := range restored {
		if e.Links < 2 || !e.Type.Kept() {
			continue
		}
		is := inode{e.Dev, e.Ino, e.BirthTime}
		if back[is] == nil {
			back[is] = &Parted{Path: e.Path, Names: int(e.Links)}
		}
		back[is].Back++
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
