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

// files writes the names of files on at most so many lines: those in conflict first.
func (p *painter) files(v *Preview, found *diffs, lines int) {
	groups := map[fate][]item{}
	for _, i := range slices.Concat(v.block.ReferenceOnly, v.block.DoNotRestore) {
		f := leftOutFate
		if i.isDiverged() {
			f = divergedFate
		}
		groups[f] = append(groups[f], i)
	}
	for _, i := range v.block.Items {
		groups[i.fate()] = append(groups[i.fate()], i)
	}
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

// name writes the line of a file or a directory.
func (p *painter) name(f fate, r *foldedRow, changes map[int]*difference) {
	var note string
	switch {
	case r.dir != nil:
		note = counted(r.dir.count, "file") + ", " + sizeText(r.dir.bytes)
	case r.item.Class == replaces && r.item.Before.ModeOnly:
		note = "mode " + r.item.Before.Mode + " to " + r.item.Mode
	case changes[r.item.number] != nil && changes[r.item.number].Why == "":
		change := changes[r.item.number]
		note = fmt.Sprintf("+%s -%s", digits(int64(change.Added)), digits(int64(change.Removed)))
	case r.item.Class == replaces:
		note = sizeText(r.item.Before.Bytes) + " to " + sizeText(r.item.Bytes)
	case r.item.Class == removes:
		note = sizeText(r.item.Before.Bytes)
	case r.item.Class == identical && r.item.removed:
		note = "gone already"
	case r.item.Class == identical && !r.item.free:
		note = "the same file is there, " + sizeText(r.item.Bytes)
	case (f == blockedFate || f == leftOutFate) && r.item.Reason != "":
		note = cutEnd(escaped(r.item.Reason), p.Columns/2)
	default:
		note = sizeText(r.item.Bytes)
	}
	if r.item != nil {
		note += "  " + r.item.ID
	}
	begin := heading(f.word)
	room := max(10, p.Columns-utf8.RuneCountInString(begin)-2-utf8.RuneCountInString(note))
	p.line(f.color, begin, cut(name(r.path), room)+"  "+note)
}
