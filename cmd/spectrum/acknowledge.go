package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/statement"
	"github.com/spectrumfs/spectrum/staging"
)

// A halted root is released by an operator only, after a look at what is inconsistent (rollback
// contract, sections 7.1 and 12): the statement names the root and each attempt, and fits no other
// state.

var (
	errNoStatement    = errors.New("no statement was given: nothing was released")
	errOtherStatement = errors.New("the statement is not the required one: nothing was released")
)

// acknowledgementError is a halted root that was not acknowledged with the required statement.
type acknowledgementError struct {
	halted *haltedError
	err    error
}

func (e *acknowledgementError) Error() string {
	return fmt.Sprintf("%q is halted: %v", e.halted.root, e.err)
}
func (e *acknowledgementError) Unwrap() error { return e.err }

// details are those of the halt, with the statement.
func (e *acknowledgementError) details() map[string]any {
	details := e.halted.details()
	details["statement"] = e.halted.statement()
	return details
}

func (e *acknowledgementError) hints() []string {
	root := foreignOption(e.halted.root) + shellQuote(e.halted.root)
	return []string{
		fmt.Sprintf("move what is named above out of the way, then run \"spectrum recover %s\" again", root),
		fmt.Sprintf("spectrum recover --acknowledge --statement %s %s", shellQuote(e.halted.statement()), root),
	}
}

// statement is what a person has to say.
func (e *haltedError) statement() string {
	if e.bar != nil {
		return statement.ForRollback(e.root, e.bar.id())
	}
	ids := make([]string, 0, len(e.attempts))
	for _, a := range e.attempts {
		ids = append(ids, a.Attempt)
	}
	return statement.ForAttempts(e.root, ids)
}

func (e *haltedError) names(attempt string) bool {
	return slices.ContainsFunc(e.attempts, func(a haltedAttempt) bool { return a.Attempt == attempt })
}

// acknowledge shows what halts the root, requires the statement, and releases the attempts that it
// names. Attempts that were added meanwhile are not released.
func (a *app) acknowledge(ctx context.Context, state *statedir.Dir, root string, opts recoverOptions, halted *haltedError) (action.Settled, []staging.Outcome, error) {
	for i := range halted.attempts {
		at := &halted.attempts[i]
		a.tell("spectrum: %s", oneLine(at.where()))
		a.tell("spectrum: it cannot be undone: %s", oneLine(at.Err.Error()))
		for _, line := range at.stands(halted.root) {
			a.tell("spectrum: %s", oneLine(line))
		}
	}
	if err := a.checkAcknowledgement(ctx, opts.statement, halted); err != nil {
		return action.Settled{}, nil, err
	}
	return a.recoverAs(ctx, state, root, action.Entry{Wait: opts.wait, Mode: staging.Acknowledged, Foreign: opts.foreign, Reason: opts.reason, Acknowledge: func(attempt string, left error) (string, error) {
		if !halted.names(attempt) {
			return "", fmt.Errorf("%w (the statement does not name it)", left)
		}
		return halted.statement(), nil
	}})
}

// checkAcknowledgement requires the statement that releases a halted root, and asks for it if it was not given with
// the command.
func (a *app) checkAcknowledgement(ctx context.Context, said string, halted *haltedError) error {
	return a.checkStatement(ctx, said, halted.statement(), func(why error) error { return &acknowledgementError{halted, why} })
}

// checkStatement requires a statement, and asks for it if it was not given with the command. For any
// other answer it returns the error that unsaid makes of the reason.
func (a *app) checkStatement(ctx context.Context, said, wanted string, wrap func(error) error) error {
	if said == "" {
		var err error
		if said, err = a.askStatement(ctx, wanted, wrap); err != nil {
			return err
		}
	}
	if !statement.Says(said, wanted) {
		return wrap(errOtherStatement)
	}
	return nil
}

// askStatement reads the statement from the terminal, where there is one.
func (a *app) askStatement(ctx context.Context, wanted string, wrap func(error) error) (string, error) {
	if a.json || !onTerminal(os.Stdin) || !onTerminal(a.stderr) {
		return "", wrap(errNoStatement)
	}
	a.tell("spectrum: to release it, type: %s", wanted)
	line, err := a.newPrompt("statement: ").read(ctx)
	if err != nil {
		return "", err
	}
	if isRefusal(line) {
		return "", wrap(errNoStatement)
	}
	return line, nil
}
