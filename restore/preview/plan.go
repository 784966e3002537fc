package preview

import (
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/restore/statement"
)

// selection is the effect of a statement, as section 10 of the report prints it (protocol section 8.10). The
// recommended one is part of the decision block, so an approval is of this very selection.
type selection struct {
	statement   string // that approves it; "" when nothing can be restored
	restores    []int  // items
	secrets     []int  // items that it leaves out, since no statement names them
	taken       []int  // items that it leaves out, since their targets exist
	acknowledge []int  // conflicts
	reject      []int  // conflicts
	dropped     []int  // items that the operator leaves out
}

// exactSelection returns the selection of "exactly as proposed": all proposed items except possible secrets,
// which only a statement that names them restores. Items with blocked targets are included: the commit is
// then rejected.
func (d *deciding) exactSelection() selection {
	p := selection{
		statement: statement.Exactly,
		restores:  d.numbers(func(i *Item) bool { return d.proposes(i) && i.Scope != scope.RestrictedContext }),
		secrets:   d.numbers(func(i *Item) bool { return d.proposes(i) && i.Scope == scope.RestrictedContext }),
	}
	if len(p.restores) == 0 {
		p.statement = ""
		return p
	}
	p.acknowledge = d.undecided(p.restores)
	if named := d.byName(); len(named) > 0 {
		p.statement += " Acknowledge " + statement.FormatConflicts(named) + "."
	}
	return p
}

// recommendedSelection returns the safest selection: exactly what is proposed, or the items that are not
// blocked.
func (d *deciding) recommendedSelection() selection {
	exact := d.exactSelection()
	p := selection{secrets: exact.secrets}
	for _, n := range exact.restores {
		if d.items[n-1].IsFree() {
			p.restores = append(p.restores, n)
		} else {
			p.taken = append(p.taken, n)
		}
	}
	switch {
	case len(p.restores) == 0 || d.noRoomForResult() || d.lacksOutput(p.restores):
		return selection{secrets: exact.secrets, taken: p.taken}
	case len(p.taken) == 0:
		return exact
	}
	p.acknowledge = d.undecided(p.restores)
	d.choosePart(&p)
	return p
}

// lacksOutput reports whether the items are removals alone, and no proposed item is identical, which their
// bundle could include. No statement approves such items.
func (d *deciding) lacksOutput(items []int) bool {
	return !slices.ContainsFunc(items, func(n int) bool { return !d.items[n-1].Removed }) && !slices.ContainsFunc(d.in(proposed), canCarry)
}

// removesOnly reports whether all items of the proposal that are not blocked are such removals.
func (d *deciding) removesOnly() bool {
	free := slices.DeleteFunc(d.exactSelection().restores, func(n int) bool { return !d.items[n-1].IsFree() })
	return len(free) > 0 && d.lacksOutput(free)
}

// canCarry reports whether a bundle of removals can include a proposed item.
func canCarry(i Item) bool { return !i.Removed && i.Class == Identical }

// onlyRemovals is the reason why removals alone are not restored, and the fix.
const onlyRemovals = "a bundle needs at least one file beside its removals, and no proposed file of this candidate is already identical: " +
	"decide the conflict of one with --decide, or preview again with its --scope; or have the change set sealed again"

// readable is the length of a statement that people still read: three lines of a terminal. A statement up
// to that length names each item.
const readable = 240

// choosePart sets the statement for a part of the proposal: the list of its items or, if that is long, the
// shortest one that restores the same.
func (d *deciding) choosePart(p *selection) {
	acknowledged := ""
	if len(p.acknowledge) > 0 {
		acknowledged = " Acknowledge " + statement.FormatConflicts(p.acknowledge) + "."
	}
	p.statement = "Approved: restore items " + statement.FormatItems(p.restores) + " only." + acknowledged
	if len(p.statement) <= readable {
		return
	}
	rejected := d.rejectable(p)
	for _, of := range []struct {
		all string
		out []int // of those, the ones that are left out
	}{
		{statement.FormatItems(slices.Concat(p.restores, p.taken)), p.taken},
		{statement.FormatScopes(d.scopesOf(p.restores)), d.inScopesOf(p.taken, p.restores)},
	} {
		text := "Approved: restore " + of.all + " only."
		if strings.HasPrefix(of.all, "R-") {
			text = "Approved: restore items " + of.all + " only."
		}
		without := text + acknowledged
		if len(of.out) > 0 {
			without = text + " Do not restore items " + statement.FormatItems(of.out) + "." + acknowledged
		}
		if len(without) < len(p.statement) {
			p.statement, p.reject = without, nil
		}
		if reject := text + acknowledged + " Reject " + statement.FormatConflicts(rejected) + "."; len(rejected) > 0 && len(reject) < len(p.statement) {
			p.statement, p.reject = reject, rejected
		}
	}
}

// rejectable returns the conflicts whose rejection leaves out exactly the items with existing targets; none
// if conflicts do not cover all of these.
func (d *deciding) rejectable(p *selection) []int {
	var conflicts []int
	covered := map[int]bool{}
	for n := range d.conflicts {
		c := &d.conflicts[n]
		if c.Type == StateConflict && c.Decision == Undecided && len(c.Numbers) > 0 && !c.touches(p.restores) {
			conflicts = append(conflicts, n+1)
			for _, i := range c.Numbers {
				covered[i] = true
			}
		}
	}
	if slices.ContainsFunc(p.taken, func(n int) bool { return !covered[n] }) {
		return nil
	}
	return conflicts
}

func (d *deciding) scopesOf(items []int) []scope.Scope {
	var scopes []scope.Scope
	for _, n := range items {
		if s := d.items[n-1].Scope; !slices.Contains(scopes, s) {
			scopes = append(scopes, s)
		}
	}
	slices.SortFunc(scopes, scope.Compare)
	return scopes
}

// inScopesOf returns the items that are in a scope of any of the others.
func (d *deciding) inScopesOf(items, others []int) []int {
	scopes := d.scopesOf(others)
	return slices.DeleteFunc(slices.Clone(items), func(n int) bool { return !slices.Contains(scopes, d.items[n-1].Scope) })
}

// noRoomForResult reports whether an existing entry is at the name of a result artifact, which
// blocks every restore.
func (d *deciding) noRoomForResult() bool {
	return slices.ContainsFunc(d.conflicts, func(c Conflict) bool { return c.Type == StateConflict && len(c.Numbers) == 0 })
}

// undecided returns the numbers of the undecided conflicts that touch any of these items.
func (d *deciding) undecided(items []int) []int {
	var open []int
	for n := range d.conflicts {
		c := &d.conflicts[n]
		if c.Decision == Undecided && c.touches(items) {
			open = append(open, n+1)
		}
	}
	return open
}

// byName returns the numbers of the conflicts that every statement has to name.
func (d *deciding) byName() []int {
	var named []int
	for n := range d.conflicts {
		if d.conflicts[n].ByName {
			named = append(named, n+1)
		}
	}
	return named
}

// planText returns a plan in a sentence: what it restores, leaves out, replaces and removes, and which
// conflicts it acknowledges.
func (d *deciding) planText(p selection) string {
	var parts []string
	add := func(what string, list, why string) {
		if list != "" {
			parts = append(parts, what+" "+list+why)
		}
	}
	add("restore", statement.FormatItems(p.restores), "")
	add("leave out", statement.FormatItems(p.taken), ", whose targets exist and stay as they are")
	add("leave out", statement.FormatItems(p.dropped), ", as chosen")
	add("leave out", statement.FormatItems(p.secrets), ", which may hold secrets: only a statement that names each of them, or restricted context, restores them")
	add("retain", statement.FormatItems(d.numbers(func(i *Item) bool { return d.lists[i.Number-1] == reference })), " as reference only")
	add("do not restore", statement.FormatItems(d.numbers(func(i *Item) bool { return d.lists[i.Number-1] == unwanted })), "")
	if d.noRoomForResult() {
		advice := "move it away first."
		if slices.ContainsFunc(d.restore.Conflicts(), func(c restore.Conflict) bool { return restore.IsResult(c.Path) && d.isReplaceable(c) }) {
			advice = "preview again with --replace, or " + advice
		}
		return "restore nothing: " + restore.ManifestName + " or " + restore.ReportName + " already exists; " + advice
	}
	if len(p.restores) == 0 {
		nothing := "restore nothing"
		if d.removesOnly() {
			nothing += ", since " + onlyRemovals
		}
		parts = slices.Insert(parts, 0, nothing)
		return strings.Join(parts, "; ") + "."
	}
	parts = append(parts, d.replacedText(p)...)
	add("acknowledge", statement.FormatConflicts(p.acknowledge), "")
	add("reject", statement.FormatConflicts(p.reject), "")
	return strings.Join(parts, "; ") + "."
}

// partText returns the consequences of a plan that leaves out a part of the candidate; "" for other plans.
func (d *deciding) partText(p selection) string {
	if len(p.restores) == 0 || len(p.restores) == len(d.items) {
		return ""
	}
	return "This is a part of the candidate: it is sealed with your key as a derived bundle, and the derived bundle is restored. A view of the candidate shows more than is restored."
}
