// Package patient leaves behind what does not answer.
package patient

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// grace is how long a command that was asked to end waits for what it reads.
const grace = 2 * time.Second

// ErrStuck means that what is read does not come back.
var ErrStuck = errors.New("what is read does not answer")

// Do does what changes nothing. A call to a file system that does not
// answer comes back for nobody, and ends only with the process: so when ctx is
// done, and do is not after a while, it is left where it stands. The caller must
// come to its end then.
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
