package main

import (
	"context"
	"errors"
	"fmt"

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

// interruptedWords say what is left after an interruption: what was begun in a
// restore root is rolled back, and everything else had changed nothing.
func interruptedWords(err error) string {
	var kept *keptError
	var failed *staging.Error
	switch {
	case errors.As(err, &kept):
		return "interrupted: " + kept.what
	case errors.As(err, &failed) && failed.Attempt != "":
		return fmt.Sprintf("interrupted: attempt %s was rolled back, and the restore root is as it was", failed.Attempt)
	}
	return "interrupted: nothing was changed"
}

// pruneInterrupted says of a prune that was interrupted which snapshots are gone.
// Before the first has gone nothing has.
func pruneInterrupted(err error, p snapshot.Pruned, dry bool) error {
	if !errors.Is(err, context.Canceled) || dry || len(p.Gone) == 0 {
		return err
	}
	return &keptError{numberOf(len(p.Gone), "snapshot") + " removed, and not yet all of what only they needed: the next prune removes it", err}
}
