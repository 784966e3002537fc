package verify_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// newChain makes runs r0, r1, ... with one output each, completed a minute
// apart; each has the output of the one before it as its input.
func newChain(t testing.TB, n int) []*bundletest.Run {
	t.Helper()
	p := bundletest.New(t)
	runs := make([]*bundletest.Run, n)
	for i := range runs {
		r := p.Run(fmt.Sprint("r", i), map[string]string{fmt.Sprint("out/", i): fmt.Sprint("content ", i)})
		r.Edit(bundle.Status, set("completed_at", fmt.Sprintf("2026-01-02T03:%02d:05Z", i)))
		if i > 0 {
			r.Edit(bundle.TaskSpec, set("inputs", []string{fmt.Sprint("out/", i-1)}))
		}
		r.Sign()
		runs[i] = r
	}
	return runs
}

// chainFault is one way to break a chain of three.
type chainFault struct {
	name   string
	damage func(runs []*bundletest.Run)
	runID  string
	want   want
}

func strictChain(t testing.TB, runs ...*bundletest.Run) (*verify.Chain, error) {
	t.Helper()
	opened := openRuns(t, runs...)
	var c *verify.Chain
	err := inTime(t, func() (err error) {
		c, err = verify.StrictChain(t.Context(), opened, verify.Watch{})
		return err
	})
	if (c == nil) != (err != nil) {
		t.Fatalf("chain %v, error %v", c, err)
	}
	return c, err
}

func checkRunReject(t testing.TB, err error, runID string, w want) {
	t.Helper()
	checkReject(t, err, w)
	if err != nil && rejected(t, err).RunID != runID {
		t.Errorf("the run at fault is %q, want %q", rejected(t, err).RunID, runID)
	}
}

func TestStrictChainAccepts(t *testing.T) {
	runs := newChain(t, 3)
	c, err := strictChain(t, runs...)
	must(t, err)
	var roots, ids []string
	for b := range c.Bundles() {
		roots, ids = append(roots, b.Root()), append(ids, b.RunID())
	}
	if !slices.Equal(ids, []string{"r0", "r1", "r2"}) || roots[1] != runs[1].BundleRoot() {
		t.Errorf("runs %q, roots %q", ids, roots)
	}
	if root, err := bundle.ChainRoot(roots, ids); err != nil || root != c.Root() {
		t.Errorf("chain root %s, want %s (%v)", c.Root(), root, err)
	}
	back, err := strictChain(t, runs[2], runs[1], runs[0])
	must(t, err)
	one, err := strictChain(t, runs[0])
	must(t, err)
	if back.Root() == c.Root() || one.Root() == c.Root() || one.Root() == back.Root() {
		t.Error("chains of other runs have the same root")
	}
}

// TestStrictChainRejects: the first run at fault is the verdict, whatever is
// wrong with a later one.
func TestStrictChainRejects(t *testing.T) {
	tried := sample.Every(t, 8)
	for n, f := range strictFaults {
		if !tried.Has(n + 1) {
			continue
		}
		if f.want.code == verify.OutputMissing || f.want.code == verify.HashMismatch {
			continue // these name outputs that a chain has not: see below
		}
		runs, i := newChain(t, 3), n%3
		spoil(runs[i], f)
		if i < 2 {
			spoil(runs[2], strictFaults[0])
		}
		_, err := strictChain(t, runs...)
		if checkRunReject(t, err, fmt.Sprint("r", i), f.expected(runs[i])); t.Failed() {
			t.Fatal(f.name)
		}
	}
}

func TestStrictChainOutputs(t *testing.T) {
	runs := newChain(t, 3)
	runs[0].Write("out/2", "changed")
	_, err := strictChain(t, runs...)
	checkRunReject(t, err, "r2", want{verify.HashMismatch, mismatch("out/2", bundletest.Hash("content 2"), "changed")})
	must(t, os.Remove(at(runs[0], "out/1")))
	_, err = strictChain(t, runs...)
	checkRunReject(t, err, "r1", want{verify.OutputMissing, aboutPath("out/1")})
}

// TestChainItself: a fault of the list precedes those of any bundle.
func TestChainItself(t *testing.T) {
	runs := newChain(t, 2)
	spoil(runs[0], strictFaults[0])
	elsewhere := &bundletest.Run{Project: runs[0].Project, Dir: at(runs[0], "elsewhere/r1")}
	must(t, os.MkdirAll(elsewhere.Dir, 0o755))
	for name, c := range map[string]struct {
		runs  []*bundletest.Run
		runID string
		want  want
	}{
		"empty":               {nil, "", want{verify.ChainEmpty, nil}},
		"one twice":           {[]*bundletest.Run{runs[0], runs[0]}, "r0", want{verify.ChainDuplicateRun, nil}},
		"one twice, apart":    {[]*bundletest.Run{runs[0], runs[1], runs[0]}, "r0", want{verify.ChainDuplicateRun, nil}},
		"one id, two places":  {[]*bundletest.Run{runs[0], runs[1], elsewhere}, "r1", want{verify.ChainDuplicateRun, nil}},
		"two ids, both twice": {[]*bundletest.Run{runs[0], runs[1], elsewhere, runs[0]}, "r1", want{verify.ChainDuplicateRun, nil}},
	} {
		_, err := strictChain(t, c.runs...)
		checkRunReject(t, err, c.runID, c.want)
		_, err = verify.GateChain(t.Context(), openRuns(t, c.runs...), verify.Watch{})
		checkRunReject(t, err, c.runID, c.want)
		if t.Failed() {
			t.Fatal(name)
		}
	}
}

// TestChainRunIDThatIsNoText: every bundle is verified first; then the chain
// root cannot be written.
func TestChainRunIDThatIsNoText(t *testing.T) {
	runs := newChain(t, 2)
	odd := filepath.Join(filepath.Dir(runs[0].Dir), "r\xff")
	must(t, os.Rename(runs[0].Dir, odd))
	runs[0].Dir = odd
	_, err := strictChain(t, runs...)
	checkReject(t, err, want{verify.SerializationInvalid, nil})
	_, err = verify.GateChain(t.Context(), openRuns(t, runs...), verify.Watch{})
	checkReject(t, err, want{verify.SerializationInvalid, nil})
	if _, err := strict(t, runs[0]); err != nil {
		t.Errorf("alone it has no chain root, so it is accepted: %v", err)
	}
	must(t, os.Remove(at(runs[0], "out/0")))
	_, err = strictChain(t, runs...)
	checkRunReject(t, err, "r\xff", want{verify.OutputMissing, aboutPath("out/0")})
}

// TestChainDeterminism repeats a few chains.
func TestChainDeterminism(t *testing.T) {
	runs := newChain(t, 3)
	runs[0].Write("out/1", "changed")
	must(t, os.Remove(at(runs[0], "out/2")))
	opened := openRuns(t, runs...)
	for _, list := range [][]*verify.Run{nil, opened, {opened[0], opened[2], opened[1]}, {opened[0], opened[0]}} {
		always(t, func() error {
			_, err := verify.StrictChain(t.Context(), list, verify.Watch{})
			return err
		})
	}
}

// TestRunID: the id is the last component of the path.
func TestRunID(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	must(t, os.MkdirAll(filepath.Join(root, "runs/real/sub"), 0o755))
	must(t, os.Symlink("real", filepath.Join(root, "runs/alias")))
	t.Chdir(filepath.Join(root, "runs"))
	for path, id := range map[string]string{
		"real": "real", "real/": "real", "real///": "real", root + "/runs/real": "real", "./real": "real", "../runs/real/": "real",
		"alias": "alias", "alias/": "alias", "real/.": "real", "real/./": "real", "real/sub/..": "real", "real/sub/../": "real", ".": "runs", "./": "runs", "real/..": "runs", "..": filepath.Base(root),
		"alias/sub/..": "real", // resolved as the kernel does
		"missing":      "missing", "missing/": "missing", "missing/sub": "sub",
		"...": "...", "..a": "..a", " ": " ", "a\nb": "a\nb", ".spectrum06_x": ".spectrum06_x", "RESTORE_REPORT.json": "RESTORE_REPORT.json",
	} {
		if got, err := verify.RunID(path); err != nil || got != id {
			t.Errorf("%q: got %q, want %q (%v)", path, got, id, err)
		}
	}
	for _, path := range []string{"", "/", "//", "/.", "/..", "missing/..", "missing/.", "real/missing/.."} {
		if got, err := verify.RunID(path); err == nil || got != "" {
			t.Errorf("%q: got %q, want an error", path, got)
		}
		if run, err := verify.OpenRun(nil, path); err == nil || run != nil {
			t.Errorf("OpenRun(%q): %v, want an error", path, run)
		}
	}
}

// TestDuplicatesByOtherPaths: a run is the same by whatever path.
func TestDuplicatesByOtherPaths(t *testing.T) {
	runs := newChain(t, 2)
	for _, suffix := range []string{"/", "//", "/.", "/x/..", "/./"} {
		must(t, os.MkdirAll(filepath.Join(runs[1].Dir, "x"), 0o755))
		again := &bundletest.Run{Project: runs[1].Project, Dir: runs[1].Dir + suffix}
		_, err := strictChain(t, runs[0], runs[1], again)
		checkRunReject(t, err, "r1", want{verify.ChainDuplicateRun, nil})
	}
}
