package verify_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// TestFindings: what SPECTRUM-02 and -03 have against chains that SPECTRUM-05
// accepts, and the same of one run at a time as those laws find it themselves.
func TestFindings(t *testing.T) {
	type run struct {
		semver, build any
		completed     any // nil: none
		inputs        []any
	}
	good := func(completed any, inputs ...any) run { return run{"1.1.0", "git:x", completed, inputs} }
	const one, two = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
	for name, c := range map[string]struct {
		runs []run
		want []string
	}{
		"nothing":          {[]run{good(one, "out-1"), good(two, "out-1", "out-2")}, nil},
		"not dated":        {[]run{good(two), good(nil), good(one)}, nil},
		"unsupported":      {[]run{{"9", "git:x", one, nil}, good(two)}, []string{"run-1 VALIDATOR_UNSUPPORTED"}},
		"semver no text":   {[]run{{1, "git:x", one, nil}}, []string{"run-1 VALIDATOR_UNSUPPORTED"}},
		"no build":         {[]run{good(one), {"1.0.0", "", two, nil}}, []string{"run-2 VALIDATOR_BUILD_ID_MISSING"}},
		"order":            {[]run{good(two), good(one)}, []string{"run-2 CHAIN_ORDER_VIOLATION"}},
		"same time":        {[]run{good(one), good(one)}, []string{"run-2 CHAIN_ORDER_VIOLATION"}},
		"no date":          {[]run{good("yesterday"), good(one)}, []string{"run-1 CHAIN_ORDER_VIOLATION"}},
		"reference":        {[]run{good(one, "out-2"), good(two)}, []string{"run-1 INVALID_CHAIN_REFERENCE"}},
		"reference, type":  {[]run{good(one, 7)}, []string{"run-1 INVALID_CHAIN_REFERENCE"}},
		"all of them":      {[]run{{"9", "", two, []any{"x"}}, {"9", "", one, []any{"x"}}}, []string{"run-1 VALIDATOR_UNSUPPORTED", "run-2 VALIDATOR_UNSUPPORTED", "run-2 CHAIN_ORDER_VIOLATION", "run-1 INVALID_CHAIN_REFERENCE", "run-2 INVALID_CHAIN_REFERENCE"}},
		"after a bad date": {[]run{good("x"), good("y")}, []string{"run-1 CHAIN_ORDER_VIOLATION", "run-2 CHAIN_ORDER_VIOLATION"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := bundletest.New(t)
			var runs []*verify.Run
			project, err := pathsafe.OpenRoot(p.Root)
			if err != nil {
				t.Fatal(err)
			}
			defer project.Close()
			for i, r := range c.runs {
				id := string(rune('1' + i))
				made := p.Run("run-"+id, map[string]string{"out-" + id: id})
				made.Edit(bundle.OutputHashes, func(f map[string]any) { f["validator_semver"], f["validator_build_id"] = r.semver, r.build })
				made.Edit(bundle.TaskSpec, func(f map[string]any) { f["inputs"] = append([]any{}, r.inputs...) })
				made.Edit(bundle.Status, func(f map[string]any) {
					if f["completed_at"] = r.completed; r.completed == nil {
						delete(f, "completed_at")
					}
				})
				made.Sign()
				run, err := verify.OpenRun(project, made.Dir)
				if err != nil {
					t.Fatal(err)
				}
				defer run.Close()
				runs = append(runs, run)
			}
			chain, err := verify.StrictChain(context.Background(), runs, verify.Watch{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, found := range verify.Findings(slices.Collect(chain.Bundles())) {
				got = append(got, found.RunID+" "+string(found.Code))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if err := verify.Memory(context.Background(), runs, verify.Watch{}); (err == nil) != (len(c.want) == 0) {
				t.Errorf("SPECTRUM-03 says %v", err)
			}
		})
	}
}
