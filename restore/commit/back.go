package commit

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
)

// Back is a way back of a root to an earlier state: what goes and comes, and what
// is recorded of it.
type Back struct {
	Type      audit.Rollback // Session or Emergency
	Reason    string
	Target    string          // id of the snapshot that it restores; "" for none
	Affected  []string        // ids of the commits that it undoes
	Brings    []string        // ids of the commits that stand again afterwards
	Savepoint string          // id of the one that is active afterwards; "" for none
	Stays     bool            // the chain of savepoints stays as it is; Savepoint is ""
	Scope     []pathsafe.Path // what it may change; nil is the whole root
	// Plan returns what happens. It is given the snapshot of what may change, which
	// was taken just now; nothing is written yet. It may be called more than once.
	Plan func(before *snapshot.Snapshot) (staging.Exchange, error)
}

// Done says how a way back was recorded.
type Done struct {
	Action   string             // its id
	Snapshot *snapshot.Snapshot // of what was there before
}

// GoBack takes a root back (rollback contract, sections 4.2, 7 and 11): a snapshot
// of what can change is taken and logged first; all of it happens or nothing; what
// was previewed before is void. When it is done the chain of savepoints is that of
// the earlier state. The error is a [*staging.Error], whose Rollback is nil if the
// root is as it was, and halts the root if not; or an [*UnfinishedError], which halts
// nothing: it could not be taken back for now, or all of it is done, and that could not be
// recorded. In the last case there is a Done too.
func (r *Root) GoBack(ctx context.Context, b Back) (Done, error) {
	if r == nil || r.session == nil {
		return Done{}, fmt.Errorf("the restore root was not entered: %w", r.reason())
	}
	h := r.history
	if h.snapshots == nil {
		return Done{}, errors.New("there is no store of snapshots")
	}
	if r.entry.DryRun {
		return Done{}, errors.New("the restore root was entered for a dry run")
	}
	if h.authority != nil { // whatever becomes of it, what was allowed before is void
		if err := h.authority.Attempt(h.root); err != nil {
			return Done{}, err
		}
	}
	way := &way{Back: b}
	way.done.Action = uuid.NewString()
	h.way = way
	defer func() { h.way = nil }()
	before, err := h.snap(ctx, way.done.Action, b.Scope, way.said)
	if err != nil {
		return Done{}, err
	}
	way.done.Snapshot = before
	exchange, err := b.Plan(before)
	if err != nil {
		return Done{}, err
	}
	exchange.Attempt, exchange.Leftover = way.done.Action, way.leftover
	if err := r.session.Exchange(ctx, exchange); err != nil {
		r.halt(err)
		if stands := r.unmarked(err, exchange.Kind); stands != nil {
			return Done{}, stands
		}
		return Done{}, h.failed(err, err)
	}
	return way.done, way.end(exchange.Kind, r.entry.Leftover)
}

// way is a way back that is under way.
type way struct {
	Back
	done Done

	recorded bool   // all that is known of it is written
	left     string // the name of the staging directory that is left
	why      error
}

// leftover notes that the end of the way has failed, in its records or in what is
// left of it.
func (w *way) leftover(name string, err error) { w.left, w.why = name, err }

// end says how a way that is complete has ended. If its records are not, nothing halts the
// root: the next one to enter it writes them.
func (w *way) end(kind string, tell func(name string, err error)) error {
	if w.why == nil {
		return nil
	}
	if !w.recorded {
		why := fmt.Errorf("it is done, and its records could not be written: %w", w.why)
		return &UnfinishedError{&staging.HaltError{Attempt: w.done.Action, Kind: kind, Staging: w.left, Err: why}}
	}
	if tell != nil {
		tell(w.left, w.why)
	}
	return nil
}

// The members of what a snapshot before a way back keeps, so that whoever finds
// the way interrupted can end it.
const (
	saidAfter    = "savepoint_after"
	saidAffected = "affected"
	saidType     = "rollback"
	saidBrings   = "brings"
	saidReason   = "reason"
	saidTarget   = "target"
	saidStays    = "savepoints_stay"
)

// TargetOf is the id of the snapshot to which the action after a snapshot goes back; "" for
// none.
func TargetOf(h snapshot.Header) string { return h.Said[saidTarget] }

// Brings are the ids of the commits that the action after a snapshot brings back.
func Brings(h snapshot.Header) []string { return strings.Fields(h.Said[saidBrings]) }

// SavepointNow is the member of a snapshot that says which savepoint was active.
const SavepointNow = "savepoint"

func (w *way) said(active string) map[string]string {
	said := map[string]string{
		SavepointNow: active, saidAfter: w.Savepoint, saidType: string(w.Type), saidReason: w.Reason,
		saidAffected: strings.Join(w.Affected, " "), saidBrings: strings.Join(w.Brings, " "),
		saidTarget: w.Target,
	}
	if w.Stays {
		said[saidStays] = "yes"
	}
	return said
}

// beganBack logs the beginning of a way back.
func (h *history) beganBack(attempt string) error {
	w := h.way
	if w == nil {
		return errors.New("internal error: no rollback in progress")
	}
	return h.append(audit.Event{
		Kind: audit.RollbackBegin, Action: attempt, Rollback: w.Type, Snapshot: w.done.Snapshot.ID(), Reason: w.Reason, Actions: w.Affected, Brings: w.Brings,
	})
}

// Refused logs that a rollback could not begin, and why, and returns why. An error of one
// that had begun is logged already.
func (r *Root) Refused(kind audit.Rollback, affected []string, why error) error {
	var e *staging.Error
	var unfinished *UnfinishedError
	begun := errors.As(why, &e) && e.Attempt != "" || errors.As(why, &unfinished)
	if why == nil || begun || r == nil || r.history == nil || r.entry.DryRun {
		return why
	}
	return errors.Join(why, r.history.append(audit.Event{
		Kind: audit.RollbackRefused, Action: uuid.NewString(), Rollback: kind, Actions: affected, Reason: why.Error(),
	}))
}

// completedBack is the end of a way back, also of one that was found complete: what
// it is the snapshot says that was taken before it.
func (h *history) completedBack(attempt string) error {
	before, err := h.before(attempt)
	if err != nil {
		return err
	}
	affected := strings.Fields(before.Said[saidAffected])
	if before.Said[saidStays] == "" {
		if err := h.savepoints.activate(h.root, before.Said[saidAfter]); err != nil {
			return err
		}
	}
	if err := h.revoke(affected); err != nil {
		return err
	}
	err = h.once(audit.Event{
		Kind: audit.RolledBack, Action: attempt, Rollback: audit.Rollback(before.Said[saidType]), Snapshot: before.ID,
		Reason: before.Said[saidReason], Actions: affected, Brings: Brings(before),
	})
	if h.way != nil {
		h.way.recorded = err == nil
	}
	return err
}

// revoke takes back what was allowed to look at the commits that were undone.
func (h *history) revoke(commits []string) error {
	if h.authority == nil {
		return nil
	}
	roots, err := h.savepoints.bundlesOf(h.root, commits)
	if err != nil {
		return err
	}
	return h.authority.RolledBack(h.root, roots)
}

// before is the snapshot that was taken before an action.
func (h *history) before(attempt string) (snapshot.Header, error) {
	if h.way != nil && h.way.done.Action == attempt {
		return h.way.done.Snapshot.Header(), nil
	}
	if h.snapshots == nil {
		return snapshot.Header{}, errors.New("there is no store of snapshots")
	}
	for _, root := range []string{h.root, ""} { // the root may have moved since
		all, _, err := h.snapshots.Survey(root)
		if err != nil {
			return snapshot.Header{}, err
		}
		for _, s := range all {
			if s.Action == attempt {
				return s, nil
			}
		}
	}
	return snapshot.Header{}, fmt.Errorf("the snapshot before %s is gone", attempt)
}

// snap takes the snapshot before an action (rollback contract, section 4.2). What
// cannot be taken back is not begun.
func (h *history) snap(ctx context.Context, attempt string, scope []pathsafe.Path, said func(active string) map[string]string) (*snapshot.Snapshot, error) {
	active, err := h.savepoints.active(h.root)
	if err != nil {
		return nil, err
	}
	log, err := h.logged()
	if err != nil {
		return nil, err
	}
	h.snapped = true
	s, err := h.snapshots.Take(ctx, snapshot.Request{
		Root: h.root, Dir: h.dir, Kind: snapshot.PreAction, Action: attempt, Scope: scope, Said: said(active),
		Log: log, Key: h.savepoints.key, AnyKey: h.way != nil,
	})
	if err != nil {
		return nil, fmt.Errorf("no snapshot could be taken before it, so it is not begun: %w", err)
	}
	if h.took != nil {
		h.took(s)
	}
	return s, nil
}
