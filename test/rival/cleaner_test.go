package rival

import (
	"fmt"
	"os"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// TestCleaner lets a cleaner of temporary files remove the staging directory before each call of
// a commit. Without the journal no recovery is possible: the commit itself ends with success or
// reaches the state before.
func TestCleaner(t *testing.T) {
	for name, runs := range map[string][]harness.Files{"single": {outputs()}, "chain": outputChain()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := harness.New(t, runs...)
			var sum harness.Tally
			inWindows(t, sample.Every(t, 23), func(n int) int {
				at := 0
				a := newAttempt(t, p, fmt.Sprint(n))
				r := a.Commit(t, &sysfault.Plan{N: n, Onward: true, Match: a.names, Before: func(c sysfault.Call) {
					stage := a.staging()
					if at == 0 && stage != "" && a.did(os.RemoveAll(stage)) {
						at = c.N
					}
				}})
				a.count(&sum, r)
				if r.Status == 3 {
					t.Error("exit status 3, and no journal to recover with")
				}
				a.end(t, r, attack{})
				if a.failed(t, fmt.Sprintf("removed before call %d", at), r) {
					return 0
				}
				return at
			})
			sum.Demand(t, "acts", "refused")
		})
	}
}
