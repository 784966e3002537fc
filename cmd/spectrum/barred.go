package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/statecheck"
	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/snapshot"
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

// unreadable logs a rollback whose savepoint or snapshot cannot be read, and halts the root of that
// record. If a fault of the machine hides the root, the log has the ID only. A dry run does
// neither.
func (a *app) unreadable(state *statedir.Dir, id string, dry bool, why error) {
	event, at, named := audit.Event{Rollback: audit.Session}, "", false
	if unread, is := errors.AsType[*action.UnreadError](why); is {
		at, event.Actions = unread.Err.RunDir, []string{unread.Commit}
	} else if damage, is := errors.AsType[*snapshot.DamageError](why); is {
		at = damage.Path
	}
	for name := range strings.SplitSeq(at, "/") {
		switch root := state.RootOfKey(name); {
		case root == "":
		case isUntaken(state, at):
			named = true
			if !dry {
				event.Action, event.Root, event.Reason = uuid.NewString(), root, why.Error()
				a.logRefused(state, event)
			}
		default:
			_ = a.notBegun(state, root, dry, event, why)
			named = true
		}
	}
	if root := rootByLog(state, id); !named && root != "" && machine.IsFault(why) {
		_ = a.notBegun(state, root, dry, event, why)
	}
}

// rootByLog returns the name of the root that a commit or a snapshot with this ID, or these digits
// of it, is of by the audit log; "" where that is not known, or there are several.
func rootByLog(state *statedir.Dir, id string) string {
	if len(id) < least {
		return ""
	}
	roots := map[string]bool{}
	_, _ = readLog(state, func(e audit.Entry) error {
		if e.Root != "" && (id == latest || strings.HasPrefix(e.Action, id) || strings.HasPrefix(e.Snapshot, id)) {
			roots[audit.RootOf(e.Root)] = true
		}
		return nil
	})
	for root := range roots {
		if len(roots) == 1 {
			return root
		}
	}
	return ""
}

// endBar ends the halt of a root in which a rollback could not be carried out, where a person runs
// recover: nothing is unfinished there now. While something of what is kept of it is damaged,
// that takes a statement.
func (a *app) endBar(ctx context.Context, state *statedir.Dir, name string, opts recoverOptions, flaws []statecheck.Flaw) error {
	mark, is := state.BarOf(name)
	if !is {
		return nil
	}
	bar := &barMark{mark}
	path, err := state.RootPath(name)
	if err != nil {
		return err
	}
	halted := &haltedError{root: path, bar: bar, err: &action.BarredError{Root: name}}
	if err := state.Unbarrable(name); err != nil { // before the end is printed or logged
		bar.Err = err
		halted.err = &action.BarredError{Root: name, Err: err}
		return halted
	}
	reason := "recover found nothing unfinished and nothing damaged"
	if len(flaws) > 0 {
		if !opts.acknowledge {
			a.tell("spectrum: %s", oneLine(bar.what()))
			a.tell("spectrum: %s stays halted for preview, commit and prune", shellQuote(path))
			return nil
		}
		a.tell("spectrum: %s", oneLine(bar.what()))
		if err := a.checkAcknowledgement(ctx, opts.statement, halted); err != nil {
			return err
		}
		reason = fmt.Sprintf("%q", halted.statement())
	}
	log, err := openLog(state)
	if err != nil {
		return err
	}
	err = action.EndBar(log, state, action.Bar{Root: name, ID: bar.id()}, withReason(reason, opts.reason))
	if err = errors.Join(err, log.Close()); err != nil {
		return err
	}
	a.tell("spectrum: the halt is ended: %s", oneLine(bar.what()))
	return nil
}

// withReason adds the words of the operator to what is logged.
func withReason(logged, reason string) string {
	if reason == "" {
		return logged
	}
	return fmt.Sprintf("%s; %q", logged, reason)
}
