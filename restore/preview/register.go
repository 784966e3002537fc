package preview

// maxConflicts is how many conflicts the page shows.
const maxConflicts = 500

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
	IDs  string // of its items
	Diff int    // the number of the item whose difference is shown, or 0
}

func registerOf(conflicts []conflict, diffs map[int]bool) register {
	r := register{Count: len(conflicts)}
	at := map[conflictType]int{}
	room := &budget{registerBytes}
	shown := 0
	for n := range conflicts {
		c := &conflicts[n]
		place, ok := at[c.Type]
		if !ok {
			place = len(r.Groups)
			at[c.Type] = place
			r.Groups = append(r.Groups, conflictGroup{Type: string(c.Type)})
		}
		g := &r.Groups[place]
		g.Count++
		if shown < maxConflicts && room.take(costOf(400, c.Path, c.Current, c.Claim, c.Authority, c.Risk, c.Resolution)) {
			g.Rows = append(g.Rows, conflictRow{c, idsOf(c), diffOf(c, diffs)})
			shown++
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
