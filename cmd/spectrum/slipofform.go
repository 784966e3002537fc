package main

import (
	"errors"

	"github.com/spectrumfs/spectrum/restore/statement"
)

// slipOfForm is a statement with --approve that differs from an accepted one in form only: it
// approves nothing, and is not vague.
type slipOfForm struct {
	err     error
	command string // that approves what is meant; "" where that is not known
}

func (e *slipOfForm) Error() string { return e.err.Error() }
func (e *slipOfForm) Unwrap() error { return e.err }

// slipOfForm is the error for such a statement on a preview.
func (a *app) slipOfForm(id string, err error) error {
	slip := &slipOfForm{err: err}
	if want, is := errors.AsType[*statement.Error](err); is {
		slip.command = a.commandLine("commit", "--preview", id, "--approve", want.Want)
	}
	return slip
}
