package preview

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/restore/trust"
)

// verdict writes what the preview comes to.
func (p *painter) verdict(v *Preview) {
	word, text, color := v.outcome()
	p.row(bold, "Preview "+v.id[:shortID]+" ", "of "+v.sourceText())
	p.row(bold+";"+color, word+": ", text)
	p.row("", "", "")
}

// outcome is what the preview comes to, in a word and in a sentence.
func (p *Preview) outcome() (word, text, color string) {
	free, _ := p.unhindered()
	state, text := p.verdict(free)
	switch {
	case state == "quarantined":
		return "QUARANTINED", text, red
	case p.block.Totals.Proposed == 0:
		return "NOTHING PROPOSED", text, red
	case state == "nothing":
		return "BLOCKED", text, red
	case state == "part":
		return "IN PART", text, yellow
	case p.decided.isDone():
		return "NOTHING TO DO", "Every proposed file is there already.", yellow
	}
	return "READY", text, green
}

// shortID is how many digits of an identity are shown where all are not needed.
const shortID = 8

// isDone reports whether each proposed file is there, and stays as it is.
func (d *deciding) isDone() bool {
	return !slices.ContainsFunc(d.in(proposed), func(i item) bool { return i.Class != identical || !i.free })
}

// sourceText names the candidate.
func (p *Preview) sourceText() string {
	runs := p.block.Candidate.Runs
	last := "run " + name(runs[len(runs)-1].RunID)
	if title := p.block.Source.Title; title != unknown {
		last += ", " + escaped(title)
	}
	if len(runs) == 1 {
		return last
	}
	return fmt.Sprintf("a chain of %s, up to %s", counted(len(runs), "run"), last)
}

// Rows of one kind that a summary shows.
const (
	maxSigners   = 3
	maxHeld      = 3
	maxKinds     = 4
	maxNotes     = 3
	maxRunning   = 3
	shownOfValid = 16 // digits of a validator's id
)

// A glance is one row of what a preview comes to. Its text is safe to show.
type glance struct{ Name, Text, color string }

// facts writes what stands between the verdict and the names of files.
func (p *painter) facts(v *Preview) {
	p.line("", heading("to"), cut(name(v.block.Root.Real), maxRowLines*p.Columns-labelWidth)) // never broken, so that it can be copied
	for _, g := range v.glances(p.Free) {
		if g.Name == "conflicts" { // its end is whether the candidate is in quarantine
			p.rowOf(g.color, heading(g.Name), g.Text, maxRowLines)
			continue
		}
		p.row(g.color, heading(g.Name), g.Text)
	}
}

// kinds writes how conflicts are resolved, on so many lines if they are enough for one row of one line.
func (p *painter) kinds(kinds []string, room int) {
	shown := min(len(kinds), maxKinds)
	if p.isLow() {
		shown = min(shown, maxKinds/2)
	}
	end := p.height + room
	resolve := "resolve"
	for n, kind := range kinds[:shown] {
		left := end - p.height - (shown - n - 1) // each of the others has a line
		if n > 0 && end <= p.height {
			break
		}
		p.rowOf("", heading(resolve), kind, min(max(1, left), maxRowLines))
		resolve = ""
	}
	if len(kinds) > shown && p.height < end {
		p.rowOf("", heading(""), "and others", 1)
	}
}

// glances are what an operator must know before the conflicts and the names of files, in this
// order. A row without a name goes on with the one before. Free is as in [Screen].
func (p *Preview) glances(free uint64) []glance {
	b := &p.block
	size := sizeText(p.bytesToWrite()) + " to write"
	if free > 0 {
		size += ", " + sizeText(int64(free)) + " free"
	}
	rows := []glance{{"files", p.countsText(), ""}, {"size", size, ""}}
	for _, signer := range p.signers() {
		rows = append(rows, glance{"signed by", signer, ""})
	}
	rows = append(rows, glance{"conflicts", p.conflictsText(), ""})
	for n, f := range p.held {
		if n == maxHeld {
			rows = append(rows, glance{"", counted(len(p.held)-n, "more finding"), ""})
			break
		}
		rows = append(rows, glance{"quarantine", string(f.Rule) + ": " + escaped(f.Detail), red})
	}
	if runs := p.runsText(); runs != "" {
		rows = append(rows, glance{"can run", runs, yellow})
	}
	for _, warning := range append(slices.Clone(b.Root.Warnings), p.request.Warning) {
		if warning != "" {
			rows = append(rows, glance{"warning", escaped(warning), red})
		}
	}
	for _, note := range p.notes() {
		rows = append(rows, glance{"note", note, yellow})
	}
	return rows
}

// allGlances are those of the conflicts too, of which so many kinds are shown.
func (p *Preview) allGlances(free uint64, kinds int) []glance {
	rows, resolve := p.glances(free), "resolve"
	for n, kind := range kindsOfConflicts(p.block.Conflicts) {
		if n == kinds {
			return append(rows, glance{"", "and others", ""})
		}
		rows = append(rows, glance{resolve, kind, ""})
		resolve = ""
	}
	return rows
}

// countsText is the number of proposed files by what becomes of them, and of the others.
func (p *Preview) countsText() string {
	count := map[fate]int{}
	for n := range p.block.Items {
		count[p.block.Items[n].fate()]++
	}
	count[leftOutFate] = p.block.Totals.Files - p.block.Totals.Proposed
	for n := range p.block.DoNotRestore {
		if p.block.DoNotRestore[n].isDiverged() {
			count[leftOutFate]--
			count[divergedFate]++
		}
	}
	var parts []string
	for _, f := range fates {
		if count[f] > 0 {
			parts = append(parts, digits(int64(count[f]))+" "+f.counted)
		}
	}
	return strings.Join(parts, ", ")
}

// bytesToWrite is the content of the files that are created and replaced.
func (p *Preview) bytesToWrite() (bytes int64) {
	for n := range p.block.Items {
		if i := &p.block.Items[n]; i.Class == create || i.Class == replaces && !i.Before.ModeOnly {
			bytes += i.Bytes
		}
	}
	return bytes
}

// signers are the validators that signed the runs, with what the operator says of them, and
// when the last run was made.
func (p *Preview) signers() []string {
	var all []string
	for _, run := range p.block.Candidate.Runs {
		text := run.ValidatorID[:shownOfValid] + "… (" + standingText(run.Standing) + ")"
		if !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	if more := len(all) - maxSigners; more > 0 {
		all = append(all[:maxSigners], counted(more, "other"))
	}
	if completed, _ := completedOf(p.decided.plan); !completed.IsZero() {
		all[len(all)-1] += ", " + completed.UTC().Format("2006-01-02 15:04 UTC")
	}
	return all
}

// isPinned reports whether the operator has pinned the signers of all runs of the candidate.
func (p *Preview) isPinned() bool {
	return !slices.ContainsFunc(p.block.Candidate.Runs, func(r candidateRun) bool { return r.Standing != string(trust.Pinned) })
}

// Unknown returns the validators of the candidate if no validator is pinned, in chain order, at most as
// many as a summary shows.
func (p *Preview) Unknown() []string {
	var all []string
	for _, run := range p.block.Candidate.Runs {
		if run.Standing == string(trust.Unknown) && !slices.Contains(all, run.ValidatorID) && len(all) < maxSigners {
			all = append(all, run.ValidatorID)
		}
	}
	return all
}

func standingText(standing string) string {
	switch standing {
	case string(trust.Pinned):
		return "pinned"
	case string(trust.Own):
		return "this host"
	}
	return "not pinned"
}

// conflictsText counts the conflicts, and reports whether the candidate is in quarantine.
func (p *Preview) conflictsText() string {
	all, open := len(p.block.Conflicts), len(p.decided.pendingConflicts())
	text, acknowledged, types := "none", 0, p.typesText()
	if len(p.held) == 0 {
		acknowledged = len(p.decided.recommendedPlan().acknowledge)
	}
	switch {
	case all > 0 && open == 0:
		text = types + ", all decided"
	case all > 0 && open == acknowledged:
		text = types + ", which the approval acknowledges"
	case all > 0:
		text = fmt.Sprintf("%s, %s not decided", types, digits(int64(open)))
		if open == all {
			text = types + ", none decided"
		}
		if acknowledged > 0 {
			text += fmt.Sprintf("; the approval acknowledges %s", digits(int64(acknowledged)))
		}
	}
	switch {
	case len(p.held) > 0:
		return text + "; in quarantine"
	case len(p.block.Findings) > 0:
		return text + "; released from quarantine"
	}
	return text + "; not in quarantine"
}

// typesText counts the conflicts of each type, in the order of the register.
func (p *Preview) typesText() string {
	var order []conflictType
	count := map[conflictType]int{}
	for n := range p.block.Conflicts {
		c := p.block.Conflicts[n].Type
		if count[c]++; count[c] == 1 {
			order = append(order, c)
		}
	}
	var parts []string
	for _, c := range order {
		parts = append(parts, digits(int64(count[c]))+" "+strings.TrimSuffix(string(c), "_conflict"))
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return digits(int64(len(p.block.Conflicts))) + " (" + strings.Join(parts, ", ") + ")"
}

// kindsOfConflicts has a text for each type of conflict and each thing to do about it.
func kindsOfConflicts(conflicts []conflict) []string {
	type kind struct {
		is         conflictType
		resolution string // without the ids of items
	}
	var order []kind
	all := map[kind][]*conflict{}
	for n := range conflicts {
		c := &conflicts[n]
		k := kind{c.Type, itemIDs.ReplaceAllString(c.Resolution, "these files")}
		if all[k] == nil {
			order = append(order, k)
		}
		all[k] = append(all[k], c)
	}
	var texts []string
	for _, k := range order {
		first := all[k][0]
		ids, resolution := first.ID, first.Resolution
		if more := len(all[k]) - 1; more > 0 {
			ids, resolution = fmt.Sprintf("%s and %s more,", first.ID, digits(int64(more))), k.resolution
		}
		texts = append(texts, fmt.Sprintf("%s %s: %s", ids, k.is, escaped(strings.TrimSuffix(resolution, thenTrust))))
	}
	return texts
}

// itemIDs are the ids of items in a text.
var itemIDs = regexp.MustCompile(`\bR-\d+\b`)

// runsText names the proposed files that may run by themselves; "" for none.
func (p *Preview) runsText() string {
	var names []string
	for n := range p.block.Items {
		if i := &p.block.Items[n]; i.Runs != "" {
			names = append(names, name(i.Path))
		}
	}
	if more := len(names) - maxRunning; more > 0 {
		names = append(names[:maxRunning], counted(more, "other file"))
	}
	return strings.Join(names, ", ")
}

// openedTo names the files that are replaced by ones that more users may read, write or run.
func (p *Preview) openedTo() string {
	var names []string
	for n := range p.block.Items {
		if i := &p.block.Items[n]; i.opens {
			names = append(names, name(i.Path))
		}
	}
	if more := len(names) - maxRunning; more > 0 {
		names = append(names[:maxRunning], counted(more, "other file"))
	}
	return strings.Join(names, ", ")
}

// notes are what the report says of files that are replaced or removed.
func (p *Preview) notes() []string {
	var notes []string
	for n := range p.block.Items {
		if i := &p.block.Items[n]; i.takesAway() && i.Reason != "" {
			notes = append(notes, name(i.Path)+": "+escaped(i.Reason))
		}
	}
	if more := len(notes) - maxNotes; more > 0 {
		notes = append(notes[:maxNotes], "and of "+counted(more, "other file"))
	}
	return notes
}
