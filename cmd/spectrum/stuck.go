package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// stuckGrace is how long a command that was asked to end waits for what it reads.
const stuckGrace = 2 * time.Second

var errStuck = errors.New("what is read does not answer")

// examine is unlessStuck for what reads a candidate. One that is still being read
// stays open: a handle must not be closed under its reader, and the process, which
// ends now, closes it.
func examine[T any](ctx context.Context, c *candidate, do func() (T, error)) (T, error) {
	value, err := unlessStuck(ctx, do)
	c.stuck = c.stuck || errors.Is(err, errStuck)
	return value, c.explained(err)
}

// unlessStuck does what changes nothing. A call to a file system that does not
// answer comes back for nobody, and ends only with the process: so when ctx is
// done, and do is not after a while, it is left where it stands. The caller must
// come to its end then.
func unlessStuck[T any](ctx context.Context, do func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		value, err := do()
		done <- outcome{value, err}
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
	}
	select {
	case o := <-done:
		return o.value, o.err
	case <-time.After(stuckGrace):
		var none T
		return none, fmt.Errorf("%w: %w", errStuck, ctx.Err())
	}
}
