package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/internal/visible"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/restore/statement"
)

// maxRows is the number of runs in the report, and of rows in the tables of the page; the JSON has all.
const maxRows = 40

// writeScopes is section 2.
func (p *Report) writeScopes(out *reporter) {
	out.line("## 2. Restore Scope Detected\n")
	out.line("| Scope | Detected? | Proposed Action | Notes |\n|---|---:|---|---|")
	for _, r := range p.scopeRows() {
		out.row(r.Scope, r.Detected, r.Action, r.Notes)
	}
	out.line("")
}

// actionOf returns the action for the items of a scope: the label of most of them; of several, the first.
func (p *Report) actionOf(all []int) string {
	if len(all) == 0 {
		return "none"
	}
	counts := map[preview.Label]int{}
	best := p.items[all[0]-1].Label
	for _, n := range all {
		l := p.items[n-1].Label
		if counts[l]++; counts[l] > counts[best] {
			best = l
		}
	}
	return string(best)
}

func (p *Report) notesOf(s scope.Scope, all []int) string {
	if len(all) == 0 {
		return ""
	}
	in := 0
	for _, n := range all {
		if p.proposes(&p.items[n-1]) {
			in++
		}
	}
	asked := "requested"
	if !slices.Contains(p.Block.Scope, s) {
		asked = "not requested"
	} else if p.DefaultScopes {
		asked = "a default scope"
	}
	return fmt.Sprintf("%s of %s proposed; %s", visible.Number(in), visible.Count(len(all), "item"), asked)
}

// writeProposed is section 3.
func (p *Report) writeProposed(out *reporter) {
	out.line("## 3. Proposed Restorations\n")
	if len(p.Block.Items) == 0 {
		out.line("None.\n")
		return
	}
	out.line("| Restore ID | Item | Bytes | Scope | Why Restore | Risk | Label |\n|---|---|---:|---|---|---|---|")
	for _, g := range grouped(p.Block.Items) {
		i := g.first
		out.row(g.ids, g.name, visible.Number(g.bytes), string(i.Scope), whyOf(i), text(riskOf(i)), string(i.Label))
	}
	out.line("")
}

// whyOf returns the reason for an item.
func whyOf(i *preview.Item) string {
	if i.Reason != "" {
		return text(i.Reason)
	}
	if i.Removed {
		return "the candidate removes it, and its scope is requested"
	}
	return "the candidate has it, and its scope is requested"
}

// riskOf returns the risk of an item, also that every user may write a new file.
func riskOf(i *preview.Item) string {
	if isWritable(i) {
		return riskOfTarget(i) + "; every user may write it: mode " + i.Mode
	}
	return riskOfTarget(i)
}

func riskOfTarget(i *preview.Item) string {
	risk := "low: nothing is there"
	switch {
	case i.Class == preview.Replaces:
		risk = fmt.Sprintf("the existing file of %s is displaced; a rollback brings it back", visible.Count(i.Before.Bytes, "byte"))
	case i.Class == preview.Removes:
		risk = fmt.Sprintf("the existing file of %s is removed; a rollback brings it back", visible.Count(i.Before.Bytes, "byte"))
	case i.Class == preview.Identical && i.Removed:
		risk = "none: nothing is there"
	case i.IsDiverged():
		risk = "later changes here would be displaced"
	case i.Class == preview.Identical && i.IsFree():
		risk = "none: the same is there, and stays as it is"
	case i.Class == preview.Identical:
		risk = "identical, but its presence blocks the commit"
	case i.Class != preview.Create:
		risk = "the existing target blocks the commit"
	case i.Label == preview.PrivacyRestricted:
		risk = "a secret becomes readable beneath the restore root"
	case i.Label == preview.NeedsConfirmation:
		risk = "it decides what later work follows"
	case i.Runs != "":
		return "it may run by itself: " + i.Runs
	}
	if i.Runs != "" {
		risk += "; it may run by itself: " + i.Runs
	}
	return risk
}

// writeReference is section 4.
func (p *Report) writeReference(out *reporter) {
	out.line("## 4. Retain as Reference Only\n")
	p.writeList(out, p.Block.ReferenceOnly, "Why Reference Only")
}

// writeUnwanted is section 5.
func (p *Report) writeUnwanted(out *reporter) {
	out.line("## 5. Do Not Restore\n")
	p.writeList(out, p.Block.DoNotRestore, "Reason")
}

func (p *Report) writeList(out *reporter, items []preview.Item, why string) {
	if len(items) == 0 {
		out.line("None.\n")
		return
	}
	out.line("| Item | %s | Label |\n|---|---|---|", why)
	for _, g := range grouped(items) {
		out.row(g.ids+" "+g.name, text(g.first.Reason), string(g.first.Label))
	}
	out.line("")
}

// group is a row of a table of items: one item, or all similar items that are identical to existing files.
// Every other item has a row with its name.
type group struct {
	ids   string
	name  string
	bytes int64
	first *preview.Item
}

// grouped returns the rows of a table.
func grouped(items []preview.Item) []group {
	type key struct {
		label  preview.Label
		scope  scope.Scope
		reason string
	}
	same := map[key][]*preview.Item{}
	for n := range items {
		if i := &items[n]; isSame(i) {
			k := key{i.Label, i.Scope, i.Reason}
			same[k] = append(same[k], i)
		}
	}
	rows := make([]group, 0, len(items))
	for n := range items {
		i := &items[n]
		alike := same[key{i.Label, i.Scope, i.Reason}]
		if !isSame(i) || len(alike) == 1 {
			rows = append(rows, group{i.ID, Quote(i.Path), i.Bytes, i})
			continue
		}
		if alike[0] != i {
			continue
		}
		row := group{first: i, name: visible.Count(len(alike), "identical file")}
		var numbers []int
		for _, other := range alike {
			numbers = append(numbers, other.Number)
			row.bytes += other.Bytes
		}
		row.ids = statement.FormatItems(numbers)
		rows = append(rows, row)
	}
	return rows
}

// isSame reports whether an item already exists, byte for byte, and need not be named for another reason.
func isSame(i *preview.Item) bool {
	return i.Class == preview.Identical && !i.Removed && i.Runs == "" && !i.Follow && i.Scope != scope.RestrictedContext && !isHidden(i.Path)
}

// isHidden reports whether a listing would hide or alter a path.
func isHidden(path string) bool {
	return strings.HasPrefix(path, ".") || strings.Contains(path, "/.") || escaped(path) != path
}

// shortened returns the IDs of items. If that is long, it returns their number, the first and the last, and
// not a range, which would include others.
func shortened(numbers []int) string {
	return short(numbers, "item", statement.FormatItems, preview.ItemID)
}

func short(numbers []int, noun string, format func([]int) string, id func(int) string) string {
	const most = 2000
	if names := format(numbers); len(names) <= most {
		return names
	}
	return fmt.Sprintf("%s, the first %s and the last %s", visible.Count(len(numbers), noun), id(numbers[0]), id(numbers[len(numbers)-1]))
}

// writeConflicts is section 6.
func (p *Report) writeConflicts(out *reporter) {
	out.line("## 6. Conflict Register\n")
	if len(p.Block.Conflicts) == 0 {
		out.line("None.\n")
		return
	}
	out.line("| Conflict ID | Type | Item | Current State | Savepoint Claim | Authority Comparison | Risk | Recommended Resolution | Operator Decision |")
	out.line("|---|---|---|---|---|---|---|---|---|")
	for _, g := range p.conflictRows() {
		c := g.first
		out.row(statement.FormatConflicts(g.numbers), string(c.Type), cmp.Or(g.name, Quote(c.Path)), text(c.Current), text(c.Claim), text(c.Authority), text(c.Risk), text(c.Resolution), c.Decision)
	}
	out.line("")
}

// registerRow is a row of the register: one conflict, or all conflicts on identical files with the same
// decision.
type registerRow struct {
	numbers []int  // of the conflicts
	name    string // "" for the path of the conflict
	first   *preview.Conflict
}

func (p *Report) conflictRows() []registerRow {
	var rows []registerRow
	same := map[string][]int{} // numbers of conflicts, by decision
	sameOf := func(c *preview.Conflict) bool {
		return c.Type == preview.StateConflict && len(c.Numbers) == 1 && isSame(&p.items[c.Numbers[0]-1])
	}
	for n := range p.Block.Conflicts {
		if c := &p.Block.Conflicts[n]; sameOf(c) {
			same[c.Decision] = append(same[c.Decision], n+1)
		}
	}
	for n := range p.Block.Conflicts {
		c := &p.Block.Conflicts[n]
		alike := same[c.Decision]
		switch {
		case !sameOf(c) || len(alike) == 1:
			rows = append(rows, registerRow{[]int{n + 1}, "", c})
		case alike[0] == n+1:
			all := *c
			all.Current, all.Resolution = "regular files, the same byte for byte", "leave these items out: they are there already"
			all.Numbers = nil
			for _, other := range alike {
				all.Numbers = append(all.Numbers, p.Block.Conflicts[other-1].Numbers...)
			}
			rows = append(rows, registerRow{alike, visible.Count(len(alike), "identical file"), &all})
		}
	}
	return rows
}

// writeApproval is section 9.
func (p *Report) writeApproval(out *reporter) {
	out.line("## 9. Operator Approval Needed\n")
	items := p.numbers(p.proposes)
	open := p.pendingConflicts()
	if len(items)+len(open) == 0 {
		out.line("None.\n")
		return
	}
	out.line("| Approval Item | Required Decision |\n|---|---|")
	if len(items) > 0 {
		out.row(statement.FormatItems(items), "approve / reject / modify")
	}
	for _, q := range p.questions() {
		out.row(statement.FormatConflicts(q.conflicts), q.choices)
	}
	out.line("\nTo change this, run preview again with another --scope or --decide.\n")
}

// question is a list of conflicts with the same possible decisions.
type question struct {
	conflicts []int
	choices   string
}

// questions returns the undecided conflicts, grouped by their possible decisions, in the order of the first of
// each group.
func (p *Report) questions() []question {
	var all []question
	for _, n := range p.pendingConflicts() {
		choices := choicesOn(&p.Block.Conflicts[n-1])
		at := slices.IndexFunc(all, func(q question) bool { return q.choices == choices })
		if at < 0 {
			at = len(all)
			all = append(all, question{choices: choices})
		}
		all[at].conflicts = append(all[at].conflicts, n)
	}
	return all
}

// choicesOn returns the possible decisions on a conflict. One about the whole candidate cannot be rejected.
func choicesOn(c *preview.Conflict) string {
	if c.ByName {
		return "acknowledge by number in the statement"
	}
	if c.Diverged {
		return "choose resolution: replace / keep"
	}
	if len(c.Numbers) == 0 {
		return "choose resolution: acknowledge / resolve"
	}
	return "choose resolution: acknowledge / resolve / reject"
}

// pendingConflicts returns the numbers of the undecided conflicts.
func (p *Report) pendingConflicts() []int {
	var open []int
	for n := range p.Block.Conflicts {
		if p.Block.Conflicts[n].Decision == preview.Undecided {
			open = append(open, n+1)
		}
	}
	return open
}

func firstRows[T any](list []T) []T { return list[:min(len(list), maxRows)] }
