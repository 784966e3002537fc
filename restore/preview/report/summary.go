package report

import (
	"fmt"

	"github.com/spectrumfs/spectrum/internal/visible"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/scope"
)

// summary is the top of the page.
type summary struct {
	State     string // "quarantined", "nothing", "part" or "free"
	Word      string // the result in a word
	Verdict   string // the result in a sentence
	Root      string
	Statement string
}

// summary returns the top of the page: the effects of the restore, and the approval.
func (p *Report) summary() summary {
	free, _ := p.unhindered()
	s := summary{Root: p.Block.Root.Real, Statement: p.Block.Approval.Statement}
	s.State, _ = p.verdict(free)
	s.Word, s.Verdict, _ = p.outcome()
	return s
}

// unhindered counts the proposed items that are not blocked, and their bytes.
func (p *Report) unhindered() (n int, bytes int64) {
	for i := range p.Block.Items {
		if p.Block.Items[i].IsFree() {
			n++
			bytes += p.Block.Items[i].Bytes
		}
	}
	return n, bytes
}

func (p *Report) verdict(free int) (state, text string) {
	proposed := p.Block.Totals.Proposed
	switch {
	case len(p.Held) > 0:
		return "quarantined", "Do not commit. The candidate is quarantined until it is clarified."
	case proposed == 0 && p.undecidedDivergences() > 0:
		return "nothing", fmt.Sprintf("Nothing is proposed; %s %s diverged.", visible.Count(p.undecidedDivergences(), "file"), has(p.undecidedDivergences()))
	case proposed == 0:
		return "nothing", "Nothing is proposed. There is nothing to approve."
	case p.ResultExists:
		return "nothing", "Nothing can be restored as things stand. " + restore.ManifestName + " or " + restore.ReportName + " already exists."
	case p.RemovesOnly:
		return "nothing", "Nothing can be restored as things stand. A bundle needs a file beside its removals."
	case p.Block.Approval.Statement == "" && p.onlyByName() > 0:
		return "part", fmt.Sprintf("Only a statement that names %s, which may hold secrets, restores anything.", visible.Count(p.onlyByName(), "proposed file"))
	case p.Block.Approval.Statement == "":
		return "nothing", "Nothing can be restored as things stand. Something is in the way of every proposed file."
	case !p.Block.Approval.IsWhole():
		return "part", fmt.Sprintf("%s of %s can be restored. Something is in the way of %s.",
			visible.Number(free), visible.Count(proposed, "proposed file"), visible.Number(proposed-free))
	}
	if n := p.undecidedDivergences(); n > 0 {
		return "part", fmt.Sprintf("%s of %s can be restored; %s %s diverged.", visible.Number(proposed), visible.Count(p.Block.Totals.Files, "file"), visible.Number(n), has(n))
	}
	text = fmt.Sprintf("Nothing is in the way of %s", visible.Count(proposed, "proposed file"))
	if there := p.identical(); there > 0 {
		return "free", fmt.Sprintf("%s: %s to restore, %s there already.", text, visible.Number(proposed-there), visible.Number(there))
	}
	return "free", text + "."
}

// identical counts the proposed files that already exist.
func (p *Report) identical() (n int) {
	for i := range p.Block.Items {
		if p.Block.Items[i].Class == preview.Identical {
			n++
		}
	}
	return n
}

// onlyByName counts the proposed files that are not blocked and that a statement must name.
func (p *Report) onlyByName() (n int) {
	for i := range p.Block.Items {
		if item := &p.Block.Items[i]; item.IsFree() && item.Scope == scope.RestrictedContext {
			n++
		}
	}
	return n
}

// has returns the verb for a number of things.
func has(n int) string {
	if n == 1 {
		return "has"
	}
	return "have"
}

// undecidedDivergences counts the diverged items without a decision.
func (p *Report) undecidedDivergences() (n int) {
	for _, c := range p.Block.Conflicts {
		if c.Diverged && c.Decision == preview.Undecided {
			n++
		}
	}
	return n
}
