package preview

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/restore/statement"
)

// maxRows is how many rows a table of the report has; longer lists of items are
// grouped by directory first. The JSON has all of them.
const maxRows = 40

// writeScopes is section 2.
func (p *Preview) writeScopes(out *reporter) {
	out.line("## 2. Restore Scope Detected\n")
	out.line("| Scope | Detected? | Proposed Action | Notes |\n|---|---:|---|---|")
	for _, r := range p.scopeRows() {
		out.row(r.Scope, r.Detected, r.Action, r.Notes)
	}
	out.line("")
}

// actionOf is what would be done with the items of a scope: the label that most
// of them have, in the order of section 7 when there are as many.
func (p *Preview) actionOf(all []int) string {
	if len(all) == 0 {
		return "none"
	}
	counts := map[label]int{}
	best := p.decided.items[all[0]-1].Label
	for _, n := range all {
		l := p.decided.items[n-1].Label
		if counts[l]++; counts[l] > counts[best] {
			best = l
		}
	}
	return string(best)
}

func (p *Preview) notesOf(s scope.Scope, all []int) string {
	if len(all) == 0 {
		return ""
	}
	in := 0
	for _, n := range all {
		if p.decided.proposes(&p.decided.items[n-1]) {
			in++
		}
	}
	asked := "asked for"
	if !slices.Contains(p.block.Scope, s) {
		asked = "not asked for"
	} else if len(p.request.Asked.Scopes) == 0 {
		asked = "a default scope"
	}
	return fmt.Sprintf("%d of %d items proposed; %s", in, len(all), asked)
}

// writeProposed is section 3.
func (p *Preview) writeProposed(out *reporter) {
	out.line("## 3. Proposed Restorations\n")
	if len(p.block.Items) == 0 {
		out.line("None.\n")
		return
	}
	out.line("| Restore ID | Item | Bytes | Scope | Why Restore | Risk | Label |\n|---|---|---:|---|---|---|---|")
	rows := grouped(p.block.Items)
	for _, g := range firstRows(rows) {
		i := g.first
		out.row(g.ids, g.name, strconv.FormatInt(g.bytes, 10), string(i.Scope), whyOf(i), riskOf(i), string(i.Label))
	}
	writeRest(out, len(rows), len(p.block.Items))
}

// whyOf is what an item does for its scope.
func whyOf(i *item) string {
	if i.Reason != "" {
		return text(i.Reason)
	}
	return "the candidate holds it, and the scope is wanted"
}

func riskOf(i *item) string {
	switch i.Class {
	case identical:
		return "none by content, but it stops the commit"
	case different, blocked:
		return "it stops the commit"
	}
	switch i.Label {
	case privacyRestricted:
		return "a secret becomes readable beneath the restore root"
	case needsConfirmation:
		return "it decides what later work follows"
	}
	return "low: nothing is there"
}

// writeReference is section 4.
func (p *Preview) writeReference(out *reporter) {
	out.line("## 4. Retain as Reference Only\n")
	p.writeList(out, p.block.ReferenceOnly, "Why Reference Only")
}

// writeUnwanted is section 5.
func (p *Preview) writeUnwanted(out *reporter) {
	out.line("## 5. Do Not Restore\n")
	p.writeList(out, p.block.DoNotRestore, "Reason")
}

func (p *Preview) writeList(out *reporter, items []item, why string) {
	if len(items) == 0 {
		out.line("None.\n")
		return
	}
	out.line("| Item | %s | Label |\n|---|---|---|", why)
	rows := grouped(items)
	for _, g := range firstRows(rows) {
		out.row(g.ids+" "+g.name, text(g.first.Reason), string(g.first.Label))
	}
	writeRest(out, len(rows), len(items))
}

// writeRest ends a table of items: it says what the rows leave out.
func writeRest(out *reporter, rows, items int) {
	if rows > maxRows {
		out.line("\n%d directories more.", rows-maxRows)
	}
	if items > maxRows {
		out.line("\n%d items in all; `--json` lists each of them.", items)
	}
	out.line("")
}

// group is a row of a table of items: one item, or many of one directory.
type group struct {
	ids   string
	name  string
	bytes int64
	first *item
}

// tooFew is how many rows of many items say nothing.
const tooFew = 4

// grouped makes rows: items that are few have one each; many are put together by
// directory, label and scope, as deep as there is room for, or one deeper where
// next to nothing would be left to look at.
func grouped(items []item) []group {
	if len(items) <= maxRows {
		rows := make([]group, 0, len(items))
		for n := range items {
			i := &items[n]
			rows = append(rows, group{i.ID, Quote(i.Path), i.Bytes, i})
		}
		return rows
	}
	deepest := 0
	for n := range items {
		deepest = max(deepest, strings.Count(items[n].Path, "/"))
	}
	rows := byDirectory(items, deepest)
	for len(rows) > maxRows && deepest > 0 {
		deepest--
		higher := byDirectory(items, deepest)
		if len(higher) < tooFew {
			break
		}
		rows = higher
	}
	return rows
}

// byDirectory puts items together that are alike and have their first components
// in common. Their order is that of the first of each.
func byDirectory(items []item, components int) []group {
	type key struct {
		dir   string
		label label
		scope scope.Scope
	}
	at := map[key]int{}
	var rows []group
	var numbers [][]int
	for n := range items {
		i := &items[n]
		k := key{top(path.Dir(i.Path), components), i.Label, i.Scope}
		row, ok := at[k]
		if !ok {
			row = len(rows)
			at[k] = row
			rows = append(rows, group{name: Quote(k.dir + "/"), first: i})
			numbers = append(numbers, nil)
		}
		rows[row].bytes += i.Bytes
		numbers[row] = append(numbers[row], i.number)
	}
	for n := range rows {
		rows[n].ids = shortened(numbers[n])
		rows[n].name += " (" + count(len(numbers[n]), "item") + ")"
	}
	return rows
}

// top is the beginning of a directory's name.
func top(dir string, components int) string {
	for n, c := range []byte(dir) {
		if c != '/' {
			continue
		}
		if components--; components == 0 {
			return dir[:n]
		}
	}
	if components <= 0 {
		return "."
	}
	return dir
}

// shortened names items, or the first and the last where that would be long.
func shortened(numbers []int) string {
	if names := statement.FormatItems(numbers); len(names) <= 60 {
		return names
	}
	return itemID(numbers[0]) + " … " + itemID(numbers[len(numbers)-1])
}

// writeConflicts is section 6.
func (p *Preview) writeConflicts(out *reporter) {
	out.line("## 6. Conflict Register\n")
	if len(p.block.Conflicts) == 0 {
		out.line("None.\n")
		return
	}
	out.line("| Conflict ID | Type | Item | Current State | Savepoint Claim | Authority Comparison | Risk | Recommended Resolution | Operator Decision |")
	out.line("|---|---|---|---|---|---|---|---|---|")
	for _, c := range firstRows(p.block.Conflicts) {
		out.row(c.ID, string(c.Type), Quote(c.Path), text(c.Current), text(c.Claim), text(c.Authority), text(c.Risk), text(c.Resolution), c.Decision)
	}
	out.more(len(p.block.Conflicts))
	out.line("")
}

// writeApproval is section 9.
func (p *Preview) writeApproval(out *reporter) {
	out.line("## 9. Operator Approval Needed\n")
	out.line("| Approval Item | Required Decision |\n|---|---|")
	fields, more := p.approvalFields()
	for _, f := range fields {
		out.row(f.Name, f.Value)
	}
	if more > 0 {
		out.line("\n%s more; `--json` lists all.", count(more, "conflict"))
	}
	out.line("\nTo modify is to make another preview, with other --scope or --decide.\n")
}

// choices are the decisions that the operator has: what is about the whole
// candidate cannot be left out of it.
func (c *conflict) choices() string {
	if c.byName {
		return "acknowledge by number in the statement"
	}
	if len(c.items) == 0 {
		return "choose resolution: acknowledge / resolve"
	}
	return "choose resolution: acknowledge / resolve / reject"
}

// pendingConflicts are the numbers of the conflicts that nobody has decided.
func (d *deciding) pendingConflicts() []int {
	var open []int
	for n := range d.conflicts {
		if d.conflicts[n].Decision == pending {
			open = append(open, n+1)
		}
	}
	return open
}

// count is a number of things in words.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}

func firstRows[T any](list []T) []T { return list[:min(len(list), maxRows)] }
