package preview

import (
	"cmp"

	"github.com/spectrumfs/spectrum/restore/statement"
)

// register is section 6: the conflicts by type, in the order in which the first
// of each type is found.
type register struct {
	Groups []conflictGroup
	Count  int
	More   int // conflicts that are not shown
}

type conflictGroup struct {
	Type  string
	Count int
	Rows  []conflictRow
}

type conflictRow struct {
	*conflict
	Number string // of the conflict, or of several
	Name   string // what it is about
	IDs    string // of its items
	Diff   int    // the number of the item whose difference is shown, or 0
}

func registerOf(conflicts []registerRow, diffs map[int]bool) register {
	r := register{}
	at := map[conflictType]int{}
	room := &budget{registerBytes}
	shown := 0
	for _, row := range conflicts {
		c := row.first
		place, ok := at[c.Type]
		if !ok {
			place = len(r.Groups)
			at[c.Type] = place
			r.Groups = append(r.Groups, conflictGroup{Type: string(c.Type)})
		}
		g := &r.Groups[place]
		g.Count += len(row.numbers)
		r.Count += len(row.numbers)
		ids := short(row.numbers, "conflict", statement.FormatConflicts, conflictID)
		if room.take(costOf(400, ids, c.Path, c.Current, c.Claim, c.Authority, c.Risk, c.Resolution)) {
			g.Rows = append(g.Rows, conflictRow{c, ids, cmp.Or(row.name, name(c.Path)), idsOf(c), diffOf(c, diffs)})
			shown += len(row.numbers)
		}
	}
	r.More = r.Count - shown
	return r
}

func idsOf(c *conflict) string {
	if len(c.items) == 0 {
		return ""
	}
	return shortened(c.items)
}

func diffOf(c *conflict, diffs map[int]bool) int {
	if c.Type == stateConflict && len(c.items) == 1 && diffs[c.items[0]] {
		return c.items[0]
	}
	return 0
}
