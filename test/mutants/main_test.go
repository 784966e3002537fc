package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
)

var must = harness.Must

// The program that the mutants of these tests change, and its tests.
const (
	program = `package staging

func Half(n int) int {
	return n / 2
}

func Twice(n int) int {
	return n * 2
}
`
	tests = `package staging

import "testing"

func TestHalf(t *testing.T) {
	if Half(4) != 2 {
		t.Error("half of 4")
	}
}

func TestHalfOfNothing(t *testing.T) {
	if Half(0) != 0 {
		t.Error("half of 0")
	}
}

func TestSkipped(t *testing.T) { t.Skip("never") }

func TestWrong(t *testing.T) { t.Error("always") }
`
)

// patch changes one line of the program.
func patch(test, old, now string) string {
	return fmt.Sprintf(`A half is too much.

Breaks: arithmetic
Package: ./staging
Test: ^%s$
Lane: test

--- a/staging/half.go
+++ b/staging/half.go
@@ -1,5 +1,5 @@
 package staging
 
 func Half(n int) int {
-%s
+%s
 }
`, test, old, now)
}

// checkout is one with the program; git need not know who commits.
func checkout(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "staging"), 0o755))
	for name, text := range map[string]string{"go.mod": "module example.org/half\n\ngo 1.26\n", "staging/half.go": program, "staging/half_test.go": tests} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}} {
		_, err := output(dir, "git", args...)
		must(t, err)
	}
	return dir
}

// A mutant that is caught passes; one that is not, for whatever reason, fails the run,
// and the reason is told. Nothing is left behind.
func TestVerdicts(t *testing.T) {
	sample.Need(t, sample.Sweep) // as the lane is, and it compiles the standard library anew
	const line = "\treturn n / 2"
	cases := []struct{ name, patch, want string }{
		{"1-caught", patch("TestHalf", line, "\treturn n"), ""},
		{"2-survives", patch("TestHalfOfNothing", line, "\treturn n"), "the mutant survives"},
		{"3-stale", patch("TestHalf", "\treturn n >> 1", "\treturn n"), "no longer applies"},
		{"4-no-test", patch("TestNone", line, "\treturn n"), "does not exist"},
		{"5-skipped", patch("TestSkipped", line, "\treturn n"), "was skipped"},
		{"6-always", patch("TestWrong", line, "\treturn n"), "without the fault"},
		{"7-no-compile", patch("TestHalf", line, "\treturn n // 2\n+\tn++"), "does not compile"},
		{"8-panic", patch("TestHalf", line, "\treturn n / (n - 4)"), "has to fail by an assertion"},
	}
	dir := t.TempDir()
	cases[6].patch = strings.Replace(cases[6].patch, "+1,5 @@", "+1,6 @@", 1)
	for _, c := range cases {
		must(t, os.WriteFile(filepath.Join(dir, c.name+suffix), []byte(c.patch), 0o644))
	}
	temp := t.TempDir()
	r := &runner{checkout: checkout(t), jobs: 2, out: &strings.Builder{}, envs: [][]string{nil}}
	t.Setenv("TMPDIR", temp)
	var err error
	r.mutants, err = load(dir)
	must(t, err)
	if r.all(t.Context()) == nil {
		t.Error("the run passed")
	}
	told := map[string]string{}
	for _, err := range r.errs {
		name, why, _ := strings.Cut(err.Error(), ": ")
		told[name] = why
	}
	for _, c := range cases {
		if why, bad := told[c.name]; bad != (c.want != "") || !strings.Contains(why, c.want) {
			t.Errorf("%s: %q, want %q", c.name, why, c.want)
		}
	}
	if r.caught != 1 {
		t.Errorf("%d were caught", r.caught)
	}
	if left, err := filepath.Glob(temp + "/spectrum-*"); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

// The patches of this directory keep the form, there are enough of them, and each fits the code.
func TestPatches(t *testing.T) {
	r := &runner{}
	must(t, r.load(".", ""))
	t.Logf("%d mutants", len(r.mutants))
	for _, m := range r.mutants {
		if _, err := output("../..", "git", "apply", "--check", m.path); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
	}
	if err := r.load(".", "no such mutant"); err == nil {
		t.Error("no error, although none was found")
	}
}

func TestForm(t *testing.T) {
	good := patch("TestHalf", "\treturn n / 2", "\treturn n")
	if _, err := parse(good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string][2]string{
		"no fault":            {"A half is too much.", ""},
		"no promise":          {"Breaks: arithmetic\n", ""},
		"no package":          {"Package: ./staging\n", ""},
		"all packages":        {"./staging", "./..."},
		"no test":             {"Test: ^TestHalf$\n", ""},
		"two tests":           {"^TestHalf$", "^TestHalf"},
		"no lane":             {"Lane: test\n", ""},
		"another lane":        {"Lane: test", "Lane: long"},
		"a field twice":       {"Lane: test", "Lane: test\nLane: test"},
		"a field that is not": {"Lane: test", "Lane: test\nOwner: x"},
		"a test in the sweep": {"Lane: test", "Lane: test\nEnv: SPECTRUM_TESTS=sweep"},
		"no diff":             {"\n--- a/", "\n--- "},
		"a test is changed":   {"+++ b/staging/half.go", "+++ b/staging/half_test.go"},
		"another package":     {"+++ b/staging/half.go", "+++ b/cmd/half.go"},
	} {
		if _, err := parse(strings.Replace(good, change[0], change[1], 1)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestJudge(t *testing.T) {
	for name, c := range map[string]struct {
		out    string
		status int
		want   verdict
	}{
		"passed":          {"=== RUN   TestX\n--- PASS: TestX (0.00s)\nPASS\n", 0, passed},
		"failed":          {"--- FAIL: TestX (0.00s)\n    x_test.go:1: no\nFAIL\n", 1, failed},
		"a subtest":       {"--- FAIL: TestX (0.00s)\n    --- FAIL: TestX/y (0.00s)\nFAIL\n", 1, failed},
		"skipped":         {"--- SKIP: TestX (0.00s)\nPASS\n", 0, skipped},
		"no test":         {"testing: warning: no tests to run\nPASS\n", 0, absent},
		"panic":           {"--- FAIL: TestX (0.00s)\npanic: oops\n", 2, broken},
		"another test":    {"--- FAIL: TestXY (0.00s)\nFAIL\n", 1, broken},
		"TestMain":        {"--- PASS: TestX (0.00s)\nPASS\nleft a mount\n", 1, broken},
		"killed":          {"=== RUN   TestX\n", -1, broken},
		"words of others": {"    --- PASS: TestX (0.00s)\n", 0, broken},
	} {
		if got := judge("TestX", c.out, c.status); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestFailuresIn(t *testing.T) {
	const events = `{"Action":"run","Package":"github.com/spectrumfs/spectrum/a","Test":"TestX"}
{"Action":"fail","Package":"github.com/spectrumfs/spectrum/a","Test":"TestX/sub"}
{"Action":"fail","Package":"github.com/spectrumfs/spectrum/a","Test":"TestX"}
{"Action":"fail","Package":"github.com/spectrumfs/spectrum/a"}
{"Action":"pass","Package":"github.com/spectrumfs/spectrum/b"}
{"Action":"build-fail","ImportPath":"x"}
{"Action":"fail","Package":"github.com/spectrumfs/spectrum/c"}
`
	got, err := failuresIn([]byte(events))
	if err != nil || strings.Join(got, ", ") != "a TestX, c all of it" {
		t.Errorf("%q, %v", got, err)
	}
}
