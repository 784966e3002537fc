package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/internal/visible"
	"github.com/spectrumfs/spectrum/restore/preview"
)

// A class is what the restore does with a file.
type class struct {
	word    string // before its name
	counted string // after a number of files
	color   string
}

var (
	blockedClass   = class{"blocked", "blocked", red}
	conflictClass  = class{"conflict", "in conflict", red}
	divergedClass  = class{"diverged", "diverged", red}
	removeClass    = class{"remove", "to remove", yellow}
	replaceClass   = class{"replace", "to replace", yellow}
	createClass    = class{"create", "to create", green}
	identicalClass = class{"identical", "identical", dim}
	leftOutClass   = class{"left out", "left out", dim}
)

// classes are in the order of a summary.
var classes = []class{blockedClass, conflictClass, divergedClass, removeClass, replaceClass, createClass, identicalClass, leftOutClass}

// classOf returns the class of a proposed item.
func classOf(i *preview.Item) class {
	switch {
	case i.Class == preview.Create:
		return createClass
	case i.Class == preview.Replaces:
		return replaceClass
	case i.Class == preview.Removes:
		return removeClass
	case i.IsDiverged():
		return divergedClass
	case i.Class == preview.Identical && i.IsFree():
		return identicalClass
	case i.Class == preview.Blocked:
		return blockedClass
	}
	return conflictClass
}

// byClass are files by their class.
type byClass map[class][]preview.Item

// byFate returns all files of a preview by their class.
func (p *Report) byFate() byClass {
	groups := byClass{}
	for _, i := range slices.Concat(p.Block.ReferenceOnly, p.Block.DoNotRestore) {
		f := leftOutClass
		if i.IsDiverged() {
			f = divergedClass
		}
		groups[f] = append(groups[f], i)
	}
	for _, i := range p.Block.Items {
		f := classOf(&i)
		groups[f] = append(groups[f], i)
	}
	return groups
}

// acts reports whether a file of this class is created, replaced, removed or in conflict.
func (f class) acts() bool { return f != identicalClass && f != leftOutClass }

// The minimum numbers of lines for names of files that the restore acts on: for each class, and in total.
const (
	leastOfActs = 3
	mostOfActs  = 8
)

// leastOf returns the minimum number of lines for names: some for each class of files that the restore acts
// on, or one. Other files need none, since the facts have their number.
func (s Screen) leastOf(g byClass) int {
	lines, extra := 0, 0
	for _, f := range classes {
		if f.acts() && len(g[f]) > 0 {
			lines++
			extra += min(len(g[f]), leastOfActs) - 1
		}
	}
	if s.squeeze >= shortNames {
		extra = 0
	}
	return max(1, lines+min(extra, mostOfActs))
}

// files writes the names of files on at most the given number of lines: those in conflict first, and unchanged
// files last.
func (p *painter) files(groups byClass, found *diffs, lines int) {
	acting, others := 0, 0
	for _, f := range classes {
		switch {
		case len(groups[f]) == 0:
		case f.acts():
			acting++
		default:
			others++
		}
	}
	others = min(others, max(0, lines-p.leastOf(groups)))
	if acting == 0 {
		others = max(1, others)
	}
	changes := map[int]*difference{}
	for n := range found.List {
		changes[found.List[n].Number] = &found.List[n]
	}
	for _, f := range classes {
		switch {
		case len(groups[f]) == 0:
			continue
		case f.acts():
			acting--
		case others == 0:
			return
		default:
			others--
		}
		rows, more := fold(groups[f], max(1, lines-acting-others))
		named := 0
		for _, r := range rows {
			p.name(f, &r, changes)
			if r.dir == nil {
				named++
			}
		}
		if more > 0 {
			p.line(f.color, heading(f.word), visible.Count(more, "more file"))
		}
		if f.acts() && (len(rows) == 0 || len(groups[f]) <= leastOfActs && named < len(groups[f])) {
			p.isCut = true
		}
		lines -= len(rows) + min(more, 1)
	}
}

// A Folded is a file, or a directory with the number of its files. Path is escaped.
type Folded struct {
	Path  string
	IsDir bool
	Files int
}

// Fold returns files by their paths on at most the given number of lines: a line for each file, or for its
// directory. More is the number of files without a line.
func Fold(paths []string, lines int) (folded []Folded, more int) {
	items := make([]preview.Item, len(paths))
	for n, path := range paths {
		items[n].Path = path
	}
	rows, more := fold(items, lines)
	for _, r := range rows {
		folded = append(folded, Folded{name(r.path), r.dir != nil, r.count()})
	}
	return folded, more
}

// A foldedRow is a file, or a directory with the number of its files.
type foldedRow struct {
	path string
	dir  *directory // nil for a file
	item *preview.Item
}

// fold returns files on at most the given number of lines: a line for each file, or for its directory. It also
// returns the number of files without a line.
func fold(items []preview.Item, lines int) (rows []foldedRow, more int) {
	top := newDirectory("")
	for n := range items {
		top.add(&items[n])
	}
	rows = top.rows("")
	for len(rows) <= lines {
		best := -1
		var inside []foldedRow
		for n, r := range rows {
			if r.dir == nil {
				continue
			}
			if size := len(r.dir.dirs) + len(r.dir.files); len(rows)-1+size <= lines && (best < 0 || size < len(inside)) {
				best, inside = n, r.dir.rows(r.path)
			}
		}
		if best < 0 {
			break
		}
		rows = slices.Replace(rows, best, best+1, inside...)
	}
	if len(rows) <= lines {
		return rows, 0
	}
	for _, r := range rows[lines-1:] {
		more += r.count()
	}
	return rows[:lines-1], more
}

func (r *foldedRow) count() int {
	if r.dir == nil {
		return 1
	}
	return r.dir.count
}

// rows returns the entries of a directory, by path.
func (d *directory) rows(prefix string) []foldedRow {
	var rows []foldedRow
	for _, sub := range d.dirs {
		inner, path := sub.joined()
		rows = append(rows, foldedRow{path: prefix + path + "/", dir: inner})
	}
	for _, f := range d.files {
		rows = append(rows, foldedRow{path: prefix + f.name, item: f.item})
	}
	slices.SortFunc(rows, func(a, b foldedRow) int { return strings.Compare(a.path, b.path) })
	return rows
}

// name writes the line of a file or a directory, which is never broken. It takes the first note that leaves
// enough room for the name.
func (p *painter) name(f class, r *foldedRow, changes map[int]*difference) {
	notes := []string{p.note(f, r, changes)}
	switch {
	case r.dir != nil:
		if lines := r.dir.linesText(changes); lines != "" {
			count := visible.Count(r.dir.count, "file") + ", "
			notes = []string{count + lines + ", " + visible.Size(r.dir.bytes), count + lines, lines}
		} else {
			notes = append(notes, visible.Count(r.dir.count, "file"))
		}
	default:
		notes = []string{notes[0] + "  " + r.item.ID, notes[0], r.item.ID}
	}
	begin, path := heading(f.word), name(r.path)
	width := p.Columns - visible.Columns(begin) - 2
	note := notes[len(notes)-1]
	for _, n := range slices.Backward(notes) {
		if visible.Columns(n)+min(leastOfName, visible.Columns(path)) <= width {
			note = n
		}
	}
	p.line(f.color, begin, cut(path, max(leastOfName, width-visible.Columns(note)))+"  "+note)
}

// leastOfName is the minimum number of columns of a name.
const leastOfName = 16

// note returns the text after the name of a file or a directory.
func (p *painter) note(f class, r *foldedRow, changes map[int]*difference) string {
	if r.dir != nil {
		return visible.Count(r.dir.count, "file") + ", " + visible.Size(r.dir.bytes)
	}
	i := r.item
	switch change := changes[i.Number]; {
	case i.Class == preview.Replaces && i.Before.ModeOnly:
		return "mode " + i.Before.Mode + " to " + i.Mode
	case change != nil && change.Why == "":
		return linesOf(change.Added, change.Removed)
	case i.Class == preview.Replaces:
		return visible.Size(i.Before.Bytes) + " to " + visible.Size(i.Bytes)
	case i.Class == preview.Removes:
		return visible.Size(i.Before.Bytes)
	case i.Class == preview.Identical && i.Removed:
		return "gone already"
	case i.Class == preview.Identical && !i.IsFree():
		return "the same file is there, " + visible.Size(i.Bytes)
	case (f == blockedClass || f == leftOutClass) && i.Reason != "":
		return cutEnd(escaped(i.Reason), p.Columns/2)
	case i.Removed:
		return "a removal"
	}
	return visible.Size(i.Bytes)
}

func linesOf(added, removed int) string {
	return fmt.Sprintf("+%s -%s", visible.Number(added), visible.Number(removed))
}

// linesText returns the number of lines that change beneath a directory; "" if none were counted. If some
// files were not counted, it has the number of those that were.
func (d *directory) linesText(changes map[int]*difference) string {
	added, removed, compared := 0, 0, 0
	for _, i := range d.items(nil) {
		if change := changes[i.Number]; change != nil && change.Why == "" {
			added, removed, compared = added+change.Added, removed+change.Removed, compared+1
		}
	}
	switch text := linesOf(added, removed); {
	case compared == 0:
		return ""
	case compared < d.count:
		return text + " in " + visible.Number(compared)
	default:
		return text
	}
}

// items appends the files of a directory and of all beneath it.
func (d *directory) items(all []*preview.Item) []*preview.Item {
	for _, f := range d.files {
		all = append(all, f.item)
	}
	for _, sub := range d.dirs {
		all = sub.items(all)
	}
	return all
}
