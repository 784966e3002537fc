package preview

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"
)

// TestRemade: a preview that cannot be made again because the root or a decided conflict has changed is
// stale; other errors stay as they are.
func TestRemade(t *testing.T) {
	for want, err := range map[string]error{
		"the preview is stale: a root: the restore root changes while it is examined":    fmt.Errorf("a root: %w", ErrUnsettled),
		"the preview is stale: a conflict that was decided on before is no longer there": fmt.Errorf("%w: there is no conflict", ErrDecision),
	} {
		if got := Remade(err); !errors.Is(got, ErrStale) || got.Error() != want {
			t.Errorf("%v, want %s", got, want)
		}
	}
	for _, err := range []error{nil, fs.ErrNotExist, ErrStale} {
		if got := Remade(err); got != err {
			t.Errorf("%v, want %v", got, err)
		}
	}
}
