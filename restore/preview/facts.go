package preview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/restore/trust"
)

// verdict writes what the preview comes to.
func (p *painter) verdict(v *Preview) {
	free, _ := v.unhindered()
	state, text := v.verdict(free)
	word, color := "READY", green
	switch {
	case state == "quarantined":
		word, color = "QUARANTINED", red
	case v.block.Totals.Proposed == 0:
		word, color = "NOTHING PROPOSED", red
	case state == "nothing":
		word, color = "BLOCKED", red
	case state == "part":
		word, color = "IN PART", yellow
	case v.decided.isDone():
		word, color, text = "NOTHING TO DO", yellow, "Every proposed file is there already."
	}
	p.row(bold, "Preview "+v.id[:shortID]+" ", "of "+v.sourceText())
	p.row("", "", "")
	p.row(bold+";"+color, word+": ", text)
	p.row("", "", "")
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
		p.row(g.color, heading(g.Name), g.Text)
	}
}

// glances are what an operator must know before the names of files, in this order; a row without
// a name goes on with the one before. Free is as in [Screen].
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
	for n, kind := range kindsOfConflicts(b.Conflicts) {
		if n == maxKinds {
			rows = append(rows, glance{"", "and others", ""})
			break
		}
		rows = append(rows, glance{"", kind, ""})
	}
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

// countsText is the number of proposed files by what becomes of them, and of the others.
func (p *Preview) countsText() string {
	count := map[fate]int{}
	for n := range p.block.Items {
		count[p.block.Items[n].fate()]++
	}
	count[leftOutFate] = p.block.Totals.Files - p.block.Totals.Proposed
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

func standingText(standing string) string {
	if standing == string(trust.Pinned) {
		return "pinned"
	}
	return "not pinned"
}

// conflictsText counts the conflicts, and says whether the candidate is in quarantine.
func (p *Preview) conflictsText() string {
	all, open := len(p.block.Conflicts), len(p.decided.pendingConflicts())
	text := "none"
	switch {
	case all > 0 && open == 0:
		text = digits(int64(all)) + ", all decided"
	case all > 0:
		text = fmt.Sprintf("%s, %s not decided", digits(int64(all)), digits(int64(open)))
		if open == all {
			text = digits(int64(all)) + ", none decided"
		}
		if n := len(p.decided.recommendedPlan().acknowledge); n > 0 && len(p.held) == 0 {
			text += fmt.Sprintf("; the approval acknowledges %s", digits(int64(n)))
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

// kindsOfConflicts has a text for each type of conflict, with what is recommended for the first
// of it.
func kindsOfConflicts(conflicts []conflict) []string {
	var kinds []string
	count := map[conflictType]int{}
	for n := range conflicts {
		count[conflicts[n].Type]++
	}
	for n := range conflicts {
		c := &conflicts[n]
		if count[c.Type] == 0 {
			continue
		}
		ids := c.ID
		if more := count[c.Type] - 1; more > 0 {
			ids = fmt.Sprintf("%s and %s more,", c.ID, digits(int64(more)))
		}
		kinds = append(kinds, fmt.Sprintf("%s %s: %s", ids, c.Type, escaped(c.Resolution)))
		count[c.Type] = 0
	}
	return kinds
}

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

// notes are what the report says of files that are replaced.
func (p *Preview) notes() []string {
	var notes []string
	for n := range p.block.Items {
		if i := &p.block.Items[n]; i.Class == replaces && i.Reason != "" {
			notes = append(notes, name(i.Path)+": "+escaped(i.Reason))
		}
	}
	if more := len(notes) - maxNotes; more > 0 {
		notes = append(notes[:maxNotes], "and of "+counted(more, "other file"))
	}
	return notes
}
