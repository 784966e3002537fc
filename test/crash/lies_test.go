package crash

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

func named(names ...string) func(sysfault.Call) bool {
	return func(c sysfault.Call) bool { return slices.Contains(names, c.Name) }
}

// TestLyingSync has each sync report success without one. That is found by a
// power cut only, so the commit succeeds.
func TestLyingSync(t *testing.T) {
	lies(t, sysfault.Plan{Lie: true, Match: named("fsync", "fdatasync", "syncfs", "sync_file_range")}, "")
}

// TestShortWrites has each write and copy do half of what it was asked for. That
// is not an error: the rest must follow.
func TestShortWrites(t *testing.T) {
	lies(t, sysfault.Plan{Short: true, Match: named("write", "pwrite64", "copy_file_range", "sendfile")}, "")
}

// TestLyingCopies has the first copy of each file report all bytes and do
// nothing.
func TestLyingCopies(t *testing.T) {
	seen := map[string]bool{}
	var mu sync.Mutex
	lies(t, sysfault.Plan{Lie: true, Match: func(c sysfault.Call) bool {
		mu.Lock()
		defer mu.Unlock()
		what := c.Name + c.Path
		first := !seen[what]
		seen[what] = true
		return first && (c.Name == "ioctl" || c.Name == "copy_file_range")
	}}, "RESTORE_STAGING_HASH_MISMATCH")
}

// lies sweeps a plan over a commit. Each trial ends with this code, or with
// success if it is empty.
func lies(t *testing.T, plan sysfault.Plan, code string) {
	t.Helper()
	for _, onward := range []bool{false, true} {
		t.Run(fmt.Sprint("onward ", onward), func(t *testing.T) {
			sum := sweep(t, sample.Every(t, 9), restoring(harness.Small()), func(t *testing.T, tr *trials, n int) bool {
				s := tr.site(t, n)
				p := plan
				p.N, p.Onward, p.Record, p.Match = n, onward, true, s.Beneath(plan.Match)
				r := s.Commit(t, &p)
				if r.Fault.Calls < n {
					return false
				}
				if r.Fault.Fired == 0 {
					tr.Add("nothing to lie about")
					return true
				}
				_, err := s.Check(harness.Allowed(r, s.ReportSeen())...)
				tr.Add("ended with " + quote(r.Answer.Code))
				if r.Answer.Code != code || err != nil {
					t.Errorf("%s: %v\n%v", s.Describe(r.Fault.Trace[n-1]), r, err)
				}
				s.Remove(t)
				return true
			})
			sum.Demand(t, "ended with "+quote(code))
		})
	}
}

func quote(code string) string {
	if code == "" {
		return "success"
	}
	return code
}
