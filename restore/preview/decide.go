package preview

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/statement"
)

// deciding is the state of making a preview: its input, and the results of each step.
type deciding struct {
	restore *restore.Restore
	plan    *restore.Plan
	request *Request
	found   observed // the restore root; zero when only the candidate is judged

	runs       []string // run ids
	runTexts   []string // the same, as people read them
	claims     []claims // by run
	stale      bool     // the active savepoint is of a later candidate
	unsure     bool     // there is an active savepoint, and which of both is later is not known
	future     bool     // the completion time of the candidate is after now
	undeclared []string // paths of secrets that the signer has declared with another scope

	items     []Item // all, in order of number
	lists     []list // where each of them is
	conflicts []Conflict
}

// ErrDecision reports that a decision of the operator does not fit the preview.
var ErrDecision = errors.New("the decision does not fit the preview")

// decide follows the order of protocol section 4.1: scope, classes, conflicts,
// flags.
func decide(ctx context.Context, r *restore.Restore, q *Request, found observed) (*deciding, error) {
	d := &deciding{restore: r, plan: r.Plan(), request: q, found: found, claims: claimsOfAll(r.Plan())}
	for run := range d.plan.Runs() {
		d.runs, d.runTexts = append(d.runs, run.Bundle().RunID()), append(d.runTexts, RunText(run.Bundle()))
	}
	d.date()
	if err := d.itemsOf(ctx); err != nil {
		return nil, err
	}
	d.label()
	d.conflictsOf()
	if err := d.takeDecisions(); err != nil {
		return nil, err
	}
	return d, nil
}

// date compares the date of the candidate with that of the active savepoint. A date that is unknown,
// unreadable or in the future is ignored.
func (d *deciding) date() {
	completed, undated := completedOf(d.plan)
	now, current := d.request.Now, d.request.Current
	d.future = !now.IsZero() && completed.After(now)
	d.unsure = current.ID != "" && (undated > 0 || d.future || current.Completed.IsZero())
	d.stale = !d.unsure && completed.Before(current.Completed)
}

// takeDecisions records the operator's decisions on conflicts. A decision to replace or keep a diverged file
// may name the item instead, and is recorded by the ID of the item, because the numbers of conflicts change
// when another file diverges.
func (d *deciding) takeDecisions() error {
	numbers := make(map[string]int, len(d.conflicts))
	for n := range d.conflicts {
		numbers[d.conflicts[n].ID] = n
		if c := &d.conflicts[n]; c.Diverged {
			numbers[c.Items[0]] = n
		}
	}
	byItem := map[string]statement.Verdict{}
	for _, id := range slices.Sorted(maps.Keys(d.request.Asked.Decisions)) {
		verdict := d.request.Asked.Decisions[id]
		n, ok := numbers[id]
		isDivergence := verdict == Replace || verdict == Keep
		switch {
		case !ok && isDivergence && strings.HasPrefix(id, "R-"):
			return fmt.Errorf("%w: %s is not an item that has diverged, so it cannot be %q", ErrDecision, id, verdict)
		case !ok:
			return fmt.Errorf("%w: there is no conflict %q", ErrDecision, id)
		case isDivergence && !d.conflicts[n].Diverged:
			return fmt.Errorf("%w: %s is not about a file that has diverged, so it cannot be %q", ErrDecision, id, verdict)
		case isDivergence && byItem[d.conflicts[n].Items[0]] != "":
			return fmt.Errorf("%w: there are two decisions on %s", ErrDecision, d.conflicts[n].Items[0])
		case isDivergence:
			byItem[d.conflicts[n].Items[0]] = verdict
			d.decideDivergence(&d.conflicts[n], verdict)
			continue
		}
		byItem[id] = verdict
		switch {
		case !slices.Contains(statement.Verdicts(), verdict):
			return fmt.Errorf("%w: %s cannot be %q", ErrDecision, id, verdict)
		case d.conflicts[n].ByName:
			return fmt.Errorf("%w: %s is acknowledged by the statement only", ErrDecision, id)
		case verdict == statement.Rejected && len(d.conflicts[n].Numbers) == 0:
			return fmt.Errorf("%w: %s concerns no item, so no item can be left out for it; to restore nothing, do not approve", ErrDecision, id)
		}
		d.conflicts[n].Decision = string(verdict)
		d.reject(&d.conflicts[n])
	}
	d.request.Asked.Decisions = byItem
	return nil
}

// touches reports whether a conflict concerns one of these items, which are sorted, or the whole candidate.
// A result artifact blocks every restore.
func (c *Conflict) touches(items []int) bool {
	if len(c.Numbers) == 0 {
		return true
	}
	return slices.ContainsFunc(c.Numbers, func(n int) bool {
		_, ok := slices.BinarySearch(items, n)
		return ok
	})
}
