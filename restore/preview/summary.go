package preview

import (
	"fmt"

	"github.com/spectrumfs/spectrum/restore"
)

// summary is what stands at the top of the page.
type summary struct {
	State     string // "quarantined", "nothing", "part" or "free"
	Verdict   string // what it comes to, in a sentence
	Root      string
	Facts     []fact
	Statement string
}

// fact is one number of the summary.
type fact struct{ Name, Value, Note string }

// summary says what would happen, how much of it, and what stands in the way.
func (p *Preview) summary() summary {
	b := &p.block
	free, bytes := p.unhindered()
	s := summary{Root: b.Root.Real, Statement: b.Approval.Statement}
	s.State, s.Verdict = p.verdict(free)
	s.Facts = []fact{
		{"Files proposed", digits(int64(b.Totals.Proposed)), "of " + digits(int64(b.Totals.Files)) + " in the candidate"},
		{"Bytes proposed", sizeText(b.Totals.Restore), digits(b.Totals.Restore) + " of " + digits(b.Totals.Bytes) + " bytes"},
		{"Nothing in their way", digits(int64(free)), sizeText(bytes)},
		{"Conflicts", digits(int64(len(b.Conflicts))), digits(int64(len(p.decided.pendingConflicts()))) + " undecided"},
		{"Quarantined", answer(len(p.held) > 0), p.quarantineNote()},
	}
	return s
}

func (p *Preview) quarantineNote() string {
	switch {
	case len(p.held) > 0:
		return counted(len(p.held), "finding")
	case len(p.block.Findings) > 0:
		return "released by a person: " + counted(len(p.block.Findings), "finding")
	}
	return "no rule that can be computed is against it"
}

// unhindered counts the proposed items that nothing stands in the way of, and
// their bytes.
func (p *Preview) unhindered() (n int, bytes int64) {
	for i := range p.block.Items {
		if p.block.Items[i].isFree() {
			n++
			bytes += p.block.Items[i].Bytes
		}
	}
	return n, bytes
}

func (p *Preview) verdict(free int) (state, text string) {
	proposed := p.block.Totals.Proposed
	switch {
	case len(p.held) > 0:
		return "quarantined", "Do not commit. The candidate is quarantined until it is clarified."
	case proposed == 0:
		return "nothing", "Nothing is proposed. There is nothing to approve."
	case p.decided.noRoomForResult():
		return "nothing", "Nothing can be restored as things stand. There is no room for " + restore.ManifestName + " and " + restore.ReportName + "."
	case p.block.Approval.Statement == "":
		return "nothing", "Nothing can be restored as things stand. Something is in the way of every proposed file."
	case !p.block.Approval.isWhole():
		return "part", fmt.Sprintf("A part can be restored: %s of %s. Something is in the way of the others.",
			digits(int64(free)), counted(proposed, "proposed file"))
	}
	return "free", fmt.Sprintf("Nothing is in the way of %s.", counted(proposed, "proposed file"))
}
