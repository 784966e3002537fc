package preview

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/quarantine"
	"github.com/spectrumfs/spectrum/verify"
)

// Shown is a copy of the content of a preview. Changes of it do not affect the preview.
type Shown struct {
	ID    string
	Block Block
	Held  []quarantine.Finding // findings that hold the candidate in quarantine; see [Preview.HeldBy]

	ProjectRoot string    // as the operator named it
	Warning     string    // see [Request]
	Completed   time.Time // of the latest run; the zero time where no run has a date

	DefaultScopes bool // the operator requested no scopes
	Replaces      bool // existing files are replaced
	Removes       bool // the candidate is a change set that removes files
	IsBlocked     bool // a conflict blocks a commit of the whole proposal
	CouldClear    bool // a preview with [Requested].Replace may find fewer such conflicts
	ResultExists  bool // an entry exists at the name of a result artifact
	RemovesOnly   bool // only removals are not blocked, and a bundle requires an output

	Exact        string // what "exactly as proposed" approves, in a sentence
	Part         string // the consequences of a recommended plan that is a part; "" if it is whole
	Acknowledged int    // conflicts that the recommended statement acknowledges
}

// Shown returns the content of the preview.
func (p *Preview) Shown() Shown {
	d := p.decided
	recommended := d.recommendedSelection()
	completed, _ := completedOf(d.plan)
	return Shown{
		ID: p.id, Block: p.block.clone(), Held: slices.Clone(p.held),
		ProjectRoot: p.request.Origin.from(), Warning: p.request.Warning, Completed: completed,
		DefaultScopes: len(p.request.Asked.Scopes) == 0, Replaces: p.restore.Replaces(), Removes: len(d.plan.Removes()) > 0,
		IsBlocked: p.restore.Blocked() != nil, CouldClear: slices.ContainsFunc(p.restore.Conflicts(), d.isReplaceable),
		ResultExists: d.noRoomForResult(), RemovesOnly: d.removesOnly(),
		Exact: d.planText(d.exactSelection()), Part: d.partText(recommended), Acknowledged: len(recommended.acknowledge),
	}
}

// Restore returns the restore that is shown. It is the caller's of [New].
func (p *Preview) Restore() *restore.Restore { return p.restore }

// Asked returns what the operator requested, with each [Replace] and [Keep] by the ID of its item.
func (p *Preview) Asked() Requested { return p.request.Asked }

// CheckRoot returns [ErrUnsettled] if the restore root is not as it was when the preview was made.
func (p *Preview) CheckRoot(ctx context.Context) error {
	name := p.block.Root.Path
	after, err := observe(ctx, p.restore, name)
	if err == nil && after.witness != p.witness.Root {
		err = ErrUnsettled
	}
	if err != nil {
		return fmt.Errorf("looking at restore root %q: %w", name, err)
	}
	return nil
}

// Source returns the output of the candidate that an item is; the zero Output of a removal.
func (i *Item) Source() verify.Output { return i.output }

// clone copies the decision block, with everything that it leads to.
func (b *Block) clone() Block {
	c := *b
	c.Scope = slices.Clone(b.Scope)
	c.Items, c.ReferenceOnly, c.DoNotRestore = cloneItems(b.Items), cloneItems(b.ReferenceOnly), cloneItems(b.DoNotRestore)
	c.Conflicts = slices.Clone(b.Conflicts)
	for n := range c.Conflicts {
		c.Conflicts[n].Items, c.Conflicts[n].Numbers = slices.Clone(b.Conflicts[n].Items), slices.Clone(b.Conflicts[n].Numbers)
		c.Conflicts[n].Places = slices.Clone(b.Conflicts[n].Places)
	}
	c.Privacy.Present = cloneOf(b.Privacy.Present)
	c.Identity.Same, c.Identity.Present = cloneOf(b.Identity.Same), cloneOf(b.Identity.Present)
	c.Approval.Required = slices.Clone(b.Approval.Required)
	c.Candidate.ChainRoot, c.View = cloneOf(b.Candidate.ChainRoot), cloneOf(b.View)
	c.Candidate.Runs, c.Candidate.Unsigned = slices.Clone(b.Candidate.Runs), slices.Clone(b.Candidate.Unsigned)
	c.Candidate.Directories = slices.Clone(b.Candidate.Directories)
	c.Root.Warnings = slices.Clone(b.Root.Warnings)
	c.Findings, c.Checks = slices.Clone(b.Findings), slices.Clone(b.Checks)
	if c.Replacement = cloneOf(b.Replacement); c.Replacement != nil {
		c.Replacement.Artifacts = slices.Clone(b.Replacement.Artifacts)
	}
	return c
}

func cloneItems(items []Item) []Item {
	all := slices.Clone(items)
	for n := range all {
		all[n].Before = cloneOf(all[n].Before)
	}
	return all
}

// cloneOf copies what a pointer leads to.
func cloneOf[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}
