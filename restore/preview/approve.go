package preview

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync/atomic"

	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/restore/statement"
)

// Why an approval is not accepted.
var (
	// ErrVague: the statement is not an explicit approval of this preview.
	ErrVague = statement.ErrVague
	// ErrUnfit: the statement is explicit, and does not fit what was shown.
	ErrUnfit = errors.New("the statement does not fit the preview")
	// ErrUndecided: the statement leaves open what must be decided.
	ErrUndecided = errors.New("conflicts are not decided")
	// ErrUsed: the preview was approved before; each is good for one commit.
	ErrUsed = errors.New("the preview was used before")
)

// Ledger remembers which previews were used.
type Ledger interface {
	// Use marks a preview as used, durably, and fails with an error that is
	// fs.ErrExist when it was used before.
	Use(id string) error
}

// Approval is an explicit statement that fits a preview. It names what may be
// restored; nothing was used up yet.
type Approval struct {
	preview   *Preview
	statement *statement.Statement
	items     []int // numbers of the approved items, sorted; not empty
	excluded  map[int]string
	decisions []string // by conflict: the verdict; "" for none
}

// Approve compares a statement with the recorded preview. Again is the same preview, made
// anew: it must be equal in everything.
func (r *Record) Approve(again *Preview, s *statement.Statement) (*Approval, error) {
	if err := r.Holds(again); err != nil {
		return nil, err
	}
	for _, c := range again.block.Checks {
		if c.Answer == No {
			return nil, fmt.Errorf("%w: %s no: %s", ErrUnfit, c.Question, c.Evidence)
		}
	}
	return again.approval(s)
}

// approval returns the approval that a statement gives to a preview.
func (p *Preview) approval(s *statement.Statement) (*Approval, error) {
	a := &Approval{preview: p, statement: s, excluded: map[int]string{}}
	if err := a.decide(); err != nil {
		return nil, err
	}
	if err := a.choose(); err != nil {
		return nil, err
	}
	if err := a.complete(); err != nil {
		return nil, err
	}
	return a, nil
}

// Fits returns why a statement does not fit the preview, before anything is approved: the
// error is [ErrUnfit] or [ErrUndecided].
func (p *Preview) Fits(s *statement.Statement) error {
	_, err := p.approval(s)
	return err
}

// decide records the decisions on conflicts that the statement or the preview names.
func (a *Approval) decide() error {
	conflicts := a.preview.block.Conflicts
	a.decisions = make([]string, len(conflicts))
	for _, d := range a.statement.Decisions() {
		if d.To > len(conflicts) {
			return fmt.Errorf("%w: it has no conflict %s", ErrUnfit, ConflictID(max(d.From, len(conflicts)+1)))
		}
		for n := d.From; n <= d.To; n++ {
			if was := conflicts[n-1].Decision; was != Undecided && was != string(d.Verdict) {
				return fmt.Errorf("%w: %s is %s already", ErrUnfit, ConflictID(n), was)
			}
			a.decisions[n-1] = string(d.Verdict)
		}
	}
	for n := range conflicts {
		switch {
		case a.decisions[n] != "", conflicts[n].ByName:
		case conflicts[n].Decision != Undecided:
			a.decisions[n] = conflicts[n].Decision
		}
		if err := a.checkRejected(n); err != nil {
			return err
		}
	}
	return nil
}

// checkRejected returns an error if conflict n concerns no item and is rejected, can only be resolved with
// another restore root, or narrows an approval of everything that is proposed.
func (a *Approval) checkRejected(n int) error {
	c := &a.preview.block.Conflicts[n]
	switch {
	case c.ByName && a.decisions[n] == string(statement.Resolved):
		return fmt.Errorf("%w: %s can only be acknowledged, or avoided with another restore root", ErrUnfit, c.ID)
	case a.decisions[n] != string(statement.Rejected):
	case len(c.Numbers) == 0:
		return fmt.Errorf("%w: %s concerns no item, so no item can be left out for it; to restore nothing, do not approve", ErrUnfit, c.ID)
	case a.statement.Whole() && c.Decision == Undecided:
		return fmt.Errorf("%w: rejecting %s leaves items out, which requires an approval that names the items", ErrUnfit, c.ID)
	}
	return nil
}

// choose selects the approved items: those that are proposed, named, not left out, and in no rejected
// conflict.
func (a *Approval) choose() error {
	if err := a.checkNames(); err != nil {
		return err
	}
	rejected := map[int]string{}
	for n, c := range a.preview.block.Conflicts {
		if a.decisions[n] != string(statement.Rejected) {
			continue
		}
		for _, number := range c.Numbers {
			rejected[number] = c.ID + " was rejected"
		}
	}
	for _, i := range a.preview.block.Items {
		why, out := rejected[i.Number]
		if !out {
			why, out = a.leftOut(&i)
		}
		if out {
			a.excluded[i.Number] = why
		} else {
			a.items = append(a.items, i.Number)
		}
	}
	if len(a.items) == 0 {
		return a.nothingLeft()
	}
	return a.carryOutput()
}

// nothingLeft returns the error of a statement that approves no item.
func (a *Approval) nothingLeft() error {
	b := &a.preview.block
	diverged := &DivergedError{}
	for n, c := range b.Conflicts {
		if c.Diverged && c.Decision == Undecided {
			diverged.Conflicts, diverged.Paths = append(diverged.Conflicts, n+1), append(diverged.Paths, c.Path)
		}
	}
	switch {
	case len(b.Items) == 0 && len(diverged.Conflicts) > 0:
		return diverged
	case slices.ContainsFunc(b.Items, func(i Item) bool { return i.Scope == scope.RestrictedContext }):
		return fmt.Errorf("%w: it leaves nothing to restore; what may hold secrets is restored only when the statement names each item, or restricted context", ErrUnfit)
	}
	return fmt.Errorf("%w: it leaves nothing to restore", ErrUnfit)
}

// carryOutput adds an unchanged item if only removals are approved, because a bundle requires an output.
func (a *Approval) carryOutput() error {
	all := a.preview.decided.items
	if slices.ContainsFunc(a.items, func(n int) bool { return !all[n-1].Removed }) {
		return nil
	}
	for _, i := range a.preview.block.Items {
		if !canCarry(i) || a.statement.Excludes(i.Number) {
			continue
		}
		at, _ := slices.BinarySearch(a.items, i.Number)
		a.items = slices.Insert(a.items, at, i.Number)
		delete(a.excluded, i.Number)
		return nil
	}
	if a.preview.decided.removesOnly() {
		return fmt.Errorf("%w: it approves only removals: %s", ErrUnfit, onlyRemovals)
	}
	return fmt.Errorf("%w: it approves only removals, but a bundle needs at least one file: also approve a file that is restored or identical", ErrUnfit)
}

// leftOut reports whether a statement leaves out a proposed item, and returns the reason.
func (a *Approval) leftOut(i *Item) (string, bool) {
	s := a.statement
	restricted := i.Scope == scope.RestrictedContext
	switch {
	case s.Whole():
		return "it may hold secrets, and the approval does not name it", restricted
	case s.Excludes(i.Number), slices.Contains(s.NotScopes(), i.Scope):
		return "the approval leaves it out", true
	case restricted && s.Names(i.Number) && !s.NamesAlone(i.Number):
		return "it may hold secrets, and a range does not name it", true
	case len(s.Scopes()) > 0:
		return "the approval does not name its scope", !slices.Contains(s.Scopes(), i.Scope)
	}
	return "the approval does not name it", !s.Names(i.Number)
}

// checkNames requires named items to exist, and to be proposed: an approval never goes beyond
// what was proposed.
func (a *Approval) checkNames() error {
	lists := a.preview.decided.lists
	for _, r := range a.statement.Items() {
		for n := r.From; n <= r.To; n++ {
			if n > len(lists) {
				return fmt.Errorf("%w: it has no item %s", ErrUnfit, ItemID(n))
			}
			if lists[n-1] != proposed {
				i := &a.preview.decided.items[n-1]
				return fmt.Errorf("%w: %s is not proposed (%s, %s)", ErrUnfit, i.ID, i.Scope, i.Label)
			}
		}
	}
	for _, r := range a.statement.NotItems() {
		if r.To > len(lists) {
			return fmt.Errorf("%w: it has no item %s", ErrUnfit, ItemID(max(r.From, len(lists)+1)))
		}
	}
	for _, s := range a.statement.Scopes() {
		if !slices.ContainsFunc(a.preview.block.Items, func(i Item) bool { return i.Scope == s }) {
			return fmt.Errorf("%w: nothing in scope %s is proposed", ErrUnfit, s)
		}
	}
	return nil
}

// complete requires every conflict to be decided that touches what is approved (protocol
// section 9, step 6). To approve the preview exactly as proposed acknowledges what its plan
// says, which is each of these but those that the statement has to name.
func (a *Approval) complete() error {
	var open []int
	for n := range a.preview.block.Conflicts {
		c := &a.preview.block.Conflicts[n]
		switch {
		case a.decisions[n] != "" || !c.touches(a.items):
		case a.statement.Whole() && !c.ByName:
			a.decisions[n] = string(statement.Acknowledged)
		default:
			open = append(open, n+1)
		}
	}
	if len(open) == 0 {
		return nil
	}
	ids := statement.FormatConflicts(open)
	return fmt.Errorf("%w: %s; if you accept them, end the statement with %q", ErrUndecided, ids, "Acknowledge "+ids+".")
}

// Whole reports whether every output of the candidate is approved. Otherwise the approved part
// is sealed as a derived bundle, and that is restored.
func (a *Approval) Whole() bool { return len(a.items) == len(a.preview.decided.items) }

// PreviewID returns the identity of the approved preview.
func (a *Approval) PreviewID() string { return a.preview.id }

// Approved is a restore that the operator approved exactly as it was shown.
// Only [Approval.Accept] makes one.
type Approved struct {
	restore  *restore.Restore
	approval *Approval
	taken    atomic.Bool
}

// Accept binds the approval to the restore that carries it out: the restore of the preview itself, or of a
// derived candidate, which must consist of exactly the approved items. The preview is then used up.
func (a *Approval) Accept(r *restore.Restore, ledger Ledger) (*Approved, error) {
	if err := a.covers(r); err != nil {
		return nil, err
	}
	err := ledger.Use(a.preview.id)
	if errors.Is(err, fs.ErrExist) {
		err = ErrUsed
	}
	if err != nil {
		return nil, fmt.Errorf("preview %s: %w", a.preview.id, err)
	}
	return &Approved{restore: r, approval: a}, nil
}

// Overrule records the operator's decisions on diverged files in the restore of a derived candidate. The
// restore of the preview itself already has them.
func (a *Approval) Overrule(r *restore.Restore) {
	for _, n := range a.items {
		if i := &a.preview.decided.items[n-1]; i.overruled != "" && !i.IsDiverged() {
			r.Overrule(i.Path)
		}
	}
}

// covers requires a restore to do exactly what was approved, in the root that was examined.
func (a *Approval) covers(r *restore.Restore) error {
	looked, err := a.preview.restore.Root().Stat()
	if err != nil {
		return err
	}
	found, err := r.Root().Stat()
	if err != nil {
		return err
	}
	items := itemsIn(r.Plan())
	same := looked.ID == found.ID && len(items) == len(a.items) && r.Plan().IsChain() == a.preview.restore.Plan().IsChain()
	for n := 0; same && n < len(items); n++ {
		same = sameOutput(items[n], a.preview.decided.items[a.items[n]-1]) && a.preview.sameTarget(r, items[n].Path)
	}
	same = same && a.preview.sameArtifacts(r)
	shown := map[GrantedDir]bool{}
	for _, d := range a.preview.block.Candidate.Directories {
		shown[d] = true
	}
	for _, d := range directoriesOf(r.Plan()) { // of a part of the candidate they may be fewer
		same = same && shown[d]
	}
	if !same {
		return fmt.Errorf("%w: the restore is not the approved one", ErrStale)
	}
	return nil
}

// Restore returns the approved restore; nil for the zero Approved.
func (a *Approved) Restore() *restore.Restore { return a.restore }

// Take reports, on its first call alone, that the approval may be carried out; never for the zero
// Approved.
func (a *Approved) Take() bool {
	return a.restore != nil && a.taken.CompareAndSwap(false, true)
}

// PreviewID returns the identity of the approved preview.
func (a *Approved) PreviewID() string { return a.approval.preview.id }

// Signed returns the runs of the candidate that was approved, in chain order.
func (a *Approved) Signed() []Signed {
	runs := a.approval.preview.block.Candidate.Runs
	all := make([]Signed, 0, len(runs))
	for _, run := range runs {
		all = append(all, Signed{run.RunID, run.ValidatorID})
	}
	return all
}

// BundleRoots returns the bundle roots of the approved candidate and, if only a part of it was approved,
// of the derived bundles; none twice.
func (a *Approved) BundleRoots() []string {
	roots := a.approval.preview.BundleRoots()
	for run := range a.restore.Plan().Runs() {
		if root := run.Bundle().Root(); !slices.Contains(roots, root) {
			roots = append(roots, root)
		}
	}
	return roots
}

func sameOutput(a, b Item) bool {
	return a.Path == b.Path && a.SHA256 == b.SHA256 && a.Bytes == b.Bytes && a.Mode == b.Mode && a.Time == b.Time
}
