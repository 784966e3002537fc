package report

import (
	"cmp"

	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/statement"
)

// register is section 6: the conflicts by type, in the order of the first of each type.
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
	*preview.Conflict
	Number string // of the conflict, or of several
	Name   string // see [preview.Conflict]
	IDs    string // of its items
	Diff   int    // the number of the item whose difference is shown, or 0
}

func registerOf(conflicts []registerRow, diffs map[int]bool) register {
	r := register{}
	at := map[preview.ConflictType]int{}
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
		ids := short(row.numbers, "conflict", statement.FormatConflicts, preview.ConflictID)
		if room.take(costOf(400, ids, c.Path, c.Current, c.Claim, c.Authority, c.Risk, c.Resolution)) {
			g.Rows = append(g.Rows, conflictRow{c, ids, cmp.Or(row.name, name(c.Path)), idsOf(c), diffOf(c, diffs)})
			shown += len(row.numbers)
		}
	}
	r.More = r.Count - shown
	return r
}

func idsOf(c *preview.Conflict) string {
	if len(c.Numbers) == 0 {
		return ""
	}
	return shortened(c.Numbers)
}

func diffOf(c *preview.Conflict, diffs map[int]bool) int {
	if c.Type == preview.StateConflict && len(c.Numbers) == 1 && diffs[c.Numbers[0]] {
		return c.Numbers[0]
	}
	return 0
}
