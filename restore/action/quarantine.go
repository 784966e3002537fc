package action

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/quarantine"
)

// suspect is a candidate, or a run of it, as quarantine knows it.
func suspect(o preview.Origin, source string) quarantine.Candidate {
	return quarantine.Candidate{Source: source, RunDirs: o.RunDirs, RestoreRoot: o.RestoreRoot}
}

// Assess marks a candidate with what the rules of quarantine have found in its preview (protocol
// section 12), and returns what holds it, and whether a mark has come or gone.
func Assess(ctx context.Context, store *quarantine.Store, o preview.Origin, p *preview.Preview) (held []quarantine.Mark, changed bool, err error) {
	held, changes, err := store.Update(ctx, suspect(o, p.Source()), p.Findings())
	if err != nil {
		return nil, len(changes) > 0, err
	}
	ofRuns, err := heldRuns(ctx, store, o, p)
	return append(held, ofRuns...), len(changes) > 0, err
}

// AssessUntrusted marks a candidate of which the operator's trust allows no preview.
func AssessUntrusted(ctx context.Context, store *quarantine.Store, o preview.Origin, source string, found []quarantine.Finding) error {
	_, _, err := store.Update(ctx, suspect(o, source), found)
	return err
}

// CheckQuarantine returns a [*quarantine.HeldError] for a candidate that is held. Nothing is
// committed of it.
func CheckQuarantine(ctx context.Context, store *quarantine.Store, o preview.Origin, p *preview.Preview) error {
	held, err := store.Held(ctx, suspect(o, p.Source()), p.Findings())
	if err != nil {
		return err
	}
	ofRuns, err := heldRuns(ctx, store, o, p)
	if held = append(held, ofRuns...); err == nil && len(held) > 0 {
		err = &quarantine.HeldError{Source: p.Source(), Marks: held}
	}
	return err
}

// CheckRecorded returns a [*quarantine.HeldError] for a candidate that is held by its record, before it is
// looked at again.
func CheckRecorded(ctx context.Context, store *quarantine.Store, source string) error {
	known, err := store.Show(ctx, source)
	if errors.Is(err, quarantine.ErrUnknown) {
		return nil
	}
	if held := known.Held(); err == nil && len(held) > 0 {
		err = &quarantine.HeldError{Source: source, Marks: held}
	}
	return err
}

// heldRuns is what holds the runs of a chain: a vague answer for one of them is not an answer
// for it in a chain either.
func heldRuns(ctx context.Context, store *quarantine.Store, o preview.Origin, p *preview.Preview) ([]quarantine.Mark, error) {
	var marks []quarantine.Mark
	for _, root := range p.BundleRoots() {
		if root == p.Source() {
			continue
		}
		held, err := store.Held(ctx, suspect(o, root), nil)
		if err != nil {
			return nil, err
		}
		marks = append(marks, held...)
	}
	return marks, nil
}

// LogQuarantine returns the log of a quarantine: each change is in the audit log before it is made.
func LogQuarantine(open OpenLog) quarantine.Log {
	return func(c quarantine.Change) error {
		event := audit.Event{
			Kind: audit.Quarantined, Action: uuid.NewString(), Root: c.Candidate.RestoreRoot, Candidate: c.Candidate.Source,
			Reason: string(c.Mark.Rule) + ": " + c.Mark.Detail,
		}
		switch c.Kind {
		case quarantine.Clears:
			event.Kind = audit.QuarantineCleared
		case quarantine.Releases:
			event.Kind, event.Reason = audit.QuarantineReleased, c.Mark.Released.Reason+" ("+event.Reason+")"
		}
		return open.append(event)
	}
}

// NewestHeld returns the source of the candidate that is held, and was quarantined last, of those for a
// restore root, "" for all; "" if there is none.
func NewestHeld(records []quarantine.Record, root string) (source string) {
	var since time.Time
	for _, r := range records {
		for _, m := range r.Held() {
			if (root == "" || r.RestoreRoot == root) && (source == "" || m.Since.After(since)) {
				source, since = r.Source, m.Since
			}
		}
	}
	return source
}

// A VagueError is a statement that approves nothing, for which the candidate is held now.
type VagueError struct {
	Source, Preview string // ids
	Err             error
}

func (e *VagueError) Error() string { return e.Err.Error() }

// Unwrap returns the error in the statement.
func (e *VagueError) Unwrap() error { return e.Err }

// HoldVague marks the candidate of a preview that was answered with a vague statement
// (protocol sections 10 and 12), and returns a [*VagueError].
func HoldVague(ctx context.Context, store *quarantine.Store, record *preview.Record, text string, vague error) error {
	detail := fmt.Sprintf("preview %s was answered with %.200q", record.ID()[:12], text)
	held := store.Hold(ctx, suspect(record.Origin(), record.Source()), quarantine.Finding{Rule: quarantine.ApprovalVague, Detail: detail})
	return errors.Join(&VagueError{record.Source(), record.ID(), vague}, held)
}
