package audit

import (
	"slices"
	"strings"
	"time"
)

// A State is how far an action has got.
type State string

const (
	// Open means that the action has begun and not ended: it is at work, or was killed.
	Open State = "unfinished"
	// Done means that all of it is in place.
	Done State = "done"
	// Failed means that nothing of it is left in the root.
	Failed State = "failed"
	// Unresolved means that it could be neither undone nor completed, and halts its root.
	Unresolved State = "halted"
	// LeftAsIs means that a person has released the root from it, and it stays as it was then.
	LeftAsIs State = "released"
	// Refused means that a rollback could not begin.
	Refused State = "refused"
)

// An Action is what a log has about one commit or rollback.
type Action struct {
	ID        string // a UUID
	Root      string // as it stands in the log
	State     State
	Began     time.Time // zero where the log does not have its beginning
	Ended     time.Time // zero until it has ended
	UID       int       // of who began it
	Operator  string    // name of that user; "" if the system knew none
	Rollback  Rollback  // the type of a rollback; "" of a commit
	Preview   string    // that was approved for a commit
	Savepoint string    // that a commit has published; "" for none
	Snapshot  string    // that was taken before it
	Undoes    []string  // ids of commits
	Brings    []string  // ids of commits that it has brought back
	Reason    string    // why it was done, or what it failed with
	UndoneBy  string    // id of the rollback that has undone this commit, and that no other one has undone since
}

// IsCommit reports whether it is one.
func (a *Action) IsCommit() bool { return a.Rollback == "" }

// PartlyUndone are the commits that a rollback was to undo and has undone in part only: they are undone
// and brought back by it.
func (a *Action) PartlyUndone() (ids []string) {
	for _, id := range a.Undoes {
		if a.State == Done && slices.Contains(a.Brings, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// History is what a log has about commits and rollbacks, as far as [History.See] has seen its
// entries. The zero value has seen none.
type History struct {
	actions []*Action
	byID    map[string]*Action
}

// Actions returns them in the order in which they began. An action whose beginning is not in the
// log is at the place of its first entry.
func (h *History) Actions() []*Action { return h.actions }

// See takes the next entry.
func (h *History) See(e *Entry) {
	switch e.Kind { // others are no part of an action
	case CommitBegin:
		a := h.begin(e)
		a.Preview, a.Reason = e.Preview, e.Reason
	case CommitEnd:
		a := h.end(e, Done)
		if rest, has := strings.CutPrefix(e.Reason, savepointPrefix); has {
			a.Savepoint, _, _ = strings.Cut(rest, "; ") // the operator's reason may follow
		}
	case RolledBack:
		h.rolledBack(e)
	case Halted:
		a := h.of(e)
		a.State, a.Reason = Unresolved, e.Reason
	case Released:
		a := h.of(e)
		if isBack := a.Rollback != ""; a.State != Refused && (a.State != Failed || !isBack) { // else it ends the halt of a rollback that was not carried out
			h.end(e, LeftAsIs).Reason = e.Reason
		}
	case RollbackBegin:
		a := h.begin(e)
		a.Rollback, a.Snapshot, a.Reason, a.Undoes, a.Brings = e.Rollback, e.Snapshot, e.Reason, e.Actions, e.Brings
	case RollbackRefused:
		a := h.begin(e)
		a.Rollback, a.Undoes, a.State, a.Reason, a.Ended = e.Rollback, e.Actions, Refused, e.Reason, e.Time
	}
}

// rolledBack takes the end of an action that is undone, or of a rollback that is done: only that
// names the snapshot before it.
func (h *History) rolledBack(e *Entry) {
	if e.Snapshot == "" {
		a := h.end(e, Failed)
		a.Reason = e.Reason
		return
	}
	a := h.end(e, Done)
	a.Rollback, a.Snapshot, a.Reason, a.Undoes, a.Brings = e.Rollback, e.Snapshot, e.Reason, e.Actions, e.Brings
	for _, id := range e.Actions {
		if c := h.byID[id]; c != nil {
			c.UndoneBy = e.Action
		}
	}
	for _, id := range e.Brings {
		if c := h.byID[id]; c != nil {
			c.UndoneBy = ""
		}
	}
}

func (h *History) begin(e *Entry) *Action {
	a := h.of(e)
	a.State, a.Began, a.UID, a.Operator = Open, e.Time, e.UID, e.Operator
	return a
}

func (h *History) end(e *Entry, state State) *Action {
	a := h.of(e)
	a.State, a.Ended = state, e.Time
	return a
}

// of returns the action of an entry. One whose beginning the log lacks has who ended it.
func (h *History) of(e *Entry) *Action {
	if a := h.byID[e.Action]; a != nil {
		return a
	}
	a := &Action{ID: e.Action, Root: e.Root, UID: e.UID, Operator: e.Operator, Snapshot: e.Snapshot}
	if h.byID == nil {
		h.byID = map[string]*Action{}
	}
	h.byID[e.Action] = a
	h.actions = append(h.actions, a)
	return a
}
