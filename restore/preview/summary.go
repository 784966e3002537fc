package preview

import (
	"fmt"

	"github.com/spectrumfs/spectrum/restore"
)

// summary is what stands at the top of the page.
type summary struct {
	State     string // "quarantined", "nothing", "part" or "free"
	Word      string // what it comes to, in a word
	Verdict   string // what it comes to, in a sentence
	Root      string
	Statement string
}

// summary says what would happen, and what approves it.
func (p *Preview) summary() summary {
	free, _ := p.unhindered()
	s := summary{Root: p.block.Root.Real, Statement: p.block.Approval.Statement}
	s.State, _ = p.verdict(free)
	s.Word, s.Verdict, _ = p.outcome()
	return s
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
	case proposed == 0 && p.undecidedDivergences() > 0:
		return "nothing", "Nothing is proposed. What is there is not what the change started from."
	case proposed == 0:
		return "nothing", "Nothing is proposed. There is nothing to approve."
	case p.decided.noRoomForResult():
		return "nothing", "Nothing can be restored as things stand. " + restore.ManifestName + " or " + restore.ReportName + " already exists."
	case p.decided.removesOnly():
		return "nothing", "Nothing can be restored as things stand. A bundle needs a file beside its removals."
	case p.block.Approval.Statement == "":
		return "nothing", "Nothing can be restored as things stand. Something is in the way of every proposed file."
	case !p.block.Approval.isWhole():
		return "part", fmt.Sprintf("A part can be restored: %s of %s. Something is in the way of the others.",
			digits(int64(free)), counted(proposed, "proposed file"))
	}
	if n := p.undecidedDivergences(); n > 0 {
		return "part", fmt.Sprintf("A part of the change can be restored: %s of %s. What is there is not what the change started from for %s.",
			digits(int64(proposed)), counted(p.block.Totals.Files, "file"), counted(n, "file"))
	}
	return "free", fmt.Sprintf("Nothing is in the way of %s.", counted(proposed, "proposed file"))
}
