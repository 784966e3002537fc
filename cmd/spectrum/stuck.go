package main

import (
	"context"
	"errors"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/cancelable"
)

// examine is [cancelable.Do] for what reads a candidate. One that is still being read
// stays open: a handle must not be closed under its reader, and the process, which
// ends now, closes it.
func examine[T any](ctx context.Context, c *candidate, do func() (T, error)) (T, error) {
	value, err := cancelable.Do(ctx, do)
	c.stuck = c.stuck || errors.Is(err, cancelable.ErrStuck)
	return value, c.explained(err)
}
