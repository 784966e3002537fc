package review

import (
	"slices"
	"sort"
	"strings"

	"github.com/spectrumfs/spectrum/restore/preview/report"
)

// Limits of what is unfolded from the start.
const (
	fewItems  = 60 // a tree of no more is open,
	fewUrgent = 20 // and so is the way to items that replace or are in the way, if they are no more
)

// tree is the items by path, folded. Items are sorted once; a directory is a range of them, and
// only what is unfolded is laid out.
type tree struct {
	items []*report.Item  // by path
	kept  []*report.Item  // that pass the filter, by path
	open  map[string]bool // directories, by path with a slash at the end
	rows  []row
}

// row is a directory or a file of the tree.
type row struct {
	depth    int
	name     string // what the row adds to the path of the row that it is in
	path     string // of a directory with a slash at the end
	from, to int    // what is in it, in kept
	dir      bool
}

func newTree(items []report.Item) *tree {
	t := &tree{open: map[string]bool{}}
	for n := range items {
		t.items = append(t.items, &items[n])
	}
	slices.SortStableFunc(t.items, func(a, b *report.Item) int { return strings.Compare(a.Path, b.Path) })
	t.kept = t.items
	var urgent []*report.Item
	for _, i := range t.items {
		if i.Fate <= report.Replaced {
			urgent = append(urgent, i)
		}
	}
	switch {
	case len(t.items) <= fewItems:
		for _, i := range t.items {
			t.unfoldTo(i.Path)
		}
	case len(urgent) <= fewUrgent:
		for _, i := range urgent {
			t.unfoldTo(i.Path)
		}
	}
	t.layOut()
	return t
}

// first is the row to begin with: the first one in which a file changes, or is in the way.
func (t *tree) first() int {
	return max(0, slices.IndexFunc(t.rows, func(r row) bool {
		return slices.ContainsFunc(t.kept[r.from:r.to], func(i *report.Item) bool { return i.Fate <= report.Created })
	}))
}

// unfoldTo unfolds all directories on the way to a path.
func (t *tree) unfoldTo(path string) {
	for at := range path {
		if path[at] == '/' {
			t.open[path[:at+1]] = true
		}
	}
}

// filter keeps the items that pass.
func (t *tree) filter(pass func(*report.Item) bool) {
	t.kept = nil
	for _, i := range t.items {
		if pass(i) {
			t.kept = append(t.kept, i)
		}
	}
	t.layOut()
}

// layOut makes the rows anew.
func (t *tree) layOut() { t.rows = t.children(nil, 0, len(t.kept), "", 0) }

// children appends the rows of what is in a range beneath a directory.
func (t *tree) children(rows []row, from, to int, prefix string, depth int) []row {
	for from < to {
		path := t.kept[from].Path
		slash := strings.IndexByte(path[len(prefix):], '/')
		if slash < 0 {
			rows = append(rows, row{depth, path[len(prefix):], path, from, from + 1, false})
			from++
			continue
		}
		dir := path[:len(prefix)+slash+1]
		end := from + sort.Search(to-from, func(n int) bool { return !strings.HasPrefix(t.kept[from+n].Path, dir) })
		dir = commonDir(path, t.kept[end-1].Path)
		rows = append(rows, row{depth, dir[len(prefix):], dir, from, end, true})
		if t.open[dir] {
			rows = t.children(rows, from, end, dir, depth+1)
		}
		from = end
	}
	return rows
}

// commonDir is the directory that two paths have in common, with a slash at its end.
func commonDir(a, b string) string {
	n, last := min(len(a), len(b)), 0
	for at := 0; at < n && a[at] == b[at]; at++ {
		if a[at] == '/' {
			last = at + 1
		}
	}
	return a[:last]
}

// toggle folds a directory, or unfolds it.
func (t *tree) toggle(at int) {
	r := t.rows[at]
	if !r.dir {
		return
	}
	end := at + 1
	for end < len(t.rows) && t.rows[end].depth > r.depth {
		end++
	}
	if t.open[r.path] = !t.open[r.path]; t.open[r.path] {
		t.rows = slices.Insert(t.rows, at+1, t.children(nil, r.from, r.to, r.path, r.depth+1)...)
	} else {
		t.rows = slices.Delete(t.rows, at+1, end)
	}
}

// parent is the row of the directory that a row is in; itself at the top.
func (t *tree) parent(at int) int {
	for n := at - 1; n >= 0; n-- {
		if t.rows[n].depth < t.rows[at].depth {
			return n
		}
	}
	return at
}

// reveal unfolds the way to an item that is kept, and returns its row.
func (t *tree) reveal(path string) int {
	t.unfoldTo(path)
	t.layOut()
	return slices.IndexFunc(t.rows, func(r row) bool { return !r.dir && r.path == path })
}

// find returns the path of the next item after a row that fits, or before it; "" for none.
func (t *tree) find(at int, back bool, fits func(*report.Item) bool) string {
	n := len(t.kept)
	if n == 0 {
		return ""
	}
	here := 0
	step := 1
	if len(t.rows) > 0 {
		here = t.rows[at].from
		if t.rows[at].dir && !back {
			here-- // its contents follow
		}
	}
	if back {
		step = -1
	}
	for k := 1; k <= n; k++ {
		if i := t.kept[((here+step*k)%n+n)%n]; fits(i) {
			return i.Path
		}
	}
	return ""
}

// item is the file of a row; nil for a directory.
func (t *tree) item(at int) *report.Item {
	if at < 0 || at >= len(t.rows) || t.rows[at].dir {
		return nil
	}
	return t.kept[t.rows[at].from]
}
