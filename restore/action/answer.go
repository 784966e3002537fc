package action

import (
	"cmp"
	"context"
	"errors"

	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/quarantine"
	"github.com/spectrumfs/spectrum/restore/statement"
)

// An Answer is the operator's answer to a kept preview, and what decides about it: first
// [Answer.Statement]; then the caller makes the same preview again; then [Answer.Approve].
type Answer struct {
	Record *preview.Record
	Text   string // as it was typed
	Used   UsedPreviews
	Log    ReadLog
	// Quarantine opens the quarantine, which is closed after its use.
	Quarantine func() (*quarantine.Store, error)
}

// A SlipError is an answer that differs from a statement in form only. It approves nothing, and
// nothing is held for it.
type SlipError struct{ Err error }

func (e *SlipError) Error() string { return e.Err.Error() }

// Unwrap returns the error in the statement.
func (e *SlipError) Unwrap() error { return e.Err }

// Statement returns the statement of the answer. If the preview was used, the error is
// [preview.ErrUsed], whatever the answer: nothing more can be approved with it. Otherwise it is a
// [*SlipError], or, for a vague answer, a [*VagueError]; the candidate is held from then on.
func (a *Answer) Statement(ctx context.Context) (*statement.Statement, error) {
	said, vague := statement.Parse(statement.Unindented(a.Text))
	if err := CheckUsed(a.Record, a.Used, a.Log); err != nil {
		return nil, err
	}
	if vague == nil {
		return said, nil
	}
	if used, err := a.Used.Used(a.Record.ID()); used && err == nil { // by a commit that is unfinished
		return nil, preview.ErrUsed
	}
	if statement.DiffersInForm(statement.Unindented(a.Text)) {
		return nil, &SlipError{vague}
	}
	store, err := a.Quarantine()
	if err != nil {
		return nil, errors.Join(vague, err)
	}
	defer store.Close()
	return nil, HoldVague(ctx, store, a.Record, a.Text, vague)
}

// Approve holds the statement against the recorded preview, which was made again, then requires that
// quarantine does not hold the candidate, whose origin is given. If no statement fits, since the claims
// of the candidate cannot be used, what holds the candidate says more than that.
func (a *Answer) Approve(ctx context.Context, said *statement.Statement, again *preview.Preview, origin preview.Origin) (*preview.Approval, error) {
	approval, err := a.Record.Approve(again, said)
	if err != nil && !(errors.Is(err, preview.ErrUnfit) && again.ClaimsAreUnusable()) {
		return nil, err
	}
	if err := cmp.Or(a.checkQuarantine(ctx, again, origin), err); err != nil {
		return nil, err
	}
	return approval, nil
}

func (a *Answer) checkQuarantine(ctx context.Context, again *preview.Preview, origin preview.Origin) error {
	store, err := a.Quarantine()
	if err != nil {
		return err
	}
	defer store.Close()
	return CheckQuarantine(ctx, store, origin, again)
}
