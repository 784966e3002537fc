package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/staging"
)

// stagingPrefix and the id of an attempt are the name of its staging directory.
const stagingPrefix = ".spectrum06_staging_"

// haltedError is a root in which something cannot be ended without a person, with
// what is recorded of it.
type haltedError struct {
	root     string // the path by which it is known
	attempts []haltedAttempt
	err      error
}

// haltedAttempt is an attempt that halts a root. What the audit log does not say
// of it is zero.
type haltedAttempt struct {
	*staging.HaltError
	kind  string    // what began, like "commit"
	since time.Time // of the first that the log has of it
	entry int64     // the last entry of it
}

func (e *haltedError) Error() string { return strings.ReplaceAll(e.err.Error(), "\n", "; ") }
func (e *haltedError) Unwrap() error { return e.err }

// haltedIn gives an error the records of the attempts that halt the root, if that
// is what it says.
func haltedIn(state *statedir.Dir, root string, err error) error {
	halts := action.HaltsOf(err)
	if len(halts) == 0 {
		return err
	}
	return haltedBy(state, root, err, halts)
}

// haltedBy is an error with the records of attempts.
func haltedBy(state *statedir.Dir, root string, err error, halts []*staging.HaltError) *haltedError {
	e := &haltedError{root: action.RootPath(root), err: err}
	for _, halt := range halts {
		e.attempts = append(e.attempts, haltedAttempt{HaltError: halt})
	}
	e.lookUp(state)
	return e
}

// lookUp finds the attempts in the audit log. As far as that cannot be read, what
// it says of them is not known; its damage is not what this is about.
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
	a.entry = e.Sequence
}

// where says where an attempt stands, and where its record is.
func (a *haltedAttempt) where() string {
	kind, record := "", "the audit log does not know it"
	if a.kind != "" {
		kind = " (" + kindText(a.kind) + ")"
	}
	if a.entry > 0 {
		record = fmt.Sprintf("since %s, entry %d of the audit log (\"spectrum audit show\")", a.since.Format(time.RFC3339), a.entry)
	}
	return fmt.Sprintf("attempt %s%s stands in %q: %s", a.Attempt, kind, a.Staging, record)
}

// hints name each attempt, its record, and the next command.
func (e *haltedError) hints() []string {
	var hints []string
	for i := range e.attempts {
		hints = append(hints, e.attempts[i].where())
	}
	return append(hints, haltHints(foreignOption(e.root)+shellQuote(e.root))...)
}

// details are what a program needs of it.
func (e *haltedError) details() map[string]any {
	attempts := make([]any, 0, len(e.attempts))
	for _, a := range e.attempts {
		m := map[string]any{
			"attempt": a.Attempt, "audit_entry": nil, "kind": orNull(a.kind), "since": nil, "staging": a.Staging, "why": jsonText(a.Err.Error()),
		}
		if a.entry > 0 {
			m["audit_entry"], m["since"] = a.entry, a.since.Format(time.RFC3339Nano)
		}
		attempts = append(attempts, m)
	}
	return map[string]any{"attempts": attempts, "restore_root": jsonText(e.root)}
}
