package action

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/google/uuid"
	"github.com/spectrumfs/spectrum/restore/audit"
)

// A Settled is a restore root in which nothing is unfinished, since it was entered and every attempt in
// it has ended. An operator completes its recovery in this order, and every step needs the value of the
// one before it:
//
//  1. The root is entered, if need be with the release of what cannot be undone: [Root.Settled].
//  2. The records of the root are checked: [Settled.Checked].
//  3. What is lost of them is accepted with a statement: [Checked.AcceptLoss]. They are checked again.
//  4. The halt that a rollback has left ends; if something is damaged, with a statement:
//     [Checked.EndBar].
type Settled struct {
	root string
	open OpenLog
	bars Bars
}

// errUnsettled reports an entry that ends nothing in the root.
var errUnsettled = errors.New("a root that was entered for a preview or a dry run may have unfinished attempts")

// Settled returns the entered root for the steps that follow after it is left. Open opens its audit log.
func (r *Root) Settled(open OpenLog) (Settled, error) {
	if r.entry.Previewed || r.entry.DryRun || r.entry.Bars == nil {
		return Settled{}, errUnsettled
	}
	return Settled{r.history.root, open, r.entry.Bars}, nil
}

// Root is the path that the root is known by, as [Root.Path].
func (s Settled) Root() string { return s.root }

// A Checked is a settled root, and what a check of its records has found.
type Checked struct {
	Settled
	isDamaged bool
	lost      []string
}

// Checked returns the root with the result of a check. Lost are the IDs of the savepoints and snapshots
// that are lost, or that the audit log does not prove.
func (s Settled) Checked(isDamaged bool, lost []string) Checked {
	return Checked{s, isDamaged || len(lost) > 0, slices.Clone(lost)}
}

// IsDamaged reports whether the check has found damage, or a loss.
func (c Checked) IsDamaged() bool { return c.isDamaged }

// Lost returns the IDs of what is lost.
func (c Checked) Lost() []string { return slices.Clone(c.lost) }

// AcceptLoss logs that an operator accepts the loss, with the statement and, unless "", the reason.
//
// After an audit log was deleted or cut, it does not prove earlier actions; snapshots, savepoints or the
// host's key may be lost too. Every check reports that from then on. Only a backup restores them; so an
// operator can accept the loss, and the log records the acceptance with exactly these records.
func (c Checked) AcceptLoss(statement, reason string) error {
	return c.open.append(audit.Event{Kind: audit.LossAccepted, Action: uuid.NewString(), Root: c.root, Lost: c.lost, Reason: withReason(statement, reason)})
}

// ErrUnstated reports that a halt ends only with a statement of the operator.
var ErrUnstated = errors.New("something of what is kept of the root is damaged, so the halt ends only with a statement")

// CanEndBar returns a [*BarredError] if the mark of the halt cannot be removed, as far as can be seen: the
// end of a halt must not be asked for, or logged, while the halt goes on.
func (c Checked) CanEndBar() error {
	if err := c.bars.Unbarrable(c.root); err != nil {
		return &BarredError{c.root, err}
	}
	return nil
}

// EndBar logs that an operator has ended the halt that a rollback has left, then ends it. If something of
// the records is damaged, that needs a statement ([ErrUnstated]). The ID is that of the rollback; for ""
// the log has the last rollback that could not begin in the root.
func (c Checked) EndBar(id, statement, reason string) error {
	if err := c.CanEndBar(); err != nil {
		return err
	}
	why := "recover found nothing unfinished and nothing damaged"
	switch {
	case c.isDamaged && statement == "":
		return ErrUnstated
	case c.isDamaged:
		why = strconv.Quote(statement)
	}
	event := audit.Event{Kind: audit.Released, Action: id, Root: c.root, Reason: withReason(why, reason)}
	if id == "" {
		event.Action = c.lastRefusal()
	}
	if err := c.open.append(event); err != nil {
		return err
	}
	return c.bars.Unbar(c.root)
}

// lastRefusal returns the ID of the last rollback that could not begin in the root; a new one if the log
// has none.
func (c Checked) lastRefusal() string {
	id := uuid.NewString()
	if log, err := c.open(); err == nil { // the next use of the log reports an error
		defer log.Close()
		_, _ = log.Read(func(e audit.Entry) error {
			if e.Kind == audit.RollbackRefused && audit.RootOf(e.Root) == c.root {
				id = e.Action
			}
			return nil
		})
	}
	return id
}

// withReason adds the operator's reason to what is logged.
func withReason(logged, reason string) string {
	if reason == "" {
		return logged
	}
	return fmt.Sprintf("%s; %q", logged, reason)
}
