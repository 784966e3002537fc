package limits

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// TestCommandsLookAtOneRoot: what is kept of other roots makes no command in a root longer,
// by less than a call for each: the log is longer, and the calls of a rollback vary by some 25.
func TestCommandsLookAtOneRoot(t *testing.T) {
	const others = 40
	alone, among := callsAmong(t, 0), callsAmong(t, others)
	for command, before := range alone {
		if after := among[command]; before == 0 || after >= before+others {
			t.Errorf("%s: %d calls in the state directory, and %d with %d more roots", command, before, after, others)
		}
	}
}

// callsAmong counts the calls in the state directory of each command in a root, when there is
// a history of so many others.
func callsAmong(t *testing.T, others int) map[string]int {
	p := harness.New(t, harness.Small())
	top := filepath.Dir(p.Dir)
	site := p.Site(t, filepath.Join(top, "first"))
	harness.Must(t, os.RemoveAll(filepath.Join(site.Root, harness.ForeignStaging))) // no snapshot is taken with it
	p.Must(t, "snapshot", "take", site.Root)
	for n := range others {
		other := filepath.Join(top, fmt.Sprint("other", n))
		harness.Must(t, os.Mkdir(other, 0o755))
		p.Must(t, "snapshot", "take", other)
	}
	// How often content is written depends on the number of processors, and in how many
	// directories on its hashes: of the store only what is listed counts.
	store := filepath.Join(p.State, "snapshots")
	inState := &sysfault.Plan{Match: func(c sysfault.Call) bool {
		switch {
		case harness.Inside(c.Path, filepath.Join(store, "incoming")):
			return false
		case harness.Inside(c.Path, filepath.Join(store, "objects")):
			return c.Name == "getdents64"
		}
		return harness.Inside(c.Path, p.State)
	}}
	calls := map[string]int{}
	count := func(command string, r harness.Reply) {
		if r.Status != 0 {
			t.Fatal(r)
		}
		calls[command] = r.Fault.Calls
	}
	count("recover", site.Recover(t, inState))
	count("snapshot take", p.Run(t, inState, "snapshot", "take", site.Root))
	count("preview", site.PreviewReply(t, inState))
	count("commit", site.Commit(t, inState))
	count("rollback", p.Run(t, inState, "rollback", "--json", "--emergency", site.Root))
	moved := site.Root + " moved"
	harness.Must(t, os.Rename(site.Root, moved))
	count("recover of a moved root", p.Run(t, inState, "recover", "--json", moved))
	count("recover after that", p.Run(t, inState, "recover", "--json", moved))
	return calls
}
