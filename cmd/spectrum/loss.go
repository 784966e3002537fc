package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/statecheck"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/statement"
)

// lossError is a loss that was not accepted with the required statement.
type lossError struct {
	root string // its path
	lost []string
	err  error
}

func (e *lossError) Error() string {
	return fmt.Sprintf("%q: the loss of %s was not accepted", e.root, numberOf(len(e.lost), "record"))
}

// Unwrap returns what is wrong with the statement.
func (e *lossError) Unwrap() error { return e.err }

// statement is what a person has to say.
func (e *lossError) statement() string { return statement.ForLoss(e.root, len(e.lost)) }

func (e *lossError) details() map[string]any {
	return map[string]any{"lost": e.lost, "restore_root": jsonText(e.root), "statement": jsonText(e.statement())}
}

func (e *lossError) hints() []string {
	return []string{
		"check the named files; if they are in a backup, restore them",
		fmt.Sprintf("spectrum recover --acknowledge --statement %s %s", shellQuote(e.statement()), foreignOption(e.root)+shellQuote(e.root)),
	}
}

// acceptLoss accepts, with --acknowledge and against the statement of a person, what is lost of a
// root, and returns the flaws that are left.
func (a *app) acceptLoss(ctx context.Context, state *statedir.Dir, name string, opts recoverOptions, flaws []statecheck.Flaw) ([]statecheck.Flaw, error) {
	path, err := state.RootPath(name)
	if err != nil {
		return nil, err
	}
	loss := &lossError{root: path, lost: statecheck.LostOf(flaws)}
	if len(loss.lost) == 0 || !opts.acknowledge {
		return flaws, nil
	}
	err = a.checkStatement(ctx, opts.statement, loss.statement(), func(why error) error {
		return &lossError{loss.root, loss.lost, why}
	})
	if err != nil {
		return nil, err
	}
	log, err := openLog(state)
	if err != nil {
		return nil, err
	}
	err = action.AcceptLoss(log, name, loss.lost, withReason(loss.statement(), opts.reason))
	if err = errors.Join(err, log.Close()); err != nil {
		return nil, err
	}
	a.tell("spectrum: the loss of %s of %s is accepted and logged", numberOf(len(loss.lost), "record"), shellQuote(path))
	return a.flawsOf(ctx, state, name)
}
