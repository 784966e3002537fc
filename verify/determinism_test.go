package verify_test

import (
	"errors"
	"fmt"
	"iter"
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

// The number of repetitions under each number of processors: often where outputs are hashed in
// parallel, inAll for each of the hundreds of cases of the tables. The smallest is that of the
// sample.
var often, inAll = sample.Of(3, 170, 170), sample.Of(1, 30, 30)

// scattered yields each number of processors, set, for so many rounds. A test that
// uses it, or what is built on it, must not be parallel.
func scattered(rounds int) iter.Seq2[int, int] {
	return func(yield func(procs, round int) bool) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
		for _, procs := range []int{1, 2, 8} {
			runtime.GOMAXPROCS(procs)
			for round := range rounds {
				if !yield(procs, round) {
					return
				}
			}
		}
	}
}

// sameAnswer verifies again and again, and requires identical answers.
func sameAnswer(t testing.TB, ask func() string) {
	t.Helper()
	sameAs(t, ask(), often, ask)
}

func sameAs(t testing.TB, first string, rounds int, ask func() string) {
	t.Helper()
	for procs, round := range scattered(rounds) {
		if now := ask(); now != first {
			t.Fatalf("with %d processors, round %d:\n%s\nbefore\n%s", procs, round, now, first)
		}
	}
}

// answerOf returns everything in a verdict: every field of it, and its JSON. For any other error it
// returns its text.
func answerOf(err error) string {
	var reject *verify.Reject
	if !errors.As(err, &reject) {
		return fmt.Sprint("no verdict: ", err)
	}
	raw, err := reject.JSON()
	return fmt.Sprintf("%#v\n%s %v", *reject, raw, err)
}

// accepted returns everything that can be read from a verified bundle.
func accepted(b *verify.Bundle) string {
	said := fmt.Sprintf("accepted %q %s %s %s %d", b.RunID(), b.Root(), b.ValidatorID(), b.Completed(), b.Len())
	for o := range b.Outputs() {
		said += fmt.Sprintf("\n%q %d %s %x %s %s", o.Path(), o.Size(), o.Hash(), o.Digest(), o.Perm(), o.ModTime())
	}
	for a := range b.Artifacts() {
		said += fmt.Sprintf("\n%s %d %s", a.Name(), a.Size(), a.ModTime())
	}
	return said
}

// gatedAs is all that a restore learns of a bundle.
func gatedAs(g *verify.Gated, err error) string {
	if err != nil {
		return answerOf(err)
	}
	said := fmt.Sprintf("%q: proof %d, hashes %d, paths %q", g.RunID(), g.Proof(), g.Hashes(), slices.Collect(g.Paths()))
	if b, ok := g.Bundle(); ok {
		said += "\n" + accepted(b)
	}
	return said
}

func strictAnswer(t testing.TB, run *verify.Run) string {
	b, err := verify.Strict(t.Context(), run, verify.Watch{})
	if err != nil {
		return answerOf(err)
	}
	return accepted(b)
}

func chainAnswer(t testing.TB, runs []*verify.Run) string {
	c, err := verify.StrictChain(t.Context(), runs, verify.Watch{})
	if err != nil {
		return answerOf(err)
	}
	said := "chain " + c.Root()
	for b := range c.Bundles() {
		said += "\n" + accepted(b)
	}
	return said
}

// everyVerdict, when it is set, receives each verdict that the tests of the
// tables ask for, and may ask again.
var everyVerdict func(t testing.TB, ask func() error, first error)

// TestDeterminism repeats the tests of all tables of faults.
func TestDeterminism(t *testing.T) {
	asked, rejects := 0, 0
	everyVerdict = func(t testing.TB, ask func() error, first error) {
		if asked++; first != nil {
			rejects++
		}
		sameAs(t, answerOf(first), inAll, func() string { return answerOf(ask()) })
	}
	t.Cleanup(func() { everyVerdict = nil })
	tables := map[string]func(*testing.T){
		"fields":           TestFieldCases,
		"hash values":      TestHashValues,
		"extra fields":     TestExtraFieldsFirst,
		"extra artifacts":  TestExtraArtifacts,
		"forbidden":        TestForbidden,
		"unsigned fields":  TestUnsignedFields,
		"proof hash":       TestProofHash,
		"resume":           TestResumeCases,
		"resume accepts":   TestResumeAccepts,
		"memory":           TestMemoryTakesResumeFaults,
		"completion order": TestCompletionOrder,
		"references":       TestReferences,
		"chain":            TestStrictChainRejects,
		"chain outputs":    TestStrictChainOutputs,
		"no text":          TestChainRunIDThatIsNoText,
	}
	for _, name := range sample.Pick(t, 3, sortedKeys(tables)) { // of two of them, all cases are accepted
		t.Run(name, tables[name])
	}
	t.Logf("%d cases, of which %d are rejected, each again and again", asked, rejects)
	if rejects < sample.Of(1, 300, 300) {
		t.Errorf("only %d verdicts were asked for again", rejects)
	}
}

// TestDeterminismOfPairs: two faults of different phases in one bundle.
func TestDeterminismOfPairs(t *testing.T) {
	tried := sample.Every(t, 9)
	for i, first := range strictFaults {
		for k, step := range []int{1, 17} {
			if i+step >= len(strictFaults) || !tried.Has(2*i+k+1) {
				continue
			}
			second := strictFaults[i+step]
			r := newRun(t)
			spoil(r, first, second)
			run := openRuns(t, r)[0]
			_, err := verify.Strict(t.Context(), run, verify.Watch{})
			if checkReject(t, err, first.expected(r)); t.Failed() {
				t.Fatalf("%q with %q", first.name, second.name)
			}
			sameAs(t, strictAnswer(t, run), inAll, func() string { return strictAnswer(t, run) })
		}
	}
}

// TestDeterminismOfNotes: what the gate of a restore notes.
func TestDeterminismOfNotes(t *testing.T) {
	for _, f := range oneOfEach(notedFaults()) {
		r := newRun(t)
		spoil(r, f.fault)
		run := openRuns(t, r)[0]
		sameAnswer(t, func() string { return gatedAs(verify.Gate(t.Context(), run, verify.Watch{})) })
	}
}

// manyOutputs are outputs of sizes that keep a processor busy for longer and
// for shorter, so that what begins first does not end first.
func manyOutputs(n int) map[string]string {
	outputs := map[string]string{}
	for i := range n {
		size := i % 50
		if i%16 == 3 {
			size = 40_000 + i
		}
		outputs[fmt.Sprintf("o/%d/%03d", i%3, i)] = strings.Repeat("x", size) + fmt.Sprint(i)
	}
	return outputs
}

// damages are ways in which an output is not the one that was signed, and what
// the verdict on it is.
var damages = []struct {
	code verify.Code
	do   func(r *bundletest.Run, path, content string)
}{
	{verify.HashMismatch, func(r *bundletest.Run, path, content string) { r.Write(path, content+"x") }},
	{verify.HashMismatch, func(r *bundletest.Run, path, content string) { r.Write(path, content[1:]) }},
	{verify.HashMismatch, func(r *bundletest.Run, path, content string) { r.Write(path, "?"+content[1:]) }},
	{verify.OutputMissing, func(r *bundletest.Run, path, _ string) { must(r.T, os.Remove(at(r, path))) }},
	{verify.OutputMissing, func(r *bundletest.Run, path, _ string) { replaceBy(r.T, at(r, path), harness.Directory) }},
	{verify.OutputMissing, func(r *bundletest.Run, path, _ string) { replaceBy(r.T, at(r, path), harness.FIFO) }},
	{verify.OutputMissing, func(r *bundletest.Run, path, _ string) { replaceBy(r.T, at(r, path), harness.LinkTo("nowhere")) }},
	{verify.OutputMissing, func(r *bundletest.Run, path, _ string) { replaceBy(r.T, at(r, path), harness.LinkTo("/etc/passwd")) }},
}

// TestDeterminismOfOutputs spoils several of hundreds of outputs, each round
// others. By every law the lowest path is the verdict.
func TestDeterminismOfOutputs(t *testing.T) {
	contents := manyOutputs(240)
	r := bundletest.New(t).Run("run-1", contents)
	run, paths := openRuns(t, r)[0], sortedKeys(contents)
	random := sample.Rand(t)
	mend := func(path string) { must(t, os.RemoveAll(at(r, path))); r.Write(path, contents[path]) }
	for procs, round := range scattered(often) {
		bad := random.Perm(len(paths))[:2+round%6]
		if round%2 == 0 { // neighbours, which are read at the same time
			bad = random.Perm(8)[:2+round%6]
			for i, from := 0, random.IntN(len(paths)-8); i < len(bad); i++ {
				bad[i] += from
			}
		}
		kinds := map[int]int{}
		for _, i := range bad {
			kinds[i] = random.IntN(len(damages))
			damages[kinds[i]].do(r, paths[i], contents[paths[i]])
		}
		lowest := slices.Min(bad)
		var answers []string
		for _, law := range []func() error{
			func() error { _, err := verify.Strict(t.Context(), run, verify.Watch{}); return err },
			func() error { _, err := verify.Gate(t.Context(), run, verify.Watch{}); return err },
			func() error { return verify.Resume(t.Context(), run, "", verify.Watch{}) },
			func() error { _, err := verify.Strict(t.Context(), run, verify.Watch{Reread: true}); return err },
		} {
			err := law()
			answers = append(answers, answerOf(err))
			reject := rejected(t, err)
			if reject.Code != damages[kinds[lowest]].code || reject.Details["path"] != paths[lowest] {
				t.Fatalf("%d processors, round %d: %v, want %s of %q", procs, round, reject, damages[kinds[lowest]].code, paths[lowest])
			}
		}
		if slices.Sort(answers); answers[0] != answers[len(answers)-1] {
			t.Fatalf("the laws differ:\n%s", strings.Join(answers, "\n"))
		}
		for _, i := range bad {
			mend(paths[i])
		}
	}
	if _, err := strict(t, r); err != nil {
		t.Errorf("everything was repaired: %v", err)
	}
}

// TestDeterminismOfAccepted: every law returns the same for an accepted bundle, in the same order.
func TestDeterminismOfAccepted(t *testing.T) {
	r := bundletest.New(t).Run("run-1", manyOutputs(60))
	run := openRuns(t, r)[0]
	if said := strictAnswer(t, run); !strings.HasPrefix(said, "accepted") {
		t.Fatal(said)
	}
	sameAnswer(t, func() string { return strictAnswer(t, run) })
	sameAnswer(t, func() string { return gatedAs(verify.Gate(t.Context(), run, verify.Watch{Reread: true})) })
	sameAnswer(t, func() string { return fmt.Sprint(verify.Resume(t.Context(), run, "git:abc1234", verify.Watch{})) })
	runs := openRuns(t, newChain(t, 4)...)
	if said := chainAnswer(t, runs); !strings.HasPrefix(said, "chain ") {
		t.Fatal(said)
	}
	sameAnswer(t, func() string { return chainAnswer(t, runs) })
	sameAnswer(t, func() string { return fmt.Sprint(verify.Memory(t.Context(), runs, verify.Watch{})) })
	sameAnswer(t, func() string {
		c, err := verify.GateChain(t.Context(), runs, verify.Watch{})
		must(t, err)
		said := c.Root()
		for g := range c.Bundles() {
			said += "\n" + gatedAs(g, nil)
		}
		return said
	})
}

// TestDeterminismOfChains: every run of a chain has its own fault; both laws of chains report the
// first.
func TestDeterminismOfChains(t *testing.T) {
	for i := range 4 {
		runs := newChain(t, 4)
		for j, r := range runs[i:] {
			must(t, os.Remove(at(r, fmt.Sprint("out/", i+j))))
			if j > 0 {
				r.Remove(bundle.TaskSpec)
			}
		}
		opened, missing := openRuns(t, runs...), missingWant(fmt.Sprint("out/", i))
		_, err := verify.StrictChain(t.Context(), opened, verify.Watch{})
		checkRunReject(t, err, fmt.Sprint("r", i), missing)
		checkRunReject(t, verify.Memory(t.Context(), opened, verify.Watch{}), fmt.Sprint("r", i), missing)
		sameAnswer(t, func() string { return chainAnswer(t, opened) })
		always(t, func() error { return verify.Memory(t.Context(), opened, verify.Watch{}) })
	}
}
