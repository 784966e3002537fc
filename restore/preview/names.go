package preview

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// A fate is what becomes of a file.
type fate struct {
	word    string // before its name
	counted string // after a number of files
	color   string
}

var (
	blockedFate  = fate{"blocked", "blocked", red}
	conflictFate = fate{"conflict", "in conflict", red}
	divergedFate = fate{"diverged", "diverged", red}
	removeFate   = fate{"remove", "to remove", yellow}
	replaceFate  = fate{"replace", "to replace", yellow}
	createFate   = fate{"create", "to create", green}
	sameFate     = fate{"identical", "identical", dim}
	leftOutFate  = fate{"left out", "left out", dim}
)

// fates are in the order in which a summary has them.
var fates = []fate{blockedFate, conflictFate, divergedFate, removeFate, replaceFate, createFate, sameFate, leftOutFate}

// fate returns what becomes of a proposed item.
func (i *item) fate() fate {
	switch {
	case i.Class == create:
		return createFate
	case i.Class == replaces:
		return replaceFate
	case i.Class == removes:
		return removeFate
	case i.isDiverged():
		return divergedFate
	case i.Class == identical && i.free:
		return sameFate
	case i.Class == blocked:
		return blockedFate
	}
	return conflictFate
}

// fated are files by what becomes of them.
type fated map[fate][]item

// byFate has all files of a preview.
func (p *Preview) byFate() fated {
	groups := fated{}
	for _, i := range slices.Concat(p.block.ReferenceOnly, p.block.DoNotRestore) {
		f := leftOutFate
		if i.isDiverged() {
			f = divergedFate
		}
		groups[f] = append(groups[f], i)
	}
	for _, i := range p.block.Items {
		groups[i.fate()] = append(groups[i.fate()], i)
	}
	return groups
}

// changes reports whether a file of this fate is there, and is replaced, removed or in the way.
func (f fate) changes() bool {
	return f != createFate && f != sameFate && f != leftOutFate
}

// Lines that files which change have before anything else: each fate of them so many, and all
// together.
const (
	leastOfChanged = 3
	mostOfChanged  = 8
)

// least is how many lines the names need: a line for each fate, and some for what changes.
func (g fated) least() int {
	lines, extra := 0, 0
	for _, f := range fates {
		if len(g[f]) > 0 {
			lines++
		}
		if f.changes() {
			extra += min(max(0, len(g[f])-1), leastOfChanged-1)
		}
	}
	return lines + min(extra, mostOfChanged)
}

// files writes the names of files on at most so many lines: those in conflict first.
func (p *painter) files(groups fated, found *diffs, lines int) {
	left := 0
	for _, f := range fates {
		if len(groups[f]) > 0 {
			left++
		}
	}
	changes := map[int]*difference{}
	for n := range found.List {
		changes[found.List[n].Number] = &found.List[n]
	}
	for _, f := range fates {
		if len(groups[f]) == 0 {
			continue
		}
		left--
		rows, more := fold(groups[f], max(1, lines-left))
		for _, r := range rows {
			p.name(f, &r, changes)
		}
		if more > 0 {
			p.line(f.color, heading(f.word), counted(more, "more file"))
		}
		if len(rows) == 0 && f.changes() {
			p.isCut = true
		}
		lines -= len(rows) + min(more, 1)
	}
}

// A foldedRow is a file, or a directory of which only the number of files is shown.
type foldedRow struct {
	path string
	dir  *directory // nil for a file
	item *item
}

// fold shows files on at most so many lines: as many as fit have a line each, or their
// directory has one. It returns how many files have neither.
func fold(items []item, lines int) (rows []foldedRow, more int) {
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

// rows are the entries of a directory, by path.
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

// name writes the line of a file or a directory, which is never broken: of what is said of it the
// first that leaves some room for the name.
func (p *painter) name(f fate, r *foldedRow, changes map[int]*difference) {
	notes := []string{p.note(f, r, changes)}
	switch {
	case r.dir != nil:
		if lines := r.dir.linesText(changes); lines != "" {
			count := counted(r.dir.count, "file") + ", "
			notes = []string{count + lines + ", " + sizeText(r.dir.bytes), count + lines, lines}
		} else {
			notes = append(notes, counted(r.dir.count, "file"))
		}
	default:
		notes = []string{notes[0] + "  " + r.item.ID, notes[0], r.item.ID}
	}
	begin, path := heading(f.word), name(r.path)
	width := p.Columns - utf8.RuneCountInString(begin) - 2
	note := notes[len(notes)-1]
	for _, n := range slices.Backward(notes) {
		if utf8.RuneCountInString(n)+min(leastOfName, utf8.RuneCountInString(path)) <= width {
			note = n
		}
	}
	p.line(f.color, begin, cut(path, max(leastOfName, width-utf8.RuneCountInString(note)))+"  "+note)
}

// leastOfName is how many characters of a name are shown at least.
const leastOfName = 10

// note is what is said of a file or a directory.
func (p *painter) note(f fate, r *foldedRow, changes map[int]*difference) string {
	if r.dir != nil {
		return counted(r.dir.count, "file") + ", " + sizeText(r.dir.bytes)
	}
	i := r.item
	switch change := changes[i.number]; {
	case i.Class == replaces && i.Before.ModeOnly:
		return "mode " + i.Before.Mode + " to " + i.Mode
	case change != nil && change.Why == "":
		return linesOf(change.Added, change.Removed)
	case i.Class == replaces:
		return sizeText(i.Before.Bytes) + " to " + sizeText(i.Bytes)
	case i.Class == removes:
		return sizeText(i.Before.Bytes)
	case i.Class == identical && i.removed:
		return "gone already"
	case i.Class == identical && !i.free:
		return "the same file is there, " + sizeText(i.Bytes)
	case (f == blockedFate || f == leftOutFate) && i.Reason != "":
		return cutEnd(escaped(i.Reason), p.Columns/2)
	}
	return sizeText(i.Bytes)
}

func linesOf(added, removed int) string {
	return fmt.Sprintf("+%s -%s", digits(int64(added)), digits(int64(removed)))
}

// linesText counts the lines that change beneath a directory; "" where none were counted. Where
// that was not done in each file, it says in how many.
func (d *directory) linesText(changes map[int]*difference) string {
	added, removed, compared := 0, 0, 0
	for _, i := range d.items(nil) {
		if change := changes[i.number]; change != nil && change.Why == "" {
			added, removed, compared = added+change.Added, removed+change.Removed, compared+1
		}
	}
	switch text := linesOf(added, removed); {
	case compared == 0:
		return ""
	case compared < d.count:
		return text + " in " + digits(int64(compared))
	default:
		return text
	}
}

// items appends the files of a directory and of all beneath it.
func (d *directory) items(all []*item) []*item {
	for _, f := range d.files {
		all = append(all, f.item)
	}
	for _, sub := range d.dirs {
		all = sub.items(all)
	}
	return all
}
