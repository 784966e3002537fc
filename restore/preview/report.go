package preview

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spectrumfs/spectrum/restore"
)

// maxRows is how many items and how many conflicts a report lists; the JSON
// has all of them.
const maxRows = 40

// WriteReport writes the preview for people, as Markdown. Every name that
// comes from a bundle or from the disk is quoted, so that none can forge a
// line or a cell.
func (p *Preview) WriteReport(w io.Writer) error {
	out := &reporter{w: w}
	out.line("# Restore Preview Report\n")
	p.writeSource(out)
	p.writeItems(out)
	p.writeConflicts(out)
	out.line("## Approval needed\n")
	out.line("Nothing has been written. The restore is carried out only after this exact statement:\n")
	out.line("    %s\n", Statement)
	out.line("preview_id %s", p.id)
	return out.err
}

func (p *Preview) writeSource(out *reporter) {
	b := &p.block
	out.line("## Source reviewed\n")
	out.line("| Field | Value |\n|---|---|")
	if b.Candidate.ChainRoot != nil {
		out.row("chain root", *b.Candidate.ChainRoot)
	}
	for _, run := range b.Candidate.Runs {
		out.row("run", Quote(run.RunID))
		out.row("bundle root", run.BundleRoot)
		out.row("signed by validator", run.ValidatorID)
	}
	out.row("not covered by the signature", strings.Join(b.Candidate.Unsigned, ", "))
	out.row("project root", Quote(b.Origin.ProjectRoot))
	out.row("restore root", Quote(b.Root.Path))
	for _, warning := range b.Root.Warnings {
		out.row("WARNING", warning)
	}
	out.row("files", strconv.Itoa(b.Totals.Files))
	out.row("bytes", strconv.FormatInt(b.Totals.Bytes, 10))
	out.line("")
}

func (p *Preview) writeItems(out *reporter) {
	out.line("## Proposed restorations\n")
	out.line("| Restore ID | Item | Bytes | Label |\n|---|---|---:|---|")
	for _, i := range firstRows(p.block.Items) {
		out.row(i.ID, Quote(i.Path), strconv.FormatInt(i.Bytes, 10), i.Label)
	}
	out.more(len(p.block.Items))
	out.line("")
}

func (p *Preview) writeConflicts(out *reporter) {
	out.line("## Conflict register\n")
	if len(p.block.Conflicts) == 0 {
		out.line("None: no target exists, and every validator is pinned.\n")
		return
	}
	out.line("| Conflict ID | Type | Item | Current state | Recommended resolution |\n|---|---|---|---|---|")
	for _, c := range firstRows(p.block.Conflicts) {
		out.row(c.ID, c.Type, Quote(c.Path), c.Current, c.Resolution)
	}
	out.more(len(p.block.Conflicts))
	out.line("")
	if blocked := p.restore.Blocked(); blocked != nil {
		out.line("Approving a preview with a %s leads to %s.\n", typeState, restore.ResultOf(blocked).Code)
	} else {
		out.line("Approving this preview acknowledges them.\n")
	}
}

func firstRows[T any](list []T) []T { return list[:min(len(list), maxRows)] }

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

// Quote makes a name safe to show on a terminal and in a Markdown cell:
// control and format characters are escaped, and what Markdown reads as markup.
func Quote(name string) string {
	return markup.Replace(strconv.Quote(name))
}

var markup = strings.NewReplacer("|", `\|`, "&", `\&`, "`", "\\`", "<", `\<`, "*", `\*`, "[", `\[`)
