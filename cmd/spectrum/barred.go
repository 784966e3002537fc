package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/action"
)

// A barMark is why a root is halted in which a rollback could not be carried out (rollback
// contract, section 12). Nothing is left in the root that has to be ended.
type barMark struct{ statedir.BarMark }

// id is of the rollback; "" where the mark cannot be read.
func (b *barMark) id() string {
	if b.Err != nil {
		return ""
	}
	return b.ID
}

// what describes the rollback, and why it could not begin.
func (b *barMark) what() string {
	if b.Err != nil {
		return fmt.Sprintf("a rollback could not be carried out; which one is not known, since its mark cannot be read: %v; \"spectrum audit show\" has the log", b.Err)
	}
	return fmt.Sprintf("the %s rollback %s of %s could not be carried out: %s", b.Kind, b.ID, b.Time.Format(time.RFC3339), b.Reason)
}

// fields are what a program needs of it.
func (b *barMark) fields() map[string]any {
	if b.Err != nil {
		return map[string]any{"id": nil, "kind": nil, "time": nil, "why": nil}
	}
	return map[string]any{"id": b.ID, "kind": b.Kind, "time": b.Time.Format(time.RFC3339Nano), "why": jsonText(b.Reason)}
}

// tellBarred reports that the root of a name is halted now, if a rollback has halted it.
func (a *app) tellBarred(state *statedir.Dir, name string) {
	if is, _ := state.Barred(name); is {
		path, err := state.RootPath(name)
		if err != nil || path == "" {
			path = name
		}
		a.tell("spectrum: %s is halted now for preview, commit and prune, until a rollback succeeds, or \"spectrum recover --acknowledge %s%s\" releases it; rollbacks still work", shellQuote(name), foreignOption(path), shellQuote(path))
	}
}

// notDone reports whether the root of a failed rollback is halted now, and returns the error of the
// rollback.
func (a *app) notDone(state *statedir.Dir, in *action.Root, err error) error {
	if err != nil && !a.dryRun && action.IsBarring(err) {
		a.tellBarred(state, in.Path())
	}
	if coded, is := errors.AsType[*codedError](err); is { // a hint that was made where the root is not known
		coded.hint = strings.ReplaceAll(coded.hint, "RESTORE_ROOT", foreignOption(in.Real())+shellQuote(in.Real()))
	}
	return haltedIn(state, in.Real(), err)
}

// unreadable records a rollback whose savepoint or snapshot cannot be read. A dry run records nothing.
func (a *app) unreadable(state *statedir.Dir, id string, dry bool, why error) {
	if dry {
		return
	}
	for _, refusal := range action.RefusalsOf(id, why, state.RootOfKey, logOf(state)) {
		_ = a.notBegun(state, dry, refusal)
	}
}

// endBar ends the halt of a root in which a rollback could not be carried out. It asks for the statement
// if that is needed.
func (a *app) endBar(ctx context.Context, state *statedir.Dir, checked action.Checked, opts recoverOptions) error {
	mark, is := state.BarOf(checked.Root())
	if !is {
		return nil
	}
	bar := &barMark{mark}
	path, err := state.RootPath(checked.Root())
	if err != nil {
		return err
	}
	halted := &haltedError{root: path, bar: bar, err: &action.BarredError{Root: checked.Root()}}
	if barred, is := errors.AsType[*action.BarredError](checked.CanEndBar()); is {
		bar.Err, halted.err = barred.Err, barred
		return halted
	}
	said := ""
	if checked.IsDamaged() {
		a.tell("spectrum: %s", oneLine(bar.what()))
	}
	if checked.IsDamaged() && opts.acknowledge {
		if err := a.checkAcknowledgement(ctx, opts.statement, halted); err != nil {
			return err
		}
		said = halted.statement()
	}
	err = checked.EndBar(bar.id(), said, opts.reason)
	if errors.Is(err, action.ErrUnstated) {
		a.tell("spectrum: %s stays halted for preview, commit and prune", shellQuote(path))
		return nil
	}
	if err != nil {
		return err
	}
	a.tell("spectrum: the halt is ended: %s", oneLine(bar.what()))
	return nil
}
