package preview

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/restore/statement"
)

// The decisions on a conflict with a file that is not what a change set started from: the change
// is restored all the same, or what is there stays.
const (
	Replace statement.Verdict = "replace"
	Keep    statement.Verdict = "keep"
)

// IsDiverged reports whether something else is at the target of an item than the change set
// started from, and the operator has not said that it is restored all the same.
func (i *Item) IsDiverged() bool { return i.Class == Diverged }

// diverges takes an item, which is as it would be if the operator said so, off what is proposed.
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

// resolution says how a conflict with a file that has diverged is decided, in what a summary
// shows of a row on 80 columns.
func (c *Conflict) resolution() string {
	return fmt.Sprintf("preview with --decide %s=replace or =keep", c.ID)
}

// decideDivergence enters what was decided on a file that has diverged.
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

// overrule proposes the item of a conflict although it has diverged.
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

// mayHoldSecret reports whether an item of restricted context is proposed, or would be if the
// operator said so.
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
