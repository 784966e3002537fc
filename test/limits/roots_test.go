package limits

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// TestRecoverLooksAtOneRoot: what is kept of other roots makes a recovery no longer.
func TestRecoverLooksAtOneRoot(t *testing.T) {
	p := harness.New(t, harness.Small())
	top := filepath.Dir(p.Dir)
	first := p.Site(t, filepath.Join(top, "first"))
	harness.Must(t, os.RemoveAll(filepath.Join(first.Root, harness.ForeignStaging))) // no snapshot is taken with it
	p.Must(t, "snapshot", "take", first.Root)
	calls := func() int {
		r := first.Recover(t, &sysfault.Plan{Match: func(c sysfault.Call) bool { return harness.Inside(c.Path, p.State) }})
		if r.Status != 0 || r.Fault.Calls == 0 {
			t.Fatal(r)
		}
		return r.Fault.Calls
	}
	before := calls()
	for n := range 10 {
		other := filepath.Join(top, fmt.Sprint("other", n))
		harness.Must(t, os.Mkdir(other, 0o755))
		p.Must(t, "snapshot", "take", other)
	}
	if after := calls(); after > before+2 { // the log is longer
		t.Errorf("%d calls in the state directory, and %d with ten more roots", before, after)
	}
}
