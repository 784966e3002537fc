package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/staging"
)

// A halted root is released by a person alone, who has seen what is inconsistent
// in it (rollback contract, sections 7.1 and 12): the statement names the root and
// each attempt, and fits no other state.

var (
	errUnsaid    = errors.New("nobody has said that it may stay as it is: nothing was released")
	errSaidOther = errors.New("this is not the statement that is wanted: nothing was released")
)

// unsaidError is a halted root that nobody has acknowledged in the words that are
// wanted.
type unsaidError struct {
	halted *haltedError
	err    error
}

func (e *unsaidError) Error() string { return fmt.Sprintf("%q is halted: %v", e.halted.root, e.err) }
func (e *unsaidError) Unwrap() error { return e.err }

// details are those of the halt, with the statement.
func (e *unsaidError) details() map[string]any {
	details := e.halted.details()
	details["statement"] = e.halted.statement()
	return details
}

func (e *unsaidError) hints() []string {
	root := foreignOption(e.halted.root) + shellQuote(e.halted.root)
	return []string{
		fmt.Sprintf("look at what is named; \"spectrum recover %s\" tries again once it is out of the way", root),
		fmt.Sprintf("spectrum recover --acknowledge --statement %s %s", shellQuote(e.halted.statement()), root),
	}
}

// attemptDigits is how much of an attempt's id a statement has.
const attemptDigits = 8

// statement is what a person has to say. It is one line of text, whatever the root
// is called.
func (e *haltedError) statement() string {
	root := e.root
	if oneLine(root) != root {
		root = strconv.QuoteToASCII(root)
	}
	if e.bar != nil {
		return fmt.Sprintf("I have looked at %s; it stays as it is without %s.", root, e.bar.name())
	}
	ids := make([]string, 0, len(e.attempts))
	for _, a := range e.attempts {
		ids = append(ids, a.Attempt[:attemptDigits])
	}
	return fmt.Sprintf("I have looked at %s; what is left of %s stays.", root, strings.Join(ids, " and "))
}

func (e *haltedError) names(attempt string) bool {
	return slices.ContainsFunc(e.attempts, func(a haltedAttempt) bool { return a.Attempt == attempt })
}

// acknowledge shows what halts the root, wants the statement, and releases what it
// names. What else has come to stand there meanwhile is not released.
func (a *app) acknowledge(ctx context.Context, state *statedir.Dir, root string, opts recoverOptions, halted *haltedError) ([]staging.Outcome, error) {
	for i := range halted.attempts {
		at := &halted.attempts[i]
		a.tell("spectrum: %s", oneLine(at.where()))
		a.tell("spectrum: it cannot be undone: %s", oneLine(at.Err.Error()))
		for _, line := range at.stands(halted.root) {
			a.tell("spectrum: %s", oneLine(line))
		}
	}
	if err := a.hear(ctx, opts.statement, halted); err != nil {
		return nil, err
	}
	return a.recoverAs(ctx, state, root, action.Entry{Wait: opts.wait, Mode: staging.Acknowledged, Foreign: opts.foreign, Reason: opts.reason, Acknowledge: func(attempt string, left error) (string, error) {
		if !halted.names(attempt) {
			return "", fmt.Errorf("%w (the statement does not name it)", left)
		}
		return halted.statement(), nil
	}})
}

// hear requires the statement that releases a halted root. One that was not given with the command
// is asked for.
func (a *app) hear(ctx context.Context, said string, halted *haltedError) error {
	return a.hearWords(ctx, said, halted.statement(), func(why error) error { return &unsaidError{halted, why} })
}

// hearWords requires a statement, which is asked for where it was not given with the command. What
// else is said, or nothing, is the error that unsaid makes of the reason.
func (a *app) hearWords(ctx context.Context, said, wanted string, unsaid func(error) error) error {
	if said == "" {
		var err error
		if said, err = a.askStatement(ctx, wanted, unsaid); err != nil {
			return err
		}
	}
	if strings.TrimSpace(said) != wanted {
		return unsaid(errSaidOther)
	}
	return nil
}

// askStatement reads the statement from the terminal, where there is one.
func (a *app) askStatement(ctx context.Context, wanted string, unsaid func(error) error) (string, error) {
	if a.json || !onTerminal(os.Stdin) || !onTerminal(a.stderr) {
		return "", unsaid(errUnsaid)
	}
	a.tell("spectrum: to release it, type: %s", wanted)
	line, err := a.newPrompt("statement: ").read(ctx)
	if err != nil {
		return "", err
	}
	if isRefusal(line) {
		return "", unsaid(errUnsaid)
	}
	return line, nil
}
