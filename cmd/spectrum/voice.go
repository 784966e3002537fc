package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/words"
	"github.com/spectrumfs/spectrum/internal/visible"
)

// This file is the one voice to the user: what an error is called, which exit
// status it has, and what to do next.

// refusedError is input that was rejected by the program, not by a law: the command has the reason
// and the next step.
type refusedError struct {
	err  error
	hint string
}

func (e *refusedError) Error() string { return e.err.Error() }
func (e *refusedError) Unwrap() error { return e.err }

func refusedHint(err error, hint string) error {
	if err == nil {
		return nil
	}
	return &refusedError{err, hint}
}

// hinted is refusedHint for a hint of the table, which is "" where it has none for this step.
func hinted(err error, hint string) error {
	if hint == "" {
		return err
	}
	return refusedHint(err, hint)
}

// codedError is a verdict with a code of its own, in no law.
type codedError struct {
	code    code
	details map[string]any
	hint    string
	hints   []string // after hint
	err     error
}

func (e *codedError) Error() string { return e.err.Error() }
func (e *codedError) Unwrap() error { return e.err }

// childError is a child process that has printed its own error.
type childError struct{ status int }

func (e *childError) Error() string { return fmt.Sprintf("exit status %d", e.status) }

// errApprovalRequired: a commit without an approved preview.
var errApprovalRequired = errors.New("approval required: nothing was written")

// approvalRequired is errApprovalRequired with the preview that could be
// approved.
type approvalRequired struct {
	id, recommended string
	command         string // that commits it
	words           string
	next            []string // other steps than that command; nil for none
}

func (a *app) approvalRequired(id, recommended string) *approvalRequired {
	words := errApprovalRequired.Error()
	if len(a.ended) > 0 { // something was written, of what was found unfinished
		words = "approval required: nothing of it was written"
	}
	return &approvalRequired{id, recommended, a.commandLine("commit", "--preview", id, "--approve", recommended), words, nil}
}

// notApproved is the error of a preview that the operator declined to approve.
func (a *app) notApproved(id, recommended string) error {
	refused := a.approvalRequired(id, recommended)
	refused.words = strings.Replace(refused.words, "approval required", "not approved", 1)
	return refused
}

func (e *approvalRequired) Error() string { return e.words }
func (e *approvalRequired) Unwrap() error { return errApprovalRequired }

// finish reports how a command ended and returns the exit status.
func (a *app) finish(err error) int {
	if err == nil {
		return statusOK
	}
	v := verdictOf(err)
	if _, isChild := errors.AsType[*childError](err); isChild {
		return v.status
	}
	if v.status == statusInterrupted {
		err = a.interrupted(err)
		v = verdictOf(err)
	}
	if a.json && !errors.Is(err, errRevoked) { // it has had its one value when it was ready
		_ = a.raw(v.json(err))
	}
	a.tell("spectrum: %s", words.Cut(oneLine(wordsOf(err))))
	if a.meant != "" && v.status != statusInterrupted {
		a.tell("hint: %s", oneLine(a.meant))
	}
	for _, hint := range a.fixHints(err, &v) {
		if hint == slowHint && !a.hasPatience {
			continue
		}
		a.tell("hint: %s", oneLine(a.truly(hint)))
	}
	return v.status
}

// wordsOf returns the text of an error.
func wordsOf(err error) string {
	var end *interruptedError
	if errors.As(err, &end) { // the joined error has no text of its own
		return end.Error()
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ") // several errors at once
}

// oneLine keeps what came from outside from forging lines or moving a cursor.
func oneLine(s string) string { return visible.Escape(s) }
