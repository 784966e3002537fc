package main

import (
	"errors"

	"github.com/spectrumfs/spectrum/restore/statement"
)

// slipOfForm is a statement with --approve that differs from an accepted one in form only: it
// approves nothing, and is not vague.
type slipOfForm struct {
	err   error
	hints []string
}

func (e *slipOfForm) Error() string { return e.err.Error() }
func (e *slipOfForm) Unwrap() error { return e.err }

// slipOfForm is the error for such a statement on a preview. The hint has the accepted one.
func (a *app) slipOfForm(id string, err error) error {
	slip := &slipOfForm{err, []string{"nothing was approved, and nothing is in quarantine: correct the statement; the preview is still valid"}}
	if want, is := errors.AsType[*statement.Error](err); is {
		slip.hints = append(slip.hints, "if that is what you approve: "+a.commandLine("commit", "--preview", id, "--approve", want.Want))
	}
	return slip
}
