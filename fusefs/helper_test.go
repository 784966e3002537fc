package fusefs

import (
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/test/harness"
)

// eventually waits for something that another goroutine does. The patience is not part of
// any expectation.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	if !harness.Await(5*time.Minute, ok) {
		t.Fatalf("waited in vain for: %s", what)
	}
}
