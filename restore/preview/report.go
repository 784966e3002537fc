package preview

import (
	"fmt"
	"io"
	"strings"
)

// WriteReport writes the preview for people, as Markdown: the ten sections of
// protocol section 8. Every name that comes from a bundle or from the disk is
// quoted, so that none can forge a line or a cell. Long lists are grouped by
// directory; the JSON has every item.
func (p *Preview) WriteReport(w io.Writer) error {
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
func (p *Preview) writeSource(out *reporter) {
	out.line("## 1. Source Reviewed\n")
	out.line("| Field | Value |\n|---|---|")
	for _, f := range p.sourceFields() {
		out.row(f.Name, f.cell())
	}
	out.more(len(p.block.Candidate.Runs))
	out.line("")
	p.writeQuarantine(out)
}

// writeQuarantine says why nothing may be committed before it is clarified
// (protocol section 12).
func (p *Preview) writeQuarantine(out *reporter) {
	if len(p.held) == 0 {
		return
	}
	out.line("**QUARANTINE: this candidate must not be committed until it is clarified, and a person has released it.**\n")
	out.line("| Rule | What was found |\n|---|---|")
	for _, f := range p.held {
		out.row(string(f.Rule), text(f.Detail))
	}
	out.line("")
}

// writeReviews is section 7.
func (p *Preview) writeReviews(out *reporter) {
	out.line("## 7. Privacy and Identity Review\n\n### Identity Review\n")
	out.questions(p.block.Identity.fields())
	out.line("### Privacy Review\n")
	out.questions(p.block.Privacy.fields())
}

// questions writes questions with their answers.
func (r *reporter) questions(fields []field) {
	for _, f := range fields {
		r.line("- %s %s", f.Name, f.Value)
	}
	r.line("")
}

// riskOfIdentity reports whether there is an identity layer, or a file with the name of one,
// that is not known to be of the operator's agent.
func riskOfIdentity(i *identityReview) string {
	switch {
	case i.Same != nil && *i.Same || i.Items+i.Possible == 0:
		return no
	case i.Items == 0:
		return yes + inParentheses(counted(i.Possible, "item")+" may be identity layer, by name")
	}
	return yes
}

// noneIf says "none" of a savepoint that is not there.
func noneIf(id string) string {
	if id == unknown {
		return "none"
	}
	return id
}

func partly(n, all int) string {
	switch n {
	case 0:
		return no
	case all:
		return yes
	}
	return "partial"
}

// writeChecks is section 8, with the checklist of protocol section 14.
func (p *Preview) writeChecks(out *reporter) {
	out.line("## 8. Current-State Protection Check\n")
	out.line("| Confirm | Answer | Evidence |\n|---|---|---|")
	for _, c := range p.block.Checks {
		out.row(c.Question, c.Answer, text(c.Evidence))
	}
	out.line("")
}

// writePlan is section 10.
func (p *Preview) writePlan(out *reporter) {
	b := &p.block
	out.line("## 10. Recommended Commit Plan\n")
	out.line("Recommended: %s\n", b.Approval.Plan)
	if b.Approval.Statement != "" {
		out.line("    %s\n", b.Approval.Statement)
	}
	if len(p.held) > 0 {
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
	out.line("preview_id %s", p.id)
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
		r.line("\n%d more; `--json` lists all.", n-maxRows)
	}
}
