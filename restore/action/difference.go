package action

import (
	"cmp"
	"errors"
	"io/fs"
	"path"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
	"golang.org/x/sys/unix"
)

// A difference is the change that gives a root the content of a snapshot: swaps of the names
// that differ, and of no others. Whatever the two snapshots agree in, or is made after the
// second one, stays as it is.
type difference struct {
	root           *pathsafe.Dir
	target, before *snapshot.Snapshot

	// apart are the first names, in the target, of files whose names are not all there as
	// they were: all of them are made again, as names of one file.
	apart map[string]bool

	changeable map[string]bool          // directories in which this user may change names, by their paths
	dirs       map[string]pathsafe.Stat // directories as they are now, by their paths

	restless []string // in before, which may not have them as they were
	swaps    []staging.Swap
	parts    []snapshot.Part // the new entries, under the numbers of their swaps
	stays    []staging.Swap  // of the metadata of directories that stay
	left     []Left
	told     string // what the last one that stays holds
}

// differenceOf compares two snapshots. Of a whole root its own metadata come back in any case:
// the work in it changes its time.
func differenceOf(root *pathsafe.Dir, target, before *snapshot.Snapshot) (*difference, error) {
	d := &difference{root: root, target: target, before: before}
	err := d.plan()
	slices.SortStableFunc(d.left, func(a, b Left) int { return cmp.Compare(a.Path, b.Path) })
	return d, err
}

func (d *difference) plan() error {
	d.restless = d.before.Restless()
	d.findApart()
	if d.target.Header().Whole {
		target, before := d.target.Tree(""), d.before.Tree("")
		if _, err := d.inside(target[1:], before[1:]); err != nil {
			return err
		}
		if d.deniedMeta(target[0], before[0]) {
			return d.something(before[0])
		}
		return d.gives(target[0])
	}
	for _, p := range d.target.Scope() {
		if err := d.inPlace(p); err != nil {
			return err
		}
		if _, err := d.name(d.target.Tree(p.String()), d.before.Tree(p.String())); err != nil {
			return err
		}
	}
	return d.something(d.before.Tree("")[0])
}

// something plans that the metadata of the root is set if there is no other change, so that
// the restore is recorded all the same.
func (d *difference) something(root snapshot.Entry) error {
	if len(d.swaps)+len(d.stays) > 0 {
		return nil
	}
	return d.gives(root)
}

// findApart compares which names are names of one file.
func (d *difference) findApart() {
	linked := map[string]bool{} // all names of files of the target that have several
	for e := range d.target.Entries() {
		if e.Hard != "" {
			linked[e.Hard], linked[e.Path] = true, true
		}
	}
	d.apart = map[string]bool{}
	if len(linked) == 0 {
		return
	}
	now := map[string]snapshot.Entry{}
	for e := range d.before.Entries() {
		if linked[e.Path] {
			now[e.Path] = e
		}
	}
	for e := range d.target.Entries() {
		if is := now[e.Path]; linked[e.Path] && (!e.Equal(is) || e.First() != is.First()) {
			d.apart[e.First()] = true
		}
	}
}

// inPlace requires that the directories on the way to a path are there when something is to
// come, and are no links.
func (d *difference) inPlace(p pathsafe.Path) error {
	e, err := d.target.At(p)
	if err != nil {
		return err
	}
	if up, nested := p.Parent(); nested && e.Type != snapshot.Absent {
		if _, err := standing(d.root, up); errors.Is(err, fs.ErrNotExist) {
			return &staging.Error{Step: staging.StepConflict, Path: p.String(), Err: err}
		}
	}
	_, err = standing(d.root, p)
	nothing := errors.Is(err, unix.ENOTDIR) || errors.Is(err, pathsafe.ErrSymlink)
	if errors.Is(err, fs.ErrNotExist) || nothing && e.Type == snapshot.Absent {
		return nil
	}
	return err
}

// standing describes the entry at a path without links in its parents.
func standing(root *pathsafe.Dir, path pathsafe.Path) (pathsafe.Stat, error) {
	names := path.Components()
	last := len(names) - 1
	dir, err := root.Reopen()
	for _, name := range names[:last] {
		if err != nil {
			return pathsafe.Stat{}, err
		}
		above := dir
		dir, err = above.OpenDir(name)
		above.Close()
	}
	if err != nil {
		return pathsafe.Stat{}, err
	}
	defer dir.Close()
	return dir.Lstat(names[last])
}

// A tree is an entry and, if it is one of a directory, everything in it; or nothing.
type tree = []snapshot.Entry

// inside compares the entries of a directory that stays, and reports whether a name in it is
// swapped.
func (d *difference) inside(target, before tree) (swapped bool, err error) {
	for len(target) > 0 || len(before) > 0 {
		var then, now tree
		order := cmp.Compare(len(before), len(target)) // of one that is empty
		if len(target) > 0 && len(before) > 0 {
			order = cmp.Compare(path.Base(target[0].Path), path.Base(before[0].Path))
		}
		if order <= 0 {
			then, target = first(target)
		}
		if order >= 0 {
			now, before = first(before)
		}
		is, err := d.name(then, now)
		if err != nil {
			return false, err
		}
		swapped = swapped || is
	}
	return swapped, nil
}

// first splits the entries of a directory into the tree of the first name, and the rest.
func first(in tree) (one, rest tree) {
	dir := in[0].Path + "/"
	n := 1 + sort.Search(len(in)-1, func(i int) bool { return !strings.HasPrefix(in[1+i].Path, dir) })
	return in[:n], in[n:]
}

// name compares the earlier and the present entry of a name, and reports whether it is
// swapped.
func (d *difference) name(then, now tree) (swapped bool, err error) {
	switch {
	case len(then) == 0 && len(now) == 0, d.odd(then, now):
		return false, nil
	case len(then) == 0:
		return d.goes(now)
	case len(now) == 0 && (d.fixedAbove(then[0].Path) || d.denied(then, now)):
		return false, nil
	case len(now) == 0:
		return true, d.swap(then, now)
	case then[0].Type == snapshot.Dir && now[0].Type == snapshot.Dir:
		inside, err := d.inside(then[1:], now[1:])
		if err == nil && (inside || !then[0].Equal(now[0])) && !d.deniedMeta(then[0], now[0]) {
			err = d.gives(then[0])
		}
		return false, err
	case then[0].Equal(now[0]) && then[0].First() == now[0].First() && !d.apart[then[0].First()]:
		return false, nil
	}
	if at := unkept(now); at != nil {
		d.leaveFor(now[0].Path, at)
		return false, nil
	}
	if d.fixed(now) || d.denied(then, now) {
		return false, nil
	}
	return true, d.swap(then, now)
}

// goes plans the removal of a later entry. A directory with an entry that no snapshot can hold
// stays.
func (d *difference) goes(now tree) (swapped bool, err error) {
	if d.held(now) {
		_, err = d.inside(nil, now[1:])
		return false, err
	}
	at := unkept(now)
	if at == nil {
		return d.allGoes(now)
	}
	if d.told != at.Path { // of the directories on the way to it the first is named
		d.told = at.Path
		d.leaveFor(now[0].Path, at)
	}
	_, err = d.inside(nil, now[1:])
	return false, err
}

// allGoes plans the removal of everything that a snapshot can hold, as far as it can be moved
// aside.
func (d *difference) allGoes(now tree) (swapped bool, err error) {
	if stuck := d.fixedIn(now); stuck != nil {
		d.leaveFixed(now[0].Path, *stuck)
		if strings.HasPrefix(stuck.path, now[0].Path+"/") {
			_, err = d.inside(nil, now[1:])
		}
		return false, err
	}
	if d.denied(nil, now) {
		return false, nil
	}
	return true, d.swap(nil, now)
}

// unkept is the first entry of something that no snapshot can hold; nil for none.
func unkept(now tree) *snapshot.Entry {
	if i := slices.IndexFunc(now, func(e snapshot.Entry) bool { return !e.Type.Kept() }); i >= 0 {
		return &now[i]
	}
	return nil
}

// swap plans that the earlier entry replaces the present one. A directory is removed name by
// name, so that entries that other processes make in it meanwhile are not moved with it.
func (d *difference) swap(then, now tree) error {
	tops := slices.Concat(then[:min(1, len(then))], now[:min(1, len(now))])
	p, err := pathsafe.Found(tops[0].Path)
	if err != nil {
		return err
	}
	swap := staging.Swap{Path: p, Last: isArtifact(p, tops)}
	for i, e := range slices.Backward(now) {
		st := e.Stat()
		old := staging.Swap{Old: &st, Empty: e.Type == snapshot.Dir, Unsure: slices.Contains(d.restless, e.First())}
		if i == 0 {
			swap.Old, swap.Empty, swap.Unsure = old.Old, old.Empty, old.Unsure
			break
		}
		if old.Path, err = pathsafe.Found(e.Path); err != nil {
			return err
		}
		old.Last = isArtifact(old.Path, []snapshot.Entry{e})
		d.swaps = append(d.swaps, old)
	}
	if len(then) > 0 {
		swap.New = staging.Tree{}
		d.parts = append(d.parts, snapshot.Part{Path: p, Name: strconv.Itoa(len(d.swaps)), Skip: d.skipped(then)})
	}
	d.swaps = append(d.swaps, swap)
	return nil
}

// isArtifact reports whether files at a path are, by their name, result artifacts. These are
// moved aside before anything else and appear last: a visible artifact means that the restore
// is complete.
func isArtifact(path pathsafe.Path, there []snapshot.Entry) bool {
	isDir := slices.ContainsFunc(there, func(e snapshot.Entry) bool { return e.Type == snapshot.Dir })
	return !isDir && (path.Base() == restore.ManifestName || path.Base() == restore.ReportName)
}

// same reports whether the plan changes nothing but the time of the root itself.
func (d *difference) same() bool {
	changes := func(s staging.Swap) bool {
		m, is := s.New.(*staging.Metadata), d.before.Tree(s.Path.String())[0]
		return is.Mode != m.Mode || is.UID != m.UID || is.GID != m.GID || !slices.Equal(is.Xattrs(), m.Xattrs) ||
			s.Path != (pathsafe.Path{}) && !is.ModTime.Equal(m.ModTime)
	}
	counts := func(l Left) bool { return !l.Held }
	return len(d.swaps) == 0 && !slices.ContainsFunc(d.left, counts) && !slices.ContainsFunc(d.stays, changes)
}

// gives plans that the metadata of a directory that stays is restored.
func (d *difference) gives(e snapshot.Entry) error {
	path, err := inRoot(e.Path)
	if err == nil {
		d.stays = append(d.stays, staging.Swap{Path: path, New: metadataOf(e)})
	}
	return err
}

// inRoot is the path of a directory in the root; "" is the root.
func inRoot(path string) (pathsafe.Path, error) {
	if path == "" {
		return pathsafe.Path{}, nil
	}
	return pathsafe.Found(path)
}

func metadataOf(e snapshot.Entry) *staging.Metadata {
	return &staging.Metadata{Mode: e.Mode, UID: e.UID, GID: e.GID, Xattrs: e.Xattrs(), ModTime: e.ModTime}
}
