package verify_test

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

func memory(t testing.TB, runs ...*bundletest.Run) error {
	t.Helper()
	opened := openRuns(t, runs...)
	return inTime(t, func() error { return verify.Memory(t.Context(), opened, verify.Watch{}) })
}

// inRun changes a run of a chain without signing: this law ignores signatures.
func inRun(i int, artifact string, change func(map[string]any)) func([]*bundletest.Run) {
	return func(runs []*bundletest.Run) { runs[i].Edit(artifact, change) }
}

var (
	orderWant     = want{verify.ChainOrderViolation, about(bundle.Status, "completed_at")}
	forbiddenWant = want{verify.ForbiddenArtifact, about("logs/")}
)

func referenceWant(path string) want {
	return want{verify.InvalidChainReference, map[string]string{"artifact": bundle.TaskSpec, "field": "inputs", "path": path}}
}

// memoryFaults are faults of a chain of three in the order in which SPECTRUM-03
// finds them: bundles, order, references, forbidden artifacts.
var memoryFaults = []chainFault{
	{"first bundle incomplete", func(runs []*bundletest.Run) { runs[0].Remove(bundle.Status) }, "r0", want{verify.BundleIncomplete, about(bundle.Status)}},
	{"second bundle changed", func(runs []*bundletest.Run) { runs[1].Write("out/1", "changed") }, "r1", want{verify.HashMismatch, mismatch("out/1", bundletest.Hash("content 1"), "changed")}},
	{"third bundle's output missing", func(runs []*bundletest.Run) { must(runs[2].T, os.Remove(at(runs[2], "out/2"))) }, "r2", want{verify.OutputMissing, aboutPath("out/2")}},
	{"second completed too early", inRun(1, bundle.Status, set("completed_at", "2026-01-02T02:00:00Z")), "r1", orderWant},
	{"third has no time", inRun(2, bundle.Status, set("completed_at", "yesterday")), "r2", orderWant},
	{"first refers to nothing", inRun(0, bundle.TaskSpec, set("inputs", []string{"out/0", "missing"})), "r0", referenceWant("missing")},
	{"second refers to a later run", inRun(1, bundle.TaskSpec, set("inputs", []string{"out/2"})), "r1", referenceWant("out/2")},
	{"logs in the first", func(runs []*bundletest.Run) { runs[0].WriteRaw("logs", nil) }, "r0", forbiddenWant},
	{"tmp in the first", func(runs []*bundletest.Run) { must(runs[0].T, harness.Directory(runs[0].Path("tmp"))) }, "r0", want{verify.ForbiddenArtifact, about("tmp/")}},
	{"transcript in the second", func(runs []*bundletest.Run) { runs[1].WriteRaw("transcript.json", nil) }, "r1", want{verify.ForbiddenArtifact, about("transcript.json")}},
	{"logs in the third", func(runs []*bundletest.Run) { must(runs[2].T, os.Symlink("x", runs[2].Path("logs"))) }, "r2", forbiddenWant},
}

func TestMemoryRejects(t *testing.T) {
	for _, f := range memoryFaults {
		t.Run(f.name, func(t *testing.T) {
			runs := newChain(t, 3)
			f.damage(runs)
			checkRunReject(t, memory(t, runs...), f.runID, f.want)
			opened := openRuns(t, runs...)
			always(t, func() error { return verify.Memory(t.Context(), opened, verify.Watch{}) })
		})
	}
}

// TestMemoryOfTwoDirectories: a run directory that is replaced while its outputs are read is not
// accepted because of what the other one lacks.
func TestMemoryOfTwoDirectories(t *testing.T) {
	runs := newChain(t, 2)
	runs[0].WriteRaw("logs", nil)
	path, swapped := runs[0].Path("."), false
	watch := verify.Watch{Hashed: func(int64) {
		if !swapped {
			swapped = true
			must(t, os.Rename(path, path+".moved"))
			must(t, harness.Directory(path))
		}
	}}
	err := verify.Memory(t.Context(), openRuns(t, runs...), watch)
	var reject *verify.Reject
	if !swapped || err == nil || errors.As(err, &reject) {
		t.Errorf("swapped: %v, verdict %v", swapped, err)
	}
}

func TestMemoryOrder(t *testing.T) {
	number, tried := 0, sample.Every(t, 5)
	for i, first := range memoryFaults {
		for _, second := range memoryFaults[i+1:] {
			if number++; !tried.Has(number) {
				continue
			}
			runs := newChain(t, 3)
			second.damage(runs)
			first.damage(runs)
			if checkRunReject(t, memory(t, runs...), first.runID, first.want); t.Failed() {
				t.Fatalf("%q, with %q as well", first.name, second.name)
			}
		}
	}
}

// TestMemoryTakesResumeFaults: each fault of SPECTRUM-02 is one of a chain too.
func TestMemoryTakesResumeFaults(t *testing.T) {
	tried := sample.Every(t, 3)
	for i, f := range resumeFaults {
		if !tried.Has(i + 1) {
			continue
		}
		if strings.Contains(f.name, "output") {
			continue // these name outputs of another run
		}
		runs := newChain(t, 3)
		spoil(runs[1], f)
		checkRunReject(t, memory(t, runs...), "r1", f.want)
	}
}

func TestMemoryOfNoRun(t *testing.T) {
	checkRunReject(t, memory(t), "", want{verify.ChainEmpty, nil})
}

// TestCompletionOrder: of two consecutive runs that both have a
// time, the later one strictly after; and no time that is not RFC 3339.
func TestCompletionOrder(t *testing.T) {
	const none = "none"
	runs := newChain(t, 3)
	for _, c := range []struct {
		times []any
		bad   int // the run at fault, or -1
	}{
		{[]any{"2026-01-02T03:04:05Z", "2026-01-02T03:04:06Z", "2026-01-03T00:00:00Z"}, -1},
		{[]any{"2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000000001Z", "2026-01-02T03:04:05.1Z"}, -1},
		{[]any{"2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z", "2026-01-02T03:04:06Z"}, 1},
		{[]any{"2026-01-02T03:04:05.0Z", "2026-01-02T03:04:05.000Z", none}, 1},
		{[]any{"2026-01-02T03:04:05+01:00", "2026-01-02T02:04:06Z", "2026-01-02T05:04:07+03:00"}, -1},
		{[]any{"2026-01-02T03:04:05+01:00", "2026-01-02T02:04:05Z", none}, 1},
		{[]any{"2026-01-02T03:04:05Z", "2026-01-02T04:04:04+01:00", none}, 1},
		{[]any{"2026-01-02T03:04:05Z", "2026-01-02T03:04:07Z", "2026-01-02T03:04:06Z"}, 2},
		{[]any{"2026-01-02T03:04:05Z", none, "2026-01-02T03:04:04Z"}, -1},
		{[]any{none, none, none}, -1},
		{[]any{none, "2026-01-02T03:04:05Z", "2026-01-02T03:04:04Z"}, 2},
		{[]any{"2026-01-02T03:04:05-00:00", "2026-02-28T23:59:59.999Z", "2028-02-29T00:00:00Z"}, -1},
		{[]any{"2026-01-02T03:04:05Z", none, "2026-01-02 03:04:06Z"}, 2},
		{[]any{"", none, none}, 0}, {[]any{nil, none, none}, 0}, {[]any{1767323045, none, none}, 0}, {[]any{none, []string{}, none}, 1},
		{[]any{"2026-01-02T03:04:05", none, none}, 0}, {[]any{"2026-01-02", none, none}, 0}, {[]any{"2026-02-30T00:00:00Z", none, none}, 0},
		{[]any{"2026-01-02T24:00:00Z", none, none}, 0}, {[]any{"2026-1-2T03:04:05Z", none, none}, 0}, {[]any{"2026-01-02T03:04Z", none, none}, 0},
		{[]any{"2026-01-02T03:04:05,5Z", none, none}, 0}, {[]any{"2026-01-02T03:04:05+1:00", none, none}, 0}, {[]any{"2026-01-02T03:04:05+25:00", none, none}, 0},
		{[]any{"2026-01-02T3:04:05Z", none, none}, 0}, {[]any{"2026-01-02T03:04:05+01:60", none, none}, 0}, {[]any{"2026-01-02T03:04:05.Z", none, none}, 0},
		{[]any{"2026-01-02t03:04:05z", "2026-01-02T03:04:05.5z", "2026-01-02t03:04:06+00:00"}, -1}, {[]any{"2026-13-01T00:00:00Z", none, none}, 0},
		{[]any{"2026-01-02T03:04:05Z ", none, none}, 0}, {[]any{" 2026-01-02T03:04:05Z", none, none}, 0}, {[]any{"02026-01-02T03:04:05Z", none, none}, 0},
		{[]any{"2016-12-31T23:59:59.9Z", "2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z"}, -1},
		{[]any{"2016-12-31T23:59:60Z", "2016-12-31T23:59:60.5Z", "2017-01-01T00:59:60.50+01:00"}, 2},
		{[]any{"2017-01-01T00:00:00Z", "2016-12-31T23:59:60Z", none}, 1},
		{[]any{"2016-12-31T22:59:60Z", none, none}, 0}, {[]any{"2016-12-30T23:59:60Z", none, none}, 0}, {[]any{"2016-12-31T23:59:61Z", none, none}, 0},
		{[]any{"2026-01-02T03:04:05.0000000001Z", "2026-01-02T03:04:05.0000000002Z", "2026-01-02T03:04:05.00000000020Z"}, 2},
		{[]any{"2026-01-02T03:04:05.0000000002Z", "2026-01-02T03:04:05.00000000011Z", none}, 1},
	} {
		for i, value := range c.times {
			runs[i].Edit(bundle.Status, set("completed_at", value))
			if value == none {
				runs[i].Edit(bundle.Status, drop("completed_at"))
			}
		}
		err := memory(t, runs...)
		if c.bad >= 0 {
			checkRunReject(t, err, fmt.Sprint("r", c.bad), orderWant)
		}
		if c.bad < 0 && err != nil || t.Failed() {
			t.Fatalf("%v: %v", c.times, err)
		}
	}
}

// TestReferences is rule 3 of SPECTRUM-03: an input is an output of the same or an earlier run.
func TestReferences(t *testing.T) {
	runs := newChain(t, 3)
	for name, c := range map[string]struct {
		inputs any
		want   *want
	}{
		"its own":             {[]string{"out/1"}, nil},
		"an earlier run's":    {[]string{"out/0", "out/0"}, nil},
		"none":                {[]string{}, nil},
		"a later run's":       {[]string{"out/0", "out/2"}, ptr(referenceWant("out/2"))},
		"no run's":            {[]string{"zzz", "yyy"}, ptr(referenceWant("zzz"))},
		"nearly":              {[]string{"out/0/"}, ptr(referenceWant("out/0/"))},
		"another form":        {[]string{"./out/0"}, ptr(referenceWant("./out/0"))},
		"empty":               {[]string{""}, ptr(referenceWant(""))},
		"not text":            {[]any{"out/0", 1}, &want{verify.InvalidChainReference, about(bundle.TaskSpec, "inputs")}},
		"null in it":          {[]any{nil}, &want{verify.InvalidChainReference, about(bundle.TaskSpec, "inputs")}},
		"nested":              {[]any{[]string{"out/0"}}, &want{verify.InvalidChainReference, about(bundle.TaskSpec, "inputs")}},
		"an object":           {map[string]any{"out/0": 1}, &want{verify.InvalidChainReference, about(bundle.TaskSpec, "inputs")}},
		"a string":            {"out/0", &want{verify.InvalidChainReference, about(bundle.TaskSpec, "inputs")}},
		"null":                {nil, &want{verify.InvalidChainReference, about(bundle.TaskSpec, "inputs")}},
		"hostile":             {[]string{"\x1b[2J\u202e\n"}, ptr(referenceWant("\x1b[2J\u202e\n"))},
		"hostile and no text": {[]any{[]any{"\x1b[2J\u202e\u009b"}}, &want{verify.InvalidChainReference, about(bundle.TaskSpec, "inputs")}},
	} {
		runs[1].Edit(bundle.TaskSpec, set("inputs", c.inputs))
		err := memory(t, runs...)
		if c.want == nil && err != nil {
			t.Errorf("%s: %v", name, err)
		} else if c.want != nil {
			checkRunReject(t, err, "r1", *c.want)
		}
	}
	runs[1].Edit(bundle.TaskSpec, drop("inputs"))
	must(t, memory(t, runs...))
}

func ptr[T any](v T) *T { return &v }

// TestReferenceMemory: what is not text is not written out to be shown.
func TestReferenceMemory(t *testing.T) {
	runs := newChain(t, 1)
	runs[0].WriteRaw(bundle.TaskSpec, []byte(`{"inputs":[[`+strings.Repeat("1e308,", 200_000)+`0]]}`))
	opened := openRuns(t, runs...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := verify.Memory(t.Context(), opened, verify.Watch{})
	runtime.ReadMemStats(&after)
	checkReject(t, err, want{verify.InvalidChainReference, about(bundle.TaskSpec, "inputs")})
	if n := after.TotalAlloc - before.TotalAlloc; n > 16<<20 {
		t.Errorf("%d bytes allocated for an artifact of 1.2 MB", n)
	}
}

// TestMemoryAccepts: signature, proof and identity are not required.
func TestMemoryAccepts(t *testing.T) {
	runs := newChain(t, 3)
	must(t, memory(t, runs...))
	for _, r := range runs {
		for _, name := range strictOrder[3:] {
			r.Remove(name)
		}
	}
	must(t, memory(t, runs...))
	number, tried := 0, sample.Every(t, 6)
	for _, f := range strictFaults {
		if !slices.Contains([]string{bundle.Identity, bundle.SignedPayload, bundle.Signature, bundle.Proof}, f.want.details["artifact"]) {
			continue
		}
		if number++; tried.Has(number) {
			runs := newChain(t, 2)
			spoil(runs[0], f)
			if err := memory(t, runs...); err != nil {
				t.Errorf("%s: %v", f.name, err)
			}
		}
	}
}
