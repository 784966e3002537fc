package preview

import (
	"cmp"
	"fmt"

	"github.com/spectrumfs/spectrum/internal/visible"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/trust"
)

// block returns the decision block.
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

// areProposed returns the number of proposed items in words.
func areProposed(n, all int, noun string) string {
	return fmt.Sprintf("%s of %s %s proposed", visible.Number(n), visible.Count(all, noun), isOrAre(n))
}

// isOrAre returns the verb for a number of things.
func isOrAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
