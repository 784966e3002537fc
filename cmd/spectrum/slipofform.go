package main

import (
	"errors"

	"github.com/spectrumfs/spectrum/restore/quarantine"
	"github.com/spectrumfs/spectrum/restore/statement"
)

// slipOfForm is a statement with --approve that differs from an accepted one in form only: it
// approves nothing, and is not vague.
type slipOfForm struct {
	err     error
	typed   string
	command string // that approves what is meant; "" where that is not known
	held    string // the source of a candidate that is in quarantine; "" if it is not
}

func (e *slipOfForm) Error() string { return e.err.Error() }
func (e *slipOfForm) Unwrap() error { return e.err }

// slipOfForm is the error for such a statement on a preview. Held is a [*quarantine.HeldError] if its
// candidate is in quarantine.
func (a *app) slipOfForm(id, typed string, held, err error) error {
	slip := &slipOfForm{err: err, typed: typed}
	if want, is := errors.AsType[*statement.Error](err); is {
		slip.command = a.commandLine("commit", "--preview", id, "--approve", want.Want)
	}
	if mark, is := errors.AsType[*quarantine.HeldError](held); is {
		slip.held = mark.Source
	}
	return slip
}
