package main

import (
	"context"
	"fmt"

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

// acceptLoss accepts what is lost of a root against the statement of the operator.
func (a *app) acceptLoss(ctx context.Context, state *statedir.Dir, checked action.Checked, opts recoverOptions) error {
	path, err := state.RootPath(checked.Root())
	if err != nil {
		return err
	}
	loss := &lossError{root: path, lost: checked.Lost()}
	err = a.checkStatement(ctx, opts.statement, loss.statement(), func(why error) error {
		return &lossError{loss.root, loss.lost, why}
	})
	if err != nil {
		return err
	}
	if err := checked.AcceptLoss(loss.statement(), opts.reason); err != nil {
		return err
	}
	a.tell("spectrum: the loss of %s of %s is accepted and logged", numberOf(len(loss.lost), "record"), shellQuote(path))
	return nil
}
