package report

import (
	"fmt"
	"strings"

	"github.com/spectrumfs/spectrum/internal/visible"
	"github.com/spectrumfs/spectrum/restore/preview"
)

// Limits of the tree of a page.
const (
	maxNesting = 32 // directories in one another; what is deeper is joined
	fewItems   = 60 // a tree of no more is open from the start
	fewTaken   = 20 // the way to conflicts is open if there are no more
)

// branch is a directory as the page shows it.
type branch struct {
	Name     string
	Count    string // of files beneath it, and their bytes
	Taken    string // the number of its files that are not free; "" for none
	Open     bool
	Branches []*branch
	Leaves   []leaf
	More     string // what is left out of it; "" for nothing
}

// leaf is an item as the page shows it.
type leaf struct {
	Number, Name, Size, Class, Label, Mode string

	Taken bool // the class is not "create"
	Diff  int  // its number when the difference is shown, or 0
}

// directory is a directory of items. Directories nest no deeper than maxNesting.
type directory struct {
	name  string
	dirs  []*directory
	index map[string]*directory
	files []entry
	count int
	bytes int64
	taken map[preview.Class]int
}

type entry struct {
	name string
	item *preview.Item
}

// treeOf returns the tree of items. Entries that do not fit are left out; the counts include all.
func treeOf(items []preview.Item, proposed bool, diffs map[int]bool, room *budget) *branch {
	top := newDirectory("")
	for n := range items {
		top.add(&items[n])
	}
	g := grower{diffs: diffs, room: room, proposed: proposed}
	taken := len(items) - top.taken[preview.Create]
	g.open = len(items) <= fewItems
	g.openTaken = taken <= fewTaken
	return g.branch(top)
}

func newDirectory(name string) *directory {
	return &directory{name: name, index: map[string]*directory{}, taken: map[preview.Class]int{}}
}

// add adds an item to its directory, and counts it in all directories above.
func (d *directory) add(i *preview.Item) {
	names := strings.SplitN(i.Path, "/", maxNesting)
	last := len(names) - 1
	d.note(i)
	for _, name := range names[:last] {
		next, ok := d.index[name]
		if !ok {
			next = newDirectory(name)
			d.index[name] = next
			d.dirs = append(d.dirs, next)
		}
		d = next
		d.note(i)
	}
	d.files = append(d.files, entry{names[last], i})
}

func (d *directory) note(i *preview.Item) {
	d.count++
	d.bytes += i.Bytes
	d.taken[i.Class]++
}

// joined returns a directory with the names of the directories that contain only it in front of its name.
func (d *directory) joined() (*directory, string) {
	name := d.name
	for len(d.files) == 0 && len(d.dirs) == 1 {
		d = d.dirs[0]
		name += "/" + d.name
	}
	return d, name
}

// grower makes branches as long as there is room.
type grower struct {
	diffs           map[int]bool
	room            *budget
	open, openTaken bool
	proposed        bool // the items are in the proposal
}

func (g *grower) branch(d *directory) *branch {
	b := &branch{Count: visible.Count(d.count, "file") + ", " + visible.Size(d.bytes), Taken: takenText(d), Open: g.open || g.openTaken && d.taken[preview.Create] < d.count}
	dirs, files := 0, 0
	for _, sub := range d.dirs {
		inner, path := sub.joined()
		if !g.room.take(costOf(160, path)) {
			break
		}
		next := g.branch(inner)
		next.Name = name(path + "/")
		b.Branches = append(b.Branches, next)
		dirs++
	}
	for _, f := range d.files {
		if !g.room.take(costOf(128, f.name)) {
			break
		}
		b.Leaves = append(b.Leaves, g.leaf(f))
		files++
	}
	b.More = leftOut(len(d.dirs)-dirs, len(d.files)-files)
	return b
}

func (g *grower) leaf(f entry) leaf {
	i := f.item
	l := leaf{i.ID, name(f.name), visible.Size(i.Bytes), string(i.Class), string(i.Label), i.Mode, i.Class != preview.Create, 0}
	if i.Class == preview.Removes {
		l.Size = visible.Size(i.Before.Bytes)
	}
	if !g.proposed && !i.IsDiverged() {
		l.Class = "not restored"
	}
	if g.diffs[i.Number] {
		l.Diff = i.Number
	}
	return l
}

// takenText returns the number of files of a directory that are not free, the worst first.
func takenText(d *directory) string {
	var parts []string
	for _, c := range []preview.Class{preview.Blocked, preview.Different, preview.Diverged, preview.Removes, preview.Replaces, preview.Identical} {
		if d.taken[c] > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", visible.Number(d.taken[c]), c))
		}
	}
	return strings.Join(parts, ", ")
}

func leftOut(dirs, files int) string {
	var parts []string
	switch {
	case dirs == 1:
		parts = append(parts, "1 more directory")
	case dirs > 1:
		parts = append(parts, visible.Number(dirs)+" more directories")
	}
	if files > 0 {
		parts = append(parts, visible.Count(files, "more file"))
	}
	return strings.Join(parts, ", ")
}
