package verify_test

import (
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/verify"
)

// TestOtherBundleThanSealed verifies a valid bundle that is not the one that was sealed in its run directory: no
// law accepts it, and that is not a verdict on the bundle.
func TestOtherBundleThanSealed(t *testing.T) {
	r := newRun(t)
	b, err := strict(t, r)
	must(t, err)
	for sealed, ok := range map[string]bool{"": true, b.Root(): true, strings.Repeat("0", 64): false} {
		for law, accept := range map[string]func(run *verify.Run) error{
			"strict": func(run *verify.Run) error { _, err := verify.Strict(t.Context(), run, verify.Watch{}); return err },
			"gate":   func(run *verify.Run) error { _, err := verify.Gate(t.Context(), run, verify.Watch{}); return err },
			"list":   func(run *verify.Run) error { _, err := verify.List(t.Context(), run); return err },
			"chain": func(run *verify.Run) error {
				_, err := verify.GateChain(t.Context(), []*verify.Run{run}, verify.Watch{})
				return err
			},
			"strict chain": func(run *verify.Run) error {
				_, err := verify.StrictChain(t.Context(), []*verify.Run{run}, verify.Watch{})
				return err
			},
		} {
			run := openRuns(t, r)[0]
			run.Expect(sealed)
			if err := accept(run); (err == nil) != ok || !ok && !machine.IsDisturbed(err) {
				t.Errorf("%s, sealed as %q: %v", law, sealed, err)
			}
		}
	}
}
