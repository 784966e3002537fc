package report

import (
	"fmt"
	"strings"

	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/internal/visible"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/restore/statement"
)

// sourceFields is section 1.
func (p *Report) sourceFields() []field {
	b := &p.Block
	s := &b.Source
	fields := []field{
		{"Save Point Title", s.Title, prose},
		{"Save Point ID", b.SourceID, ident},
		{"Parent Save Point ID", s.Parent, ident},
		{"Created By Agent", s.Agent, prose},
		{"Intended Receiving Agent", s.Receiver, prose},
		{"Project / Module", s.Project, prose},
		{"Save Point Version", s.Version, prose},
		{"Protocol Version", b.ProtocolVersion, prose},
		{"Date", s.Date, prose},
		{"Artifact Status", s.Status, prose},
		{"Transfer Mode", s.Transfer, prose},
		{"Identity Bearing", preview.AnswerIfKnown(b.Identity.Present), prose},
		{"Privacy Level", s.Privacy, prose},
	}
	for _, run := range firstRows(b.Candidate.Runs) {
		fields = append(fields,
			field{"Run (name of a directory, not signed)", run.RunID, named},
			field{"Task (task_id, signed)", preview.Beginning(run.TaskID), named},
			field{"Bundle root", run.BundleRoot, ident},
			field{"Signed by validator", run.ValidatorID + " (" + run.Standing + ")", ident})
	}
	fields = append(fields,
		unsignedField(b.Candidate.Unsigned),
		field{"Project root", p.ProjectRoot, named},
		field{"Restore root", b.Root.Path, named},
		field{"Restore root, real path", b.Root.Real, named},
		field{"Restore root, owner", machine.UserText(int(b.Root.Owner)), prose},
		field{"Active savepoint there", noneIf(b.CurrentID), ident},
		field{"Files", ofProposed(int64(b.Totals.Proposed), int64(b.Totals.Files)), prose},
		field{"Bytes", ofProposed(b.Totals.Restore, b.Totals.Bytes), prose})
	for _, warning := range b.Root.Warnings {
		fields = append(fields, field{"WARNING", warning, prose})
	}
	if p.Warning != "" {
		fields = append(fields, field{"WARNING", p.Warning, prose})
	}
	return fields
}

// unsignedField names the artifacts that no signature covers. A signed block table signs PROOF.json.
func unsignedField(unsigned []string) field {
	const name = "Not covered by the signature"
	if len(unsigned) == 0 {
		return field{name, "no artifact", prose}
	}
	return field{name, strings.Join(unsigned, ", "), ident}
}

type scopeRow struct{ Scope, Detected, Action, Notes string }

// scopeRows is section 2.
func (p *Report) scopeRows() []scopeRow {
	var rows []scopeRow
	for _, s := range scope.All() {
		all := p.numbers(func(i *preview.Item) bool { return i.Scope == s })
		rows = append(rows, scopeRow{string(s), preview.Answer(len(all) > 0), p.actionOf(all), p.notesOf(s, all)})
	}
	return rows
}

// identityFields is the first part of section 7.
func identityFields(i *preview.IdentityReview) []field {
	return []field{
		{"Same-agent restore candidate?", preview.AnswerIfKnown(i.Same), prose},
		{"Identity-layer items present?", preview.Answer(i.Items > 0) + undeclaredIdentity(i), prose},
		{"Identity-layer restoration recommended?", partly(i.Proposed, i.Items), prose},
		{"Cross-agent identity risk?", riskOfIdentity(i), prose},
	}
}

// undeclaredIdentity returns the explanation of a "no" without a declaration.
func undeclaredIdentity(i *preview.IdentityReview) string {
	if i.Items > 0 {
		return ""
	}
	why := ""
	if i.Present == nil {
		why = notDeclared
	}
	if i.Possible > 0 {
		if why != "" {
			why += "; "
		}
		why += visible.Count(i.Possible, "item") + " may be, by name"
	}
	return inParentheses(why)
}

// notDeclared is the reason for an unknown answer.
const notDeclared = "the signer has not declared scopes"

func inParentheses(why string) string {
	if why == "" {
		return ""
	}
	return " (" + why + ")"
}

// privacyFields is the second part of section 7.
func privacyFields(v *preview.PrivacyReview) []field {
	undeclared := ""
	if v.Present == nil {
		undeclared = inParentheses("none by name; " + notDeclared)
	}
	return []field{
		{"Restricted context present?", preview.Answer(v.Items > 0) + undeclared, prose},
		{"Privacy level adequate?", preview.Answer(v.Adequate), prose},
		{"Restricted items proposed for restoration?", preview.Answer(v.Proposed > 0), prose},
		{"Operator approval required?", preview.Answer(v.Approval), prose},
	}
}

// approvalFields is section 9.
func (p *Report) approvalFields() (fields []field) {
	if items := p.numbers(p.proposes); len(items) > 0 {
		fields = append(fields, field{shortened(items), "approve / reject / modify", ident})
	}
	for _, q := range p.questions() {
		fields = append(fields, field{short(q.conflicts, "conflict", statement.FormatConflicts, preview.ConflictID), q.choices, ident})
	}
	return fields
}

// planNotes returns the sentences after the recommended plan.
func (p *Report) planNotes() []string {
	var notes []string
	if p.Part != "" {
		notes = append(notes, p.Part)
	}
	if p.Block.Approval.IsWhole() || !p.IsBlocked {
		return notes
	}
	if !p.ResultExists {
		notes = append(notes, "To approve the preview exactly as proposed would be to "+p.Exact)
	}
	if p.Replaces {
		return append(notes, "A commit of the preview exactly as proposed will be rejected: targets exist that cannot be replaced.")
	}
	note := "A commit of the preview exactly as proposed will be rejected: a restore never overwrites, and targets exist."
	if p.CouldClear {
		note += " A preview with --replace replaces existing files, and a rollback brings them back."
	}
	return append(notes, note)
}

// listed is section 3, 4 or 5: a table with a row for similar items, and the tree of all items.
type listed struct {
	Number, Title string
	Proposed      bool
	Kinds         []kind
	KindsMore     int
	Tree          *branch // nil: there is nothing
}

// lists returns the sections 3 to 5.
func (p *Report) lists(diffs map[int]bool) []listed {
	room := &budget{treeBytes}
	var all []listed
	for n, items := range [][]preview.Item{p.Block.Items, p.Block.ReferenceOnly, p.Block.DoNotRestore} {
		title := [...]string{"Proposed Restorations", "Retain as Reference Only", "Do Not Restore"}[n]
		l := listed{Number: fmt.Sprint(n + 3), Title: title, Proposed: n == 0}
		alike := 0
		for _, k := range kindsOf(items) {
			if alike++; k.named || alike <= maxRows {
				l.Kinds = append(l.Kinds, k)
			} else {
				l.KindsMore++
			}
		}
		if len(items) > 0 {
			l.Tree = treeOf(items, l.Proposed, diffs, room)
		}
		all = append(all, l)
	}
	return all
}

// kind is a row of items with the same values in all columns of the protocol.
type kind struct {
	IDs, Item, Scope, Why, Risk, Label string

	numbers []int
	named   bool // one item that is always named
}

// kindsOf groups items by scope, reason, risk and label, in the order of the first of each group.
func kindsOf(items []preview.Item) []kind {
	var kinds []kind
	at := map[[5]string]int{}
	for n := range items {
		i := &items[n]
		k := kind{Item: name(i.Path), Scope: string(i.Scope), Why: reasonOf(i), Risk: riskOf(i), Label: string(i.Label)}
		key := [...]string{k.Scope, k.Why, k.Risk, k.Label, ""}
		if i.Runs != "" || i.Follow { // it is always named
			key[4] = i.ID
		}
		place, ok := at[key]
		if !ok {
			place = len(kinds)
			at[key] = place
			k.named = key[4] != ""
			kinds = append(kinds, k)
		}
		kinds[place].numbers = append(kinds[place].numbers, i.Number)
	}
	for n := range kinds {
		k := &kinds[n]
		k.IDs = shortened(k.numbers)
		if len(k.numbers) > 1 {
			k.Item = visible.Count(len(k.numbers), "file")
		}
	}
	return kinds
}

// reasonOf is whyOf without the escapes of Markdown.
func reasonOf(i *preview.Item) string {
	if i.Reason != "" {
		return i.Reason
	}
	return whyOf(i)
}
