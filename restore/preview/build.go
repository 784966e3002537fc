package preview

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/trust"
)

// block is what was decided, as it is shown and approved.
func (d *deciding) block(root RootState) Block {
	b := Block{
		ArtifactType:    "restore_preview",
		ProtocolVersion: "restore-v01",
		SourceID:        SourceID(d.plan),
		CurrentID:       orElse(d.request.Current.ID, Unknown),
		Scope:           d.request.Asked.scopes(),
		Items:           d.in(proposed),
		ReferenceOnly:   d.in(reference),
		DoNotRestore:    d.in(unwanted),
		Conflicts:       d.conflicts,
		Privacy:         d.privacyReview(),
		Identity:        d.identityReview(),
		Approval:        d.approvalOf(),
		Source:          sourceOf(d.plan, d.claims),
		Candidate:       candidateOf(d.plan, d.request.Trust),
		View:            d.request.Origin.View,
		Trust:           d.request.Trust.Digest(),
		Root:            root,
		Totals:          Totals{Files: len(d.items), Bytes: d.plan.Bytes()},
		Findings:        d.quarantined(),
	}
	if b.Conflicts == nil {
		b.Conflicts = []Conflict{}
	}
	for _, i := range b.Items {
		b.Totals.Proposed++
		b.Totals.Restore += i.Bytes
	}
	b.Replacement = d.replacement()
	b.Checks = d.checks(&b)
	return b
}

// SourceID names a candidate: the bundle root, in a chain the chain root; 64
// lower-case hex digits.
func SourceID(p *restore.Plan) string {
	if p.IsChain() {
		return p.ChainRoot()
	}
	for run := range p.Runs() {
		return run.Bundle().Root()
	}
	return Unknown
}

func directoriesOf(p *restore.Plan) []GrantedDir {
	var all []GrantedDir
	for _, d := range p.Dirs() {
		all = append(all, GrantedDir{cmp.Or(d.Path, "."), fmt.Sprintf("%04o", d.Perm)})
	}
	return all
}

func candidateOf(p *restore.Plan, policy trust.Policy) Candidate {
	c := Candidate{Unsigned: Unsigned(func(yield func(Tabled) bool) {
		for run := range p.Runs() {
			if !yield(run.Bundle()) {
				return
			}
		}
	})}
	if p.IsChain() {
		root := p.ChainRoot()
		c.ChainRoot = &root
	}
	c.Directories = directoriesOf(p)
	for run := range p.Runs() {
		b := run.Bundle()
		c.Runs = append(c.Runs, CandidateRun{b.RunID(), b.TaskID(), b.Root(), b.ValidatorID(), string(policy.Of(b.ValidatorID()))})
	}
	return c
}

// Digits is a number with its digits in groups: "20,000".
func Digits(n int64) string {
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// Count is a number of things: "1 item", "2,000 items".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Digits(int64(n)) + " " + noun + "s"
}

// areProposed is how many of some items are proposed.
func areProposed(n, all int, noun string) string {
	return fmt.Sprintf("%s of %s %s proposed", Digits(int64(n)), Count(all, noun), isOrAre(n))
}

// isOrAre is the verb after so many of something.
func isOrAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
