package main

import "fmt"

// A doneError is a fault behind a change that is complete, and stays: it is not to be tried again.
type doneError struct {
	done   string // what is complete
	failed string // messages that could not be printed
	stands string // short for what is complete
	err    error
}

func (e *doneError) Error() string {
	return fmt.Sprintf("%s, but %s: %v", e.done, e.failed, e.err)
}

// Unwrap returns the fault.
func (e *doneError) Unwrap() error { return e.err }

func (e *doneError) hints() []string {
	return []string{fmt.Sprintf("the %s is complete: do not run it again; \"spectrum log --json\" shows what it has done", e.stands)}
}
