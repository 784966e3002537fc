package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
)

// keptError is work that was interrupted, and of which something stays.
type keptError struct {
	what string
	err  error
}

func (e *keptError) Error() string { return e.what + ": " + e.err.Error() }
func (e *keptError) Unwrap() error { return e.err }

// interruptedError is the end of a command that was interrupted.
type interruptedError struct {
	done []string // what it had done and stays, in words
	err  error
}

func (e *interruptedError) Unwrap() error { return e.err }

// Error returns what was done until then: what earlier commands had left was ended; and of
// its own work it was rolled back, or only what is named stays.
func (e *interruptedError) Error() string {
	if len(e.done) == 0 {
		return "interrupted: " + unchanged
	}
	return "interrupted: " + strings.Join(e.done, "; ")
}

// unchanged begins the message of a command that has changed nothing; see [app.truly].
const unchanged = "nothing was changed"

// interrupted adds to an error what the command had done before it was interrupted.
func (a *app) interrupted(err error) error {
	var kept *keptError
	var failed *staging.Error
	done := slices.Clone(a.ended)
	switch {
	case errors.As(err, &kept):
		done = append(done, kept.what)
	case errors.As(err, &failed) && failed.Attempt != "":
		done = append(done, fmt.Sprintf("attempt %s was rolled back, and the restore root is as it was", failed.Attempt))
	default:
		done = append(done, a.done...)
	}
	return &interruptedError{done, err}
}

// truly returns a hint that is true: instead of "nothing was changed", where the command
// had done something before it failed, what that was.
func (a *app) truly(hint string) string {
	rest, says := strings.CutPrefix(hint, unchanged)
	done := slices.Concat(a.ended, a.done)
	if !says || len(done) == 0 {
		return hint
	}
	return strings.Join(done, "; ") + "; nothing else was changed" + rest
}

// hasDone records a change that stays, whatever happens to the rest of the command. A repeated
// change is recorded once.
func (a *app) hasDone(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(a.done, text) {
		a.done = append(a.done, text)
	}
}

// hasEnded notes what was found unfinished and was ended.
func (a *app) hasEnded(outcomes []staging.Outcome) {
	for _, o := range outcomes {
		a.ended = append(a.ended, endedText(o))
		if o.Kind == staging.KindCommit {
			a.endedCommit = &o
		}
	}
}

// latestHasEnded is the error of a rollback of "latest" that has found an unfinished commit: that
// commit was the latest. The operator must decide again, because another commit would be undone
// too.
func (a *app) latestHasEnded(next string) error {
	o := a.endedCommit
	switch {
	case o == nil, o.Attempt == next: // it has a savepoint: what is undone is the commit that was meant
		return nil
	case o.Result == staging.Completed:
		return refusedHint(fmt.Errorf("the latest commit, %s, was unfinished and has been completed; no commit was undone", o.Attempt),
			fmt.Sprintf("to undo it: spectrum rollback %s", o.Attempt))
	}
	return refusedHint(fmt.Errorf("the latest commit, %s, was unfinished: it is undone now, and no other commit was", o.Attempt),
		fmt.Sprintf("to undo the commit before it, too: spectrum rollback %s", next))
}

func endedText(o staging.Outcome) string {
	after := ""
	if isBackUndone(o) {
		after = ": the root is as before it"
	}
	return fmt.Sprintf("an unfinished %s was found and %s (%s)%s", kindText(o.Kind), o.Result, o.Attempt, after)
}

// isBackUndone reports whether it is a rollback or a restore that was itself rolled back.
func isBackUndone(o staging.Outcome) bool {
	return o.Kind != staging.KindCommit && o.Result == staging.RolledBack
}

// pruneInterrupted reports which snapshots an interrupted prune has removed. Before the first
// removal it has changed nothing.
func pruneInterrupted(err error, p snapshot.Pruned, dry bool) error {
	if !errors.Is(err, context.Canceled) || dry || len(p.Gone) == 0 {
		return err
	}
	return &keptError{numberOf(len(p.Gone), "snapshot") + " removed, but some of their contents are left: the next prune removes them", err}
}
