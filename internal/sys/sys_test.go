package sys_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/internal/sys"
	"github.com/spectrumfs/spectrum/pathsafe"
)

// TestAwaitLock waits for a lock until it is free, the patience is used up, or the wait is
// interrupted.
func TestAwaitLock(t *testing.T) {
	held := fmt.Errorf("x: %w", pathsafe.ErrLocked)
	broken := errors.New("broken")
	tries := 0
	freed := func(after int, then error) func() error {
		tries = 0
		return func() error {
			if tries++; tries > after {
				return then
			}
			return held
		}
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ctx      context.Context
		patience time.Duration
		after    int
		then     error
		want     error
		tries    int
	}{
		"free":        {t.Context(), 0, 0, nil, nil, 1},
		"freed":       {t.Context(), sys.Forever, 3, nil, nil, 4},
		"broken":      {t.Context(), time.Minute, 2, broken, broken, 3},
		"held":        {t.Context(), 0, 1000, nil, pathsafe.ErrLocked, 1},
		"interrupted": {cancelled, sys.Forever, 1000, nil, context.Canceled, 1},
	} {
		if err := sys.Await(test.ctx, test.patience, freed(test.after, test.then)); !errors.Is(err, test.want) || test.want == nil && err != nil || tries != test.tries {
			t.Errorf("%s: %v after %d tries", name, err, tries)
		}
	}
}
