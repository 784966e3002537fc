package rival

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// lastSource is a source of the last run of the chain.
const lastSource = "third/deep/c"

// TestChainLateFailure lets the last run of a chain fail, in every window: its source changes, or
// another process makes its directory. The runs before it go too, and the chain manifest.
func TestChainLateFailure(t *testing.T) {
	for name, act := range map[string]func(*attempt) bool{
		"source changes": func(a *attempt) bool {
			return a.did(os.WriteFile(a.Project.Source(lastSource), []byte("other\n"), 0o644))
		},
		"source is removed": func(a *attempt) bool { return a.did(os.Remove(a.Project.Source(lastSource))) },
		"directory is made": func(a *attempt) bool {
			dir := filepath.Join(a.Root, a.Project.Runs[2].ID)
			if os.Mkdir(dir, 0o755) != nil {
				return false
			}
			tree, err := harness.Take(dir)
			a.leave(a.Project.Runs[2].ID, tree["."])
			return a.did(err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := harness.New(t, outputChain()...)
			mend := mender(t, p.Source(lastSource))
			var sum harness.Tally
			codes := map[string]int{}
			inWindows(t, sample.Thin(t, 41, 3), func(n int) int {
				a := newAttempt(t, p, fmt.Sprint(n))
				r := a.Commit(t, &sysfault.Plan{N: n, Match: a.names, Before: func(sysfault.Call) {
					act(a)
					found, err := filepath.Glob(filepath.Join(a.Root, ".spectrum06_chain_*"))
					harness.Must(t, err)
					sum.AddN("with a chain manifest", len(found))
				}})
				sum.AddN("windows", r.Fault.Fired)
				codes[fmt.Sprint(r.Status, " ", r.Answer.Code)]++
				a.end(t, r, attack{})
				if a.failed(t, fmt.Sprintf("%s before call %d", name, n), r) || r.Fault.Fired == 0 {
					return 0
				}
				mend()
				return n
			})
			t.Log(codes)
			sum.Demand(t, "with a chain manifest")
			if sample.Now() > sample.Sample && len(codes) < 3 {
				t.Error("too little was seen")
			}
		})
	}
}

// TestChainStale changes a source of the last run between preview and commit.
func TestChainStale(t *testing.T) {
	p := harness.New(t, outputChain()...)
	a := newAttempt(t, p, "stale")
	stamp, err := harness.Stamp(a.Root)
	harness.Must(t, err)
	id := a.Preview(t)
	harness.Must(t, os.WriteFile(p.Source(lastSource), []byte("C\n"), 0o644))
	r := p.Run(t, nil, harness.CommitArgs(id)...)
	if r.Status != 1 || r.Answer.Code != "RESTORE_VERIFY_STRICT_FAILED" {
		t.Error(r)
	}
	if err := a.Refused(stamp); err != nil {
		t.Error(err)
	}
}
