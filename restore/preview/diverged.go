package preview

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/restore/statement"
)

// The decisions on a file that is not the one that a change set started from: the change is restored
// anyway, or the existing file stays.
const (
	Replace statement.Verdict = "replace"
	Keep    statement.Verdict = "keep"
)

// IsDiverged reports whether the target of an item is not the one that the change set started from, and the
// operator has not overruled that.
func (i *Item) IsDiverged() bool { return i.Class == Diverged }

// diverges removes an item from the proposal, and keeps the class that it has if the operator overrules.
func (i *Item) diverges(d restore.Divergence) {
	i.overruled, i.diverged = i.Class, d.State
	i.Class, i.free = Diverged, false
}

// divergences lists the items that have diverged.
func (d *deciding) divergences() []Conflict {
	var conflicts []Conflict
	for n := range d.items {
		i := &d.items[n]
		if !i.IsDiverged() || d.lists[n] != unwanted || i.Label != InConflict {
			continue
		}
		claim := "the change set makes this file, and started from another content than is there"
		risk := "later changes here would be displaced; a rollback brings it back"
		switch {
		case i.Removed:
			claim = "the change set removes this file, and started from another content than is there"
		case i.Before == nil:
			claim, risk = "the change set changes this file", "files removed here later would exist again"
		}
		conflicts = append(conflicts, Conflict{
			Type:      StateConflict,
			Path:      i.Path,
			Numbers:   []int{i.Number},
			Current:   i.diverged,
			Claim:     claim,
			Authority: "current state outranks the restore candidate",
			Risk:      risk,
			Diverged:  true,
		})
	}
	return conflicts
}

// resolution returns the option that decides a conflict about a diverged file, short enough for one row of a
// summary on 80 columns.
func (c *Conflict) resolution() string {
	return fmt.Sprintf("preview with --decide %s=replace or =keep", c.ID)
}

// decideDivergence records the decision on a diverged file.
func (d *deciding) decideDivergence(c *Conflict, verdict statement.Verdict) {
	c.Decision, c.Resolution = string(verdict), "decided: "+string(verdict)
	if verdict == Replace {
		d.overrule(c)
		return
	}
	for _, number := range c.Numbers {
		i := &d.items[number-1]
		i.Label, i.Reason = OperatorRejected, joined(c.ID+": what is there is kept", i.Reason)
	}
}

// overrule proposes the diverged item of a conflict.
func (d *deciding) overrule(c *Conflict) {
	for _, number := range c.Numbers {
		i := &d.items[number-1]
		i.Class, i.free = i.overruled, true
		where, name, why := d.place(i)
		if where == proposed && name == RestoreActive {
			name = NeedsConfirmation
		}
		d.lists[number-1], i.Label = where, name
		i.Reason = joined(why, fmt.Sprintf("%s: it is not what the change started from, which was %s", c.ID, overruledText))
		d.restore.Overrule(i.Path)
	}
}

const overruledText = "overruled with --decide"

// mayHoldSecret reports whether an item of restricted context is proposed, or would be if the operator
// overruled its conflict.
func (d *deciding) mayHoldSecret(i *Item) bool {
	return i.Scope == scope.RestrictedContext && (d.proposes(i) || i.IsDiverged() && i.Label == InConflict)
}

// DivergedError reports a statement that approves nothing, since no file is proposed: those of these
// conflicts have diverged. It is an [ErrUnfit].
type DivergedError struct {
	Conflicts []int    // numbers, ascending; not empty
	Paths     []string // of their files
}

func (e *DivergedError) Error() string {
	const most = 5
	var paths []string
	for _, path := range e.Paths[:min(len(e.Paths), most)] {
		paths = append(paths, strconv.Quote(path))
	}
	if more := len(e.Paths) - most; more > 0 {
		paths = append(paths, fmt.Sprintf("%d more", more))
	}
	verb := "have"
	if len(e.Conflicts) == 1 {
		verb = "has"
	}
	text := fmt.Sprintf("%s (%s) %s diverged", strings.Join(paths, ", "), statement.FormatConflicts(e.Conflicts), verb)
	return fmt.Sprintf("%s: it proposes no file, since %s; decide that in a new preview", ErrUnfit, text)
}

func (e *DivergedError) Unwrap() error { return ErrUnfit }
