package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/internal/visible"
	"github.com/spectrumfs/spectrum/restore/preview"
)

// A Report shows one preview to people.
type Report struct {
	preview.Shown
	preview    *preview.Preview
	items      []preview.Item // of the candidate, in the order of their numbers
	isProposed []bool         // by item: it is proposed
}

// Of returns the report of a preview; see [preview.Preview.HeldBy].
func Of(p *preview.Preview) *Report {
	r := &Report{Shown: p.Shown(), preview: p}
	for n := range r.Block.Conflicts {
		if c := &r.Block.Conflicts[n]; len(c.Places) > 0 {
			c.Current, c.Claim = withNames(c.Current), withNames(c.Claim)
		}
	}
	r.items = slices.Concat(r.Block.Items, r.Block.ReferenceOnly, r.Block.DoNotRestore)
	slices.SortFunc(r.items, func(a, b preview.Item) int { return a.Number - b.Number })
	r.isProposed = make([]bool, len(r.items))
	for n := range r.Block.Items {
		r.isProposed[r.Block.Items[n].Number-1] = true
	}
	return r
}

// proposes reports whether an item is proposed.
func (p *Report) proposes(i *preview.Item) bool { return p.isProposed[i.Number-1] }

// numbers returns the numbers of the items that fit.
func (p *Report) numbers(fits func(*preview.Item) bool) []int {
	var numbers []int
	for n := range p.items {
		if fits(&p.items[n]) {
			numbers = append(numbers, n+1)
		}
	}
	return numbers
}

// WriteMarkdown writes the preview for people, as Markdown: the ten sections of
// protocol section 8. Every name that comes from a bundle or from the disk is
// quoted, so that none can forge a line or a cell. Long lists are grouped by
// directory; the JSON has every item.
func (p *Report) WriteMarkdown(w io.Writer) error {
	out := &reporter{w: w}
	out.line("# Restore Preview Report\n")
	for _, section := range []func(*reporter){
		p.writeSource, p.writeScopes, p.writeProposed, p.writeReference, p.writeUnwanted,
		p.writeConflicts, p.writeReviews, p.writeChecks, p.writeApproval, p.writePlan,
	} {
		section(out)
	}
	return out.err
}

// writeSource is section 1.
func (p *Report) writeSource(out *reporter) {
	out.line("## 1. Source Reviewed\n")
	out.line("| Field | Value |\n|---|---|")
	for _, f := range p.sourceFields() {
		out.row(f.Name, f.cell())
	}
	out.more(len(p.Block.Candidate.Runs))
	out.line("")
	p.writeQuarantine(out)
}

// writeQuarantine writes the findings that block a commit until a person releases the candidate (protocol
// section 12).
func (p *Report) writeQuarantine(out *reporter) {
	if len(p.Held) == 0 {
		return
	}
	out.line("**QUARANTINE: this candidate must not be committed until its findings are resolved and a person has released it.**\n")
	out.line("| Rule | What was found |\n|---|---|")
	for _, f := range p.Held {
		out.row(string(f.Rule), text(f.Detail))
	}
	out.line("")
}

// writeReviews is section 7.
func (p *Report) writeReviews(out *reporter) {
	out.line("## 7. Privacy and Identity Review\n\n### Identity Review\n")
	out.questions(identityFields(&p.Block.Identity))
	out.line("### Privacy Review\n")
	out.questions(privacyFields(&p.Block.Privacy))
}

// questions writes questions with their answers.
func (r *reporter) questions(fields []field) {
	for _, f := range fields {
		r.line("- %s %s", f.Name, f.Value)
	}
	r.line("")
}

// riskOfIdentity returns whether an identity layer, or a file with the name of one, may be of another agent
// than the operator's.
func riskOfIdentity(i *preview.IdentityReview) string {
	switch {
	case i.Same != nil && *i.Same || i.Items+i.Possible == 0:
		return preview.No
	case i.Items == 0:
		return preview.Yes + inParentheses(visible.Count(i.Possible, "item")+" may be identity layer, by name")
	}
	return preview.Yes
}

// noneIf returns "none" for a missing savepoint.
func noneIf(id string) string {
	if id == preview.Unknown {
		return "none"
	}
	return id
}

func partly(n, all int) string {
	switch n {
	case 0:
		return preview.No
	case all:
		return preview.Yes
	}
	return "partial"
}

// writeChecks is section 8, with the checklist of protocol section 14.
func (p *Report) writeChecks(out *reporter) {
	out.line("## 8. Current-State Protection Check\n")
	out.line("| Confirm | Answer | Evidence |\n|---|---|---|")
	for _, c := range p.Block.Checks {
		out.row(c.Question, c.Answer, text(c.Evidence))
	}
	out.line("")
}

// writePlan is section 10.
func (p *Report) writePlan(out *reporter) {
	b := &p.Block
	out.line("## 10. Recommended Commit Plan\n")
	out.line("Recommended: %s\n", b.Approval.Plan)
	if b.Approval.Statement != "" {
		out.line("    %s\n", b.Approval.Statement)
	}
	if len(p.Held) > 0 {
		out.line("Nothing is committed unless a person has released it from quarantine.\n")
	}
	for _, sentence := range p.planNotes() {
		out.line("%s\n", sentence)
	}
	out.line("How this can be undone:\n")
	for _, sentence := range p.undoing() {
		out.line("- %s", sentence)
	}
	out.line("")
	out.line("Nothing has been written. No restoration will occur until the operator explicitly approves the commit scope.\n")
	out.line("preview_id %s", p.ID)
}

// reporter writes lines and keeps the first error.
type reporter struct {
	w   io.Writer
	err error
}

func (r *reporter) line(format string, args ...any) {
	if r.err == nil {
		_, r.err = fmt.Fprintf(r.w, format+"\n", args...)
	}
}

func (r *reporter) row(cells ...string) { r.line("| %s |", strings.Join(cells, " | ")) }

func (r *reporter) more(n int) {
	if n > maxRows {
		r.line("\n%s more; `--json` lists all.", visible.Number(n-maxRows))
	}
}
