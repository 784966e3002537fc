package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/statecheck"
	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
)

// haltedError is a root in which something cannot be ended without a person, with
// what is recorded of it.
type haltedError struct {
	root      string // the path by which it is known
	attempts  []haltedAttempt
	bar       *barMark // of a rollback that could not be carried out; nil for none
	inRecover bool     // recover reports that
	// inEmergency: an emergency rollback reports that, since the root has no snapshot to go back to.
	inEmergency bool
	newest      string // id of the newest snapshot of all of it that an emergency rollback may go back to; "" for none
	err         error
}

// haltedAttempt is an attempt that halts a root. Fields that the audit log does not have are zero.
type haltedAttempt struct {
	*staging.HaltError
	kind   string               // what began, like "commit"
	since  time.Time            // of the first that the log has of it
	entry  int64                // the last entry of it
	before string               // id of the snapshot that was taken before it
	tree   *halftree            // nil where its journal cannot be believed
	mount  *pathsafe.MountError // that hides what it has changed
	owner  int                  // of its staging directory, where that is another user; else -1
}

func (e *haltedError) Error() string { return strings.ReplaceAll(e.err.Error(), "\n", "; ") }
func (e *haltedError) Unwrap() error { return e.err }

// haltedIn adds the records of the attempts that halt the root to an error, if that is the error.
func haltedIn(state *statedir.Dir, root string, err error) error {
	if overlap, is := errors.AsType[*action.OverlapError](err); is {
		root = overlap.Other.Path
	}
	if barred, is := errors.AsType[*action.BarredError](err); is {
		mark, _ := state.BarOf(barred.Root)
		return &haltedError{root: action.RootPath(root), bar: &barMark{mark}, err: err}
	}
	halts := action.HaltsOf(err)
	if len(halts) == 0 {
		return err
	}
	return haltedBy(state, root, err, halts)
}

// A failedError is a commit that could not be rolled back, with what halts the root now. The
// code is that of its law.
type failedError struct {
	halted *haltedError
	err    error
}

func (e *failedError) Error() string { return e.err.Error() }
func (e *failedError) Unwrap() error { return e.err }

// failedIn adds the record of the attempt to the error of a commit, if that halts the root.
func failedIn(state *statedir.Dir, root string, err error) error {
	var failed *staging.Error
	if !errors.As(err, &failed) || failed.Rollback == nil || failed.Attempt == "" {
		return err
	}
	halt := &staging.HaltError{Attempt: failed.Attempt, Kind: staging.KindCommit, Staging: failed.Staging, Err: err}
	return &failedError{haltedBy(state, root, err, []*staging.HaltError{halt}), err}
}

// haltedBy is an error with the records of attempts.
func haltedBy(state *statedir.Dir, root string, err error, halts []*staging.HaltError) *haltedError {
	e := &haltedError{root: action.RootPath(root), err: err}
	for _, halt := range halts {
		e.attempts = append(e.attempts, haltedAttempt{HaltError: halt, owner: -1})
	}
	e.lookUp(state)
	e.newest = newestWhole(state, root)
	e.inspect(state)
	return e
}

// newestWhole returns the id of the newest snapshot of a root that an emergency rollback may go back
// to; it is not verified. What cannot be read is none.
func newestWhole(state *statedir.Dir, root string) string {
	name, err := nameOfRoot(state, action.RootPath(root), true)
	if err != nil {
		return ""
	}
	store, err := statecheck.Snapshots(state)
	if err != nil {
		return ""
	}
	defer store.Close()
	all, _, _ := store.Survey(name) // as far as it can be read
	if newest := snapshot.NewestForEmergency(all); newest != nil {
		return newest.ID
	}
	return ""
}

// lookUp finds the attempts in the audit log. Entries that cannot be read are skipped; another
// check reports that damage.
func (e *haltedError) lookUp(state *statedir.Dir) {
	log, err := openLog(state)
	if err != nil {
		return
	}
	defer log.Close()
	_, _ = log.Read(func(entry audit.Entry) error {
		for i := range e.attempts {
			if e.attempts[i].Attempt == entry.Action {
				e.attempts[i].see(&entry)
			}
		}
		return nil
	})
}

func (a *haltedAttempt) see(e *audit.Entry) {
	if kind, begins := strings.CutSuffix(string(e.Kind), "_begin"); begins {
		a.kind = kind
	}
	if a.since.IsZero() {
		a.since = e.Time
	}
	if e.Snapshot != "" {
		a.before = e.Snapshot
	}
	a.entry = e.Sequence
}

// where describes where the staging directory and the record of an attempt are.
func (a *haltedAttempt) where() string {
	kind, record := "", "the audit log has no entry of it"
	if a.kind != "" {
		kind = " (" + kindText(a.kind) + ")"
	}
	if a.entry > 0 {
		record = fmt.Sprintf("since %s, entry %d of the audit log (\"spectrum audit show\")", a.since.Format(time.RFC3339), a.entry)
	}
	if a.Staging == "" {
		return fmt.Sprintf("attempt %s%s was not ended: %s", a.Attempt, kind, record)
	}
	whose := ""
	if a.owner >= 0 {
		whose = ", which belongs to " + machine.UserText(a.owner) + ", and not to a command of this user"
	}
	return fmt.Sprintf("attempt %s%s stands in %q%s: %s", a.Attempt, kind, a.Staging, whose, record)
}

// hints name each attempt, its record, and the next commands: last the one that loses nothing.
func (e *haltedError) hints() []string {
	if e.bar != nil {
		return e.bar.hints(e.root)
	}
	if e.inEmergency {
		return []string{"no whole snapshot that a person or a timer took of this root verifies, so nothing was changed", endsHalt(e.root)}
	}
	var hints []string
	for i := range e.attempts {
		hints = append(hints, e.attempts[i].where())
		hints = append(hints, e.attempts[i].stands(e.root)...)
	}
	root := foreignOption(e.root) + shellQuote(e.root)
	next := fmt.Sprintf("run \"spectrum recover %s\", which tries again", root)
	if e.inRecover {
		next = "run this again"
	}
	hints = append(hints, acknowledgeHint(root))
	if e.newest != "" {
		hints = append(hints, fmt.Sprintf("\"spectrum rollback --emergency %s\" restores snapshot %s, if it verifies, whatever the current state", root, e.newest[:shortest]))
	}
	hidden := slices.IndexFunc(e.attempts, func(a haltedAttempt) bool { return a.mount != nil })
	switch {
	case hidden >= 0:
		return append(hints, mountHint(e.attempts[hidden].mount, next))
	case !slices.ContainsFunc(e.attempts, func(a haltedAttempt) bool { return a.Staging != "" }):
		return hints
	case slices.ContainsFunc(e.attempts, func(a haltedAttempt) bool { return a.owner >= 0 }):
		return append(hints, "ask that user what it is; if no command still needs it, move it out of the root, then retry")
	case slices.ContainsFunc(e.attempts, func(a haltedAttempt) bool { return a.tree == nil }):
		return append(hints, haltHints(root)...)
	case slices.ContainsFunc(e.attempts, func(a haltedAttempt) bool {
		return a.tree.foreign+len(a.tree.Foreign)+len(a.tree.InTheWay) > 0 && len(a.tree.Replaced) == 0
	}):
		next = "move away the files named as changed, foreign or in the way, then " + next
	}
	return append(hints, next)
}

// details are what a program needs of it.
func (e *haltedError) details() map[string]any {
	attempts := make([]any, 0, len(e.attempts))
	for _, a := range e.attempts {
		m := map[string]any{
			"attempt": a.Attempt, "audit_entry": nil, "kind": orNull(a.kind), "owner": nil, "since": nil, "snapshot": orNull(a.before), "staging": a.Staging, "stands": a.tree.fields(e.root), "why": jsonText(a.Err.Error()),
		}
		if a.owner >= 0 {
			m["owner"] = a.owner
		}
		if a.entry > 0 {
			m["audit_entry"], m["since"] = a.entry, a.since.Format(time.RFC3339Nano)
		}
		attempts = append(attempts, m)
	}
	details := map[string]any{"attempts": attempts, "restore_root": jsonText(e.root)}
	if e.bar != nil {
		details["rollback_refused"] = e.bar.fields()
	}
	return details
}
