package staging

import (
	"cmp"
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// copies holds how the files of a change get to their places. A file is staged at its own path
// below the staging directory, so its parents are made there, even if they exist beneath the
// root already. The unit of moving is a top: a whole new subtree, or a single file whose
// parent exists; each is a swap.
type copies struct {
	dirs  []copiedDir // each after its parent
	files []copiedFile
	order []int // the indexes of the files by rank, then path
}

// none is the index of a missing entry.
const none = -1

type copiedDir struct {
	path    pathsafe.Path
	top     int // the swap it moves with; none if it exists beneath the root
	created created
}

type copiedFile struct {
	File
	path    pathsafe.Path
	dir     int // none if it is a top-level name
	top     int // the swap it moves with
	created created
}

// A created is the state of an entry that this attempt makes. tried is set before the call
// that makes it, known when its identity was read.
type created struct {
	tried bool
	known bool
	id    pathsafe.ID
	born  time.Time
	size  int64 // bytes, or anySize
	// access is that of the new entry. For a directory among the copies that already exists beneath
	// the root it is that of the real directory.
	access access
	taken  *taken // of a file that replaces another one
}

// anySize is the size of directories and of files not yet whole.
const anySize = -1

// identity returns the identity of a created entry of type t, in the form that the journal has
// for a swap.
func (m *created) identity(t fs.FileMode) identity {
	return identityOf(pathsafe.Stat{ID: m.id, BirthTime: m.born, Mode: t})
}

func (m *created) see(st pathsafe.Stat, size int64) {
	m.known, m.id, m.born, m.size = true, st.ID, st.BirthTime, size
}

// is reports whether st describes the created entry. An inode number alone is not enough: ext4
// reuses it for the next file at once. The mount through which the entry is seen is ignored.
func (m *created) is(st pathsafe.Stat) bool {
	return m.known && m.id.Dev == st.ID.Dev && m.id.Ino == st.ID.Ino && m.born.Equal(st.BirthTime) && (m.size == anySize || m.size == st.Size)
}

// planFiles surveys the targets of the files and artifacts and plans the way there. The first
// target, in path order and files before artifacts, that is taken or cannot
// be reached is the error.
func (a *attempt) planFiles(c *Change) *Error {
	if err := checkNew(a.root, c.Absent); err != nil {
		return err
	}
	p := &a.copies
	var open []int // the directories on the way to the last file
	for i := range c.Swaps {
		f, is := c.Swaps[i].New.(*File)
		if !is {
			continue
		}
		path := c.Swaps[i].Path
		for len(open) > 0 && !below(path, p.dirs[open[len(open)-1]].path) {
			open = open[:len(open)-1]
		}
		open = p.addDirs(open, path)
		p.files = append(p.files, copiedFile{File: *f, path: path, dir: last(open), top: p.topOf(open)})
		if p.files[len(p.files)-1].top != none {
			continue
		}
		if err := a.addTop(len(p.files)-1, open, c.Swaps[i].Old); err != nil {
			return err
		}
	}
	p.order = p.byRank()
	a.addLeaving(c)
	tops := len(a.swaps)
	if err := a.addArtifacts(c); err != nil {
		return err
	}
	return a.checkClashes(a.swaps[:tops])
}

// checkNew rejects a directory that exists although it must not: the moved subtree would be
// merged into it.
func checkNew(root dir, paths []pathsafe.Path) *Error {
	for _, path := range paths {
		site, err := root.survey(path)
		if err != nil {
			return fail(StepBegin, path.String(), err)
		}
		if site.Exists {
			return fail(StepConflict, path.String(), errTaken)
		}
	}
	return nil
}

// byRank orders the indexes of files, which ascend by path already.
func (p *copies) byRank() []int {
	order := make([]int, len(p.files))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p.files[a].Rank, p.files[b].Rank) })
	return order
}

// addDirs plans the directories of path that are not open yet.
func (p *copies) addDirs(open []int, path pathsafe.Path) []int {
	chain := parents(path)
	top := p.topOf(open)
	for _, d := range chain[len(open):] {
		p.dirs = append(p.dirs, copiedDir{path: d, top: top})
		open = append(open, len(p.dirs)-1)
	}
	return open
}

// topOf returns the top that the innermost open directory moves with.
func (p *copies) topOf(open []int) int {
	if len(open) == 0 {
		return none
	}
	return p.dirs[open[len(open)-1]].top
}

// addTop finds the place of file i, and plans the move that takes it there. A file that
// replaces old is a top by itself; the existing file is checked with the other swaps.
func (a *attempt) addTop(i int, open []int, old *pathsafe.Stat) *Error {
	p := &a.copies
	path := p.files[i].path
	site, err := a.root.survey(path)
	if err != nil {
		return fail(StepBegin, path.String(), err)
	}
	n := len(a.swaps)
	p.files[i].top = n
	if old != nil {
		if !site.Exists {
			return fail(StepConflict, path.String(), errMissing)
		}
		a.swaps = append(a.swaps, swapping{path: path, since: phasePrepared, name: strconv.Itoa(n), live: old, hasOld: true, hasNew: true})
		return nil
	}
	if site.Exists {
		return fail(StepConflict, path.String(), errTaken)
	}
	top := path
	if site.Missing < len(open) {
		top = p.dirs[open[site.Missing]].path
		for _, d := range open[site.Missing:] {
			p.dirs[d].top = n
		}
	}
	a.swaps = append(a.swaps, swapping{path: top, since: phasePrepared, hasNew: true})
	return nil
}

// addLeaving plans the old entries that have no new entry in their place when the names are
// moved: removed files, and entries that artifacts replace, before anything else changes. Each
// is a swap of its own, with an old side only.
func (a *attempt) addLeaving(c *Change) {
	for i := range c.Swaps {
		s := &c.Swaps[i]
		_, artifact := s.New.(*Artifact)
		if s.Old != nil && (artifact || a.isCommit() && s.New == nil) {
			a.swaps = append(a.swaps, swapping{
				path: s.Path, since: phasePrepared, name: strconv.Itoa(len(a.swaps)), live: s.Old, hasOld: true, last: artifact,
			})
		}
	}
}

// addArtifacts surveys the targets of the artifacts, and sees that their
// directories will be there.
func (a *attempt) addArtifacts(c *Change) *Error {
	for i := range c.Swaps {
		artifact, is := c.Swaps[i].New.(*Artifact)
		if !is {
			continue
		}
		path := c.Swaps[i].Path
		site, err := a.root.survey(path)
		switch {
		case err != nil:
			return fail(StepBegin, path.String(), err)
		case site.Exists && c.Swaps[i].Old == nil:
			return fail(StepConflict, path.String(), errTaken)
		case !site.Exists && c.Swaps[i].Old != nil:
			return fail(StepConflict, path.String(), errMissing)
		case !site.Exists && site.Missing < depth(path)-1 && !a.copies.makes(parent(path)):
			return fail(StepBegin, path.String(), errors.New("its directory will not exist"))
		}
		a.swaps = append(a.swaps, swapping{path: path, since: phaseCommitted, name: strconv.Itoa(a.artifacts), hasNew: true, artifact: artifact})
		a.artifacts++
	}
	return nil
}

// makes reports whether the copies have the directory.
func (p *copies) makes(path pathsafe.Path) bool {
	_, found := p.find(path)
	return found
}

// find returns the index of a directory.
func (p *copies) find(path pathsafe.Path) (int, bool) {
	return slices.BinarySearchFunc(p.dirs, path, func(d copiedDir, path pathsafe.Path) int {
		return strings.Compare(d.path.String()+"/", path.String()+"/")
	})
}

// checkClashes rejects a file that is also a directory among the copies.
func (a *attempt) checkClashes(tops []swapping) *Error {
	for _, d := range a.copies.dirs {
		_, found := slices.BinarySearchFunc(a.copies.files, d.path, func(f copiedFile, path pathsafe.Path) int {
			return strings.Compare(f.path.String(), path.String())
		})
		if found {
			return fail(StepBegin, d.path.String(), errors.New("both a file and a directory"))
		}
	}
	return checkPlaces(a.root, tops)
}

// checkPlaces rejects two tops that a link beneath the root maps to the same place.
func checkPlaces(root dir, tops []swapping) *Error {
	type place struct {
		parent pathsafe.ID
		name   string
	}
	taken := make(map[place]bool, len(tops))
	var at pathsafe.Path
	st, err := root.statBelow(at)
	for _, t := range tops {
		if t.numbered() { // its directory is compared when it is swapped
			continue
		}
		if up := parent(t.path); err == nil && up != at {
			at = up
			st, err = root.statBelow(at)
		}
		if err != nil {
			return fail(StepBegin, t.path.String(), err)
		}
		here := place{st.ID, t.path.Base()}
		if taken[here] {
			return fail(StepConflict, t.path.String(), errors.New("a symbolic link resolves it to the path of another target"))
		}
		taken[here] = true
	}
	return nil
}

// parents returns the directories on the way to p, outermost first.
func parents(p pathsafe.Path) []pathsafe.Path {
	var chain []pathsafe.Path
	for up, ok := p.Parent(); ok; up, ok = up.Parent() {
		chain = append(chain, up)
	}
	slices.Reverse(chain)
	return chain
}

// parent returns the directory of p, the zero path for a top-level name.
func parent(p pathsafe.Path) pathsafe.Path {
	up, _ := p.Parent()
	return up
}

// depth is the number of components.
func depth(p pathsafe.Path) int {
	if p == (pathsafe.Path{}) {
		return 0
	}
	return strings.Count(p.String(), "/") + 1
}

func below(p, dir pathsafe.Path) bool {
	rest, ok := strings.CutPrefix(p.String(), dir.String())
	return ok && strings.HasPrefix(rest, "/")
}

func last(list []int) int {
	if len(list) == 0 {
		return none
	}
	return list[len(list)-1]
}
