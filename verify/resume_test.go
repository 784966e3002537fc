package verify_test

import (
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// resume verifies by SPECTRUM-02.
func resume(t testing.TB, r *bundletest.Run) error {
	t.Helper()
	run := openRuns(t, r)[0]
	return inTime(t, func() error { return verify.Resume(t.Context(), run, "", verify.Watch{}) })
}

// resumeFaults are faults of SPECTRUM-02 in the order in which it finds them.
var resumeFaults = []fault{
	{name: "no TASK_SPEC", after: remove(bundle.TaskSpec), want: want{verify.BundleIncomplete, about(bundle.TaskSpec)}},
	{name: "no STATUS", after: remove(bundle.Status), want: want{verify.BundleIncomplete, about(bundle.Status)}},
	{name: "no OUTPUT_HASHES", after: remove(bundle.OutputHashes), want: want{verify.BundleIncomplete, about(bundle.OutputHashes)}},
	{name: "malformed TASK_SPEC", after: write(bundle.TaskSpec, "[]"), want: want{verify.BundleIncomplete, about(bundle.TaskSpec)}},
	{name: "malformed STATUS", after: write(bundle.Status, "{"), want: want{verify.BundleIncomplete, about(bundle.Status)}},
	{name: "status", content: edit(bundle.Status, set("status", "failure")), want: want{verify.StatusNotSuccess, about(bundle.Status, "status")}},
	{name: "cmp01", content: edit(bundle.Status, set("cmp01", "fail")), want: want{verify.CMP01NotPass, about(bundle.Status, "cmp01")}},
	{name: "malformed OUTPUT_HASHES", after: write(bundle.OutputHashes, `{"a":1,"a":1}`), want: want{verify.BundleIncomplete, about(bundle.OutputHashes)}},
	{name: "semver", content: edit(bundle.OutputHashes, set("validator_semver", "2.0.0")), want: want{verify.ValidatorUnsupported, about(bundle.OutputHashes, "validator_semver")}},
	{name: "build id", content: edit(bundle.OutputHashes, set("validator_build_id", "")), want: want{verify.ValidatorBuildIDMissing, about(bundle.OutputHashes, "validator_build_id")}},
	{name: "no hashes", content: edit(bundle.OutputHashes, drop("hashes")), want: want{verify.BundleIncomplete, about(bundle.OutputHashes, "hashes")}},
	{name: "first output missing", after: loseOutput("dist/a"), want: want{verify.OutputMissing, aboutPath("dist/a")}},
	{name: "first output changed", after: changeOutput("dist/a"), want: want{verify.HashMismatch, mismatch("dist/a", bundletest.Hash("aaa"), "changed")}},
	{name: "second output missing", after: loseOutput("dist/b"), want: want{verify.OutputMissing, aboutPath("dist/b")}},
	{name: "second output changed", after: changeOutput("dist/b"), want: want{verify.HashMismatch, mismatch("dist/b", bundletest.Hash("bbb"), "changed")}},
}

func TestResumeRejects(t *testing.T) {
	for _, f := range resumeFaults {
		t.Run(f.name, func(t *testing.T) {
			r := newRun(t)
			spoil(r, f)
			checkReject(t, resume(t, r), f.want)
			run := openRuns(t, r)[0]
			always(t, func() error { return verify.Resume(t.Context(), run, "", verify.Watch{}) })
		})
	}
}

func TestResumeOrder(t *testing.T) {
	number, tried := 0, sample.Every(t, 7)
	for i, first := range resumeFaults {
		for _, second := range resumeFaults[i+1:] {
			if number++; !tried.Has(number) {
				continue
			}
			r := newRun(t)
			spoil(r, first, second)
			if checkReject(t, resume(t, r), first.want); t.Failed() {
				t.Fatalf("%q, with %q as well", first.name, second.name)
			}
		}
	}
}

// resumeCases are further values, each alone.
func resumeCases() []fault {
	var faults []fault
	each := func(field string, code verify.Code, values ...any) {
		for _, v := range values {
			faults = append(faults, fault{name: field, content: edit(bundle.OutputHashes, set(field, v)), want: want{code, about(bundle.OutputHashes, field)}})
		}
	}
	each("validator_semver", verify.ValidatorUnsupported, "", "1", "1.0", "1.2.0", "v1.0.0", "1.0.0 ", "1.0.0-rc1", "01.0.0", nil, 1.0, []string{"1.0.0"})
	each("validator_build_id", verify.ValidatorBuildIDMissing, "", nil, 0, false, []string{"git:abc"}, map[string]any{})
	each("hashes", verify.BundleIncomplete, nil, "x", 1, []string{}, map[string]any{"dist/a": nil}, map[string]any{"dist/a": 1})
	return append(faults,
		fault{name: "no semver", content: edit(bundle.OutputHashes, drop("validator_semver")), want: want{verify.ValidatorUnsupported, about(bundle.OutputHashes, "validator_semver")}},
		fault{name: "no build id", content: edit(bundle.OutputHashes, drop("validator_build_id")), want: want{verify.ValidatorBuildIDMissing, about(bundle.OutputHashes, "validator_build_id")}},
		fault{name: "no status", content: edit(bundle.Status, drop("status")), want: want{verify.StatusNotSuccess, about(bundle.Status, "status")}},
		fault{name: "no cmp01", content: edit(bundle.Status, drop("cmp01")), want: want{verify.CMP01NotPass, about(bundle.Status, "cmp01")}},
		fault{name: "status true", content: edit(bundle.Status, set("status", true)), want: want{verify.StatusNotSuccess, about(bundle.Status, "status")}},
		fault{name: "ill-formed path", content: edit(bundle.OutputHashes, set("hashes", map[string]any{"../x": "y"})), want: want{verify.OutputMissing, aboutPath("../x")}},
		fault{name: "task spec is a link", after: func(r *bundletest.Run) { replaceBy(r.T, r.Path(bundle.TaskSpec), harness.LinkTo(bundle.Status)) }, want: want{verify.BundleIncomplete, about(bundle.TaskSpec)}},
		fault{name: "status is a FIFO", after: func(r *bundletest.Run) { replaceBy(r.T, r.Path(bundle.Status), harness.FIFO) }, want: want{verify.BundleIncomplete, about(bundle.Status)}},
		fault{name: "hashes is a directory", after: func(r *bundletest.Run) { replaceBy(r.T, r.Path(bundle.OutputHashes), harness.Directory) }, want: want{verify.BundleIncomplete, about(bundle.OutputHashes)}},
	)
}

func TestResumeCases(t *testing.T) {
	for _, f := range resumeCases() {
		t.Run(f.name, func(t *testing.T) {
			r := newRun(t)
			spoil(r, f)
			checkReject(t, resume(t, r), f.want)
		})
	}
}

// TestResumeAccepts: it looks at nothing that is not in the law.
func TestResumeAccepts(t *testing.T) {
	for name, change := range map[string]func(r *bundletest.Run){
		"as it is": func(*bundletest.Run) {},
		"unsigned": func(r *bundletest.Run) {
			for _, name := range strictOrder[3:] {
				r.Remove(name)
			}
		},
		"wrong signature": write(bundle.Signature, "no JSON"),
		"wrong proof":     write(bundle.Proof, "{}"),
		"logs and tmp": func(r *bundletest.Run) {
			must(r.T, harness.Directory(r.Path("logs")))
			must(r.T, harness.Directory(r.Path("tmp")))
			r.WriteRaw("transcript.json", nil)
		},
		"second signature": write("SIGNATURE2.json", "{}"),
		"semver 1.0.0":     edit(bundle.OutputHashes, set("validator_semver", "1.0.0")),
		"no outputs":       edit(bundle.OutputHashes, set("hashes", map[string]any{})),
		"task spec empty":  write(bundle.TaskSpec, "{}"),
	} {
		r := newRun(t)
		change(r)
		if err := resume(t, r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestResumeBuild is the strict mode of SPECTRUM-02.
func TestResumeBuild(t *testing.T) {
	r := newRun(t)
	run := openRuns(t, r)[0]
	must(t, verify.Resume(t.Context(), run, "git:abc1234", verify.Watch{}))
	for _, build := range []string{"git:abc123", "git:ABC1234", "git:abc1234 ", strings.Repeat("x", 100)} {
		err := verify.Resume(t.Context(), run, build, verify.Watch{})
		checkReject(t, err, want{verify.ValidatorBuildMismatch, map[string]string{
			"artifact": bundle.OutputHashes, "field": "validator_build_id", "expected": build, "actual": "git:abc1234",
		}})
	}
	spoil(r, fault{content: edit(bundle.OutputHashes, set("validator_build_id", nil))})
	err := verify.Resume(t.Context(), run, "git:abc1234", verify.Watch{})
	checkReject(t, err, want{verify.ValidatorBuildIDMissing, about(bundle.OutputHashes, "validator_build_id")})
}
