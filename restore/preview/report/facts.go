package report

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/internal/visible"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/trust"
)

// verdict writes the result of the preview.
func (p *painter) verdict(v *Report) {
	word, text, color := v.outcome()
	p.row(bold, "Preview "+v.ID[:shortID]+" ", "of "+v.runText())
	p.rowOf(bold+";"+color, word+": ", text, wholeLines)
	p.gap()
}

// outcome returns the result of the preview in a word and in a sentence.
func (p *Report) outcome() (word, text, color string) {
	free, _ := p.unhindered()
	state, text := p.verdict(free)
	switch {
	case state == "quarantined":
		return "QUARANTINED", text, red
	case p.Block.Totals.Proposed == 0:
		return "NOTHING PROPOSED", text, red
	case state == "nothing":
		return "BLOCKED", text, red
	case state == "part":
		return "IN PART", text, yellow
	case p.IsDone():
		return "NOTHING TO DO", "Every proposed file is there already.", yellow
	}
	return "READY", text, green
}

// shortID is the number of digits of an abbreviated identity.
const shortID = 8

// IsDone reports whether each proposed file already exists and stays unchanged.
func (p *Report) IsDone() bool {
	return !slices.ContainsFunc(p.Block.Items, func(i preview.Item) bool { return i.Class != preview.Identical || !i.IsFree() })
}

// maxTaskShown is the number of characters of a signed task_id that a summary shows.
const maxTaskShown = 60

// runText returns the name of the candidate without its title, and the signed name if the directory of the
// run has another name.
func (p *Report) runText() string {
	runs := p.Block.Candidate.Runs
	newest := runs[len(runs)-1]
	last := "run " + name(newest.RunID)
	if newest.TaskID != strings.ToValidUTF8(newest.RunID, "\uFFFD") {
		task := []rune(newest.TaskID)
		if len(task) > maxTaskShown {
			task = append(task[:maxTaskShown-1], '…')
		}
		last += ", signed as " + visible.Quote(string(task))
	}
	if len(runs) == 1 {
		return last
	}
	return fmt.Sprintf("a chain of %s, up to %s", visible.Count(len(runs), "run"), last)
}

// titleText returns the signed title of the candidate, quoted; "" for none.
func (p *Report) titleText() string {
	if title := p.Block.Source.Title; title != preview.Unknown {
		return visible.Quote(title)
	}
	return ""
}

// Rows of one kind that a summary shows.
const (
	maxSigners   = 3
	maxHeld      = 3
	maxKinds     = 4
	maxNotes     = 3
	shownOfValid = 16 // digits of a validator's id
)

// A glance is one row of a summary. Its text is escaped.
type glance struct{ Name, Text, color string }

// facts writes the rows that are never left out.
func (p *painter) facts(v *Report) {
	p.line("", heading("to"), cut(name(v.Block.Root.Real), maxRowLines*p.Columns-labelWidth)) // one line, so that it can be copied
	if title := v.titleText(); title != "" {                                                  // one line, so that no line begins with a part of it
		if room := p.Columns - labelWidth; visible.Columns(title) > room {
			title = title[:visible.Within(title, room-visible.Columns(ellipsis)-1)] + ellipsis + "\""
		}
		p.line("", heading("title"), title)
	}
	for _, g := range v.mainGlances(p.Free) {
		p.rowOf(g.color, heading(g.Name), g.Text, wholeLines)
	}
	for _, g := range v.heldGlances() {
		p.rowOf(g.color, heading(g.Name), g.Text, p.linesOfHeld())
	}
}

// otherFacts writes the facts that fit above a line, and a row if there are more.
func (p *painter) otherFacts(v *Report, end int) {
	rows := v.otherGlances()
	for n, g := range rows {
		room := end - p.height - (len(rows) - n - 1) // each of the others has a line
		if room < 1 {
			p.isCut = true
			p.line("", "", "  … more in the full report")
			return
		}
		p.rowOf(g.color, heading(g.Name), g.Text, min(room, maxRowLines))
	}
}

// kinds writes the resolutions of conflicts within the given number of lines, if the first row of each type
// fits. Resolutions that do not fit are counted.
func (p *painter) kinds(kinds []resolved, room int) {
	firsts, more := firstsOf(kinds), 0
	end, others := p.height+room, max(0, maxKinds-firsts)
	resolve := "resolve"
	for _, k := range kinds {
		least := 0
		if k.first {
			least = p.leastOfKind()
			firsts--
		}
		left := end - p.height - firsts*p.leastOfKind()
		if len(kinds) > 1 && (others == 0 || firsts > 0 || more > 0) {
			left-- // for the number of others
		}
		if !k.first {
			if others == 0 || left < p.leastOfKind() {
				more++
				continue
			}
			others--
		}
		lines := min(max(least, left), maxRowLines)
		p.rowOf("", heading(resolve), k.within(lines, p.Columns-labelWidth), lines)
		resolve = ""
	}
	if more > 0 {
		p.line("", heading(""), fmt.Sprintf("and %s more: --report", visible.Number(more)))
	}
}

// leastOfKind returns the minimum number of lines of a resolution.
func (s Screen) leastOfKind() int {
	if s.Columns < narrow && s.squeeze < shortKinds {
		return 2
	}
	return 1
}

// linesOfHeld returns the maximum number of lines of a row about quarantine, secrets or other users.
func (s Screen) linesOfHeld() int {
	if s.squeeze < shortHeld {
		return maxRowLines
	}
	return 1
}

// narrow is the width below which one line is too short for a sentence.
const narrow = 60

// leastOfKinds returns the number of lines that the resolutions need: for the first of each type, and for the
// number of others.
func (s Screen) leastOfKinds(kinds []resolved) int {
	firsts := firstsOf(kinds)
	return firsts*s.leastOfKind() + min(1, len(kinds)-firsts)
}

func firstsOf(kinds []resolved) (n int) {
	for _, k := range kinds {
		if k.first {
			n++
		}
	}
	return n
}

// within returns the longest text that fits on the given number of lines, or the shortest if none fits.
func (k *resolved) within(lines, width int) string {
	for _, text := range []string{k.text, k.ids + ": " + k.resolution} {
		if len(broken(text, width)) <= lines {
			return text
		}
	}
	if width >= narrow {
		return k.ids + ": " + k.resolution
	}
	return strings.TrimSuffix(string(k.is), "_conflict") + ": " + k.resolution
}

// glances returns the rows before the conflicts and the names of files. A row without a name continues the
// previous one. Free is as in [Screen].
func (p *Report) glances(free uint64) []glance {
	return slices.Concat(p.mainGlances(free), p.heldGlances(), p.otherGlances())
}

// mainGlances returns the rows about written files, signers and conflicts.
func (p *Report) mainGlances(free uint64) []glance {
	size := visible.Size(p.bytesToWrite()) + " to write"
	if free > 0 {
		size += ", " + visible.Size(int64(free)) + " free"
	}
	rows := []glance{{"files", p.countsText(), ""}, {"size", size, ""}}
	for _, signer := range p.signers() {
		rows = append(rows, glance{"signed by", signer, ""})
	}
	return append(rows, glance{"conflicts", p.conflictsText(), ""})
}

// heldGlances returns the rows about possible secrets, the places of other users, and quarantine.
func (p *Report) heldGlances() (rows []glance) {
	if secrets := namesOf(p.secrets()); secrets != "" {
		rows = append(rows, glance{"secrets", secrets, yellow})
	}
	if others := p.othersText(); others != "" {
		rows = append(rows, glance{"others", others, red})
	}
	for n, f := range p.Held {
		if n == maxHeld {
			return append(rows, glance{"", visible.Count(len(p.Held)-n, "more finding"), ""})
		}
		rows = append(rows, glance{"quarantine", string(f.Rule) + ": " + escaped(f.Detail), red})
	}
	return rows
}

// otherGlances returns the rows about files that can run by themselves, warnings and notes.
func (p *Report) otherGlances() (rows []glance) {
	if runs := namesOf(p.running()); runs != "" {
		rows = append(rows, glance{"can run", runs, yellow})
	}
	if writable := namesOf(p.writable()); writable != "" {
		rows = append(rows, glance{"writable", "by every user: " + writable, yellow})
	}
	for _, warning := range append(slices.Clone(p.Block.Root.Warnings), p.Warning) {
		if warning != "" {
			rows = append(rows, glance{"warning", escaped(warning), red})
		}
	}
	for _, note := range p.notes() {
		rows = append(rows, glance{"note", note, yellow})
	}
	return rows
}

// allGlances returns the glances and the given number of resolutions of conflicts.
func (p *Report) allGlances(free uint64, kinds int) []glance {
	rows, resolve := p.glances(free), "resolve"
	for n, kind := range kindsOfConflicts(p.Block.Conflicts) {
		if n == kinds {
			return append(rows, glance{"", "and others", ""})
		}
		rows = append(rows, glance{resolve, kind.text, ""})
		resolve = ""
	}
	return rows
}

// countsText returns the number of files of each fate.
func (p *Report) countsText() string {
	count := map[class]int{}
	for n := range p.Block.Items {
		count[classOf(&p.Block.Items[n])]++
	}
	count[leftOutClass] = p.Block.Totals.Files - p.Block.Totals.Proposed
	for n := range p.Block.DoNotRestore {
		if p.Block.DoNotRestore[n].IsDiverged() {
			count[leftOutClass]--
			count[divergedClass]++
		}
	}
	var parts []string
	for _, f := range classes {
		if count[f] > 0 {
			parts = append(parts, visible.Number(count[f])+" "+f.counted)
		}
	}
	return strings.Join(parts, ", ")
}

// bytesToWrite returns the size of the files that are created and replaced.
func (p *Report) bytesToWrite() (bytes int64) {
	for n := range p.Block.Items {
		if i := &p.Block.Items[n]; i.Class == preview.Create || i.Class == preview.Replaces && !i.Before.ModeOnly {
			bytes += i.Bytes
		}
	}
	return bytes
}

// signers returns the validators of the runs with their standing in the trust policy, and the completion time
// of the last run.
func (p *Report) signers() []string {
	var all []string
	for _, run := range p.Block.Candidate.Runs {
		text := run.ValidatorID[:shownOfValid] + "… (" + statusText(run.Standing) + ")"
		if !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	if more := len(all) - maxSigners; more > 0 {
		all = append(all[:maxSigners], visible.Count(more, "other"))
	}
	if completed := p.Completed; !completed.IsZero() {
		all[len(all)-1] += ", " + completed.UTC().Format("2006-01-02 15:04 UTC")
	}
	return all
}

// isPinned reports whether the operator has pinned the signers of all runs of the candidate.
func (p *Report) isPinned() bool {
	return !slices.ContainsFunc(p.Block.Candidate.Runs, func(r preview.CandidateRun) bool { return r.Standing != string(trust.Pinned) })
}

// Unknown returns the validators of the candidate if no validator is pinned, in chain order, at most as
// many as a summary shows.
func (p *Report) Unknown() []string {
	var all []string
	for _, run := range p.Block.Candidate.Runs {
		if run.Standing == string(trust.Unknown) && !slices.Contains(all, run.ValidatorID) && len(all) < maxSigners {
			all = append(all, run.ValidatorID)
		}
	}
	return all
}

func statusText(status string) string {
	switch status {
	case string(trust.Pinned):
		return "pinned"
	case string(trust.Own):
		return "this host"
	}
	return "not pinned"
}

// conflictsText returns the number of conflicts, and whether the candidate is in quarantine.
func (p *Report) conflictsText() string {
	all, open := len(p.Block.Conflicts), len(p.pendingConflicts())
	text, acknowledged, types := "none", 0, p.typesText()
	if len(p.Held) == 0 {
		acknowledged = p.Acknowledged
	}
	switch {
	case all > 0 && open == 0:
		text = types + ", all decided"
	case all > 0 && open == acknowledged:
		text = types + ", which the approval acknowledges"
	case all > 0:
		text = fmt.Sprintf("%s, %s not decided", types, visible.Number(open))
		if open == all {
			text = types + ", none decided"
		}
		if acknowledged > 0 {
			text += fmt.Sprintf("; the approval acknowledges %s", visible.Number(acknowledged))
		}
	}
	switch {
	case len(p.Held) > 0:
		return text + "; in quarantine"
	case len(p.Block.Findings) > 0:
		return text + "; released from quarantine"
	}
	return text + "; not in quarantine"
}

// typesText returns the number of conflicts of each type, in the order of the register.
func (p *Report) typesText() string {
	var order []preview.ConflictType
	count := map[preview.ConflictType]int{}
	for n := range p.Block.Conflicts {
		c := p.Block.Conflicts[n].Type
		if count[c]++; count[c] == 1 {
			order = append(order, c)
		}
	}
	var parts []string
	for _, c := range order {
		parts = append(parts, visible.Number(count[c])+" "+strings.TrimSuffix(string(c), "_conflict"))
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return visible.Number(len(p.Block.Conflicts)) + " (" + strings.Join(parts, ", ") + ")"
}

// resolved is a type of conflict with one resolution, and the conflicts that have both.
type resolved struct {
	is              preview.ConflictType
	first           bool   // of its type
	ids, resolution string // safe to show
	text            string // all of it
}

// kindsOfConflicts returns each type of conflict with each of its resolutions.
func kindsOfConflicts(conflicts []preview.Conflict) []resolved {
	type kind struct {
		is         preview.ConflictType
		resolution string // without the ids of items
	}
	var order []kind
	all := map[kind][]*preview.Conflict{}
	for n := range conflicts {
		c := &conflicts[n]
		k := kind{c.Type, itemIDs.ReplaceAllString(c.Resolution, "these files")}
		if all[k] == nil {
			order = append(order, k)
		}
		all[k] = append(all[k], c)
	}
	var kinds []resolved
	for _, k := range order {
		first := all[k][0]
		next := resolved{is: k.is, ids: first.ID, resolution: first.Resolution}
		next.first = !slices.ContainsFunc(kinds, func(before resolved) bool { return before.is == k.is })
		comma := ""
		if more := len(all[k]) - 1; more > 0 {
			next.ids, next.resolution, comma = fmt.Sprintf("%s and %s more", first.ID, visible.Number(more)), k.resolution, ","
		}
		next.resolution = escaped(strings.TrimSuffix(next.resolution, preview.ThenTrust))
		next.text = fmt.Sprintf("%s%s %s: %s", next.ids, comma, k.is, next.resolution)
		kinds = append(kinds, next)
	}
	return kinds
}

// itemIDs matches the IDs of items in a text.
var itemIDs = regexp.MustCompile(`\bR-\d+\b`)

// notes returns the reasons that the report gives for replaced and removed files.
func (p *Report) notes() []string {
	var notes []string
	for n := range p.Block.Items {
		if i := &p.Block.Items[n]; i.TakesAway() && i.Reason != "" {
			notes = append(notes, name(i.Path)+": "+escaped(i.Reason))
		}
	}
	if more := len(notes) - maxNotes; more > 0 {
		notes = append(notes[:maxNotes], "and of "+visible.Count(more, "other file"))
	}
	return notes
}
