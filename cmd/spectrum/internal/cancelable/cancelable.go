// Package cancelable ends the wait for calls that cannot be interrupted, such as reads of a file
// system that does not answer.
package cancelable

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// grace is how long an interrupted command waits for a read.
const grace = 2 * time.Second

// ErrStuck reports a read that does not return.
var ErrStuck = errors.New("reading it hangs")

// Do calls a function that changes nothing. A call to a file system that does not answer cannot be
// interrupted and ends only with the process: so if ctx is done and do has not returned after a
// grace period, Do returns and leaves it running. The process must exit then.
func Do[T any](ctx context.Context, do func() (T, error)) (T, error) {
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
	case <-time.After(grace):
		var none T
		return none, fmt.Errorf("%w: %w", ErrStuck, ctx.Err())
	}
}
