package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/google/uuid"
	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/kept"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/audit"
)

// An audit log that was deleted or cut bears out no more what was done before; a snapshot, a
// savepoint or the host's key may be gone. Every check says so from then on. Nothing brings it back
// but a backup; so a person who has looked can accept the loss, which the log that goes on has, with
// the records that it is about and no others.

// lossError is a loss that nobody has accepted in the words that are wanted.
type lossError struct {
	root string // its path
	lost []string
	err  error
}

func (e *lossError) Error() string {
	return fmt.Sprintf("%q: no statement accepts the loss of %s", e.root, numberOf(len(e.lost), "record"))
}

// Unwrap returns what is wrong with the statement.
func (e *lossError) Unwrap() error { return e.err }

// statement is what a person has to say. It is one line of text, whatever the root is called.
func (e *lossError) statement() string {
	root := e.root
	if oneLine(root) != root {
		root = strconv.QuoteToASCII(root)
	}
	return fmt.Sprintf("I have looked at %s; what is lost of %s of it stays lost.", root, numberOf(len(e.lost), "record"))
}

func (e *lossError) details() map[string]any {
	return map[string]any{"lost": e.lost, "restore_root": jsonText(e.root), "statement": jsonText(e.statement())}
}

func (e *lossError) hints() []string {
	return []string{
		"look at what is named; if it is in a backup, put that back",
		fmt.Sprintf("spectrum recover --acknowledge --statement %s %s", shellQuote(e.statement()), foreignOption(e.root)+shellQuote(e.root)),
	}
}

// lostOf returns the ids of the savepoints and snapshots that are lost, or that the audit log does not
// bear out, each once.
func lostOf(flaws []kept.Flaw) (ids []string) {
	for _, f := range flaws {
		ids = append(ids, f.Lost...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// acceptLoss accepts, with --acknowledge and against the statement of a person, what is lost of a
// root, and returns the flaws that are left.
func (a *app) acceptLoss(ctx context.Context, state *statedir.Dir, name string, opts recoverOptions, flaws []kept.Flaw) ([]kept.Flaw, error) {
	path, err := state.RootPath(name)
	if err != nil {
		return nil, err
	}
	loss := &lossError{root: path, lost: lostOf(flaws)}
	if len(loss.lost) == 0 || !opts.acknowledge {
		return flaws, nil
	}
	err = a.hearWords(ctx, opts.statement, loss.statement(), func(why error) error {
		return &lossError{loss.root, loss.lost, why}
	})
	if err != nil {
		return nil, err
	}
	log, err := openLog(state)
	if err != nil {
		return nil, err
	}
	err = log.Append(audit.Event{Kind: audit.LossAccepted, Action: uuid.NewString(), Root: name, Lost: loss.lost, Reason: withReason(loss.statement(), opts.reason)})
	if err = errors.Join(err, log.Close()); err != nil {
		return nil, err
	}
	a.tell("spectrum: the loss of %s of %s is accepted, which the audit log has from now on", numberOf(len(loss.lost), "record"), shellQuote(path))
	return a.flawsOf(ctx, state, name)
}
