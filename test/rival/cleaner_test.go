package rival

import (
	"fmt"
	"os"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// TestCleaner lets a cleaner of temporary files remove the staging directory
// before each call of a commit. Without the journal nobody can help any longer:
// the commit itself ends with success or reaches the state before.
func TestCleaner(t *testing.T) {
	for name, runs := range map[string][]harness.Files{"single": {prey()}, "chain": preyChain()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := harness.New(t, runs...)
			var sum counts
			for n := 1; ; n++ {
				at := 0
				a := newArena(t, p, fmt.Sprint(n))
				r := a.Commit(t, &sysfault.Plan{N: n, Onward: true, Match: a.names, Before: func(c sysfault.Call) {
					stage := a.staging()
					if at == 0 && stage != "" && a.did(os.RemoveAll(stage)) {
						at = c.N
					}
				}})
				sum.add(a, r)
				if r.Status == 3 {
					t.Error("exit status 3, and no journal to recover with")
				}
				a.end(t, r, attack{})
				if a.failed(t, fmt.Sprintf("removed before call %d", at), r) {
					return
				}
				if at == 0 {
					break
				}
				n = at
			}
			t.Logf("%v", &sum)
			if sum.acts == 0 || sum.refused == 0 {
				t.Error("the cleaner was not felt")
			}
		})
	}
}
