package restore_test

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/restoretest"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
)

// repeat makes the same request once under each of 1, 2 and 8 processors, and more often in the
// larger tiers, and requires identical answers.
func repeat(t testing.TB, first string, ask func() string) {
	t.Helper()
	repeatFor(t, sample.Of(1, 3, 30), first, ask)
}

func repeatFor(t testing.TB, rounds int, first string, ask func() string) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, procs := range []int{1, 2, 8} {
		runtime.GOMAXPROCS(procs)
		for round := range rounds {
			if now := ask(); now != first {
				t.Fatalf("with %d processors, round %d:\n%s\nbefore\n%s", procs, round, now, first)
			}
		}
	}
}

// refusal is all that a failed restore says: the failure, its words, and the
// structured result.
func refusal(t testing.TB, err error) string {
	t.Helper()
	raw, jsonErr := restore.ResultOf(err).JSON()
	must(t, jsonErr)
	return fmt.Sprintf("%+v\n%v\n%s", restoretest.FailureOf(t, err), err, raw)
}

// planned is all that a plan says, and the conflicts it was found to have.
func planned(r *restore.Restore) string {
	return fmt.Sprintf("%s\nconflicts %+v", described(r.Plan()), r.Conflicts())
}

func described(p *restore.Plan) string {
	said := fmt.Sprintf("chain %v %q, %d files, %d bytes", p.IsChain(), p.ChainRoot(), p.Files(), p.Bytes())
	for run := range p.Runs() {
		b := run.Bundle()
		said += fmt.Sprintf("\n%q in %q, %d bytes: %s by %s at %s\n%q", b.RunID(), run.Dir(), run.Bytes(), b.Root(), b.ValidatorID(), b.Completed(), run.Artifacts())
		for o := range b.Outputs() {
			said += fmt.Sprintf("\n%q %d %s %s %s", run.Target(o.Path().String()), o.Size(), o.Hash(), o.Perm(), o.ModTime())
		}
	}
	return said
}

// answer is what PREFLIGHT and PLAN say of a candidate and a root.
func answer(t testing.TB, c restore.Candidate, root string) string {
	t.Helper()
	r, err := restore.ForRoot(context.Background(), c, root)
	if err != nil {
		return refusal(t, err)
	}
	defer r.Close()
	return planned(r)
}

// everyRefusal, when it is set, receives each refusal that the tests ask for,
// while what is rejected still is as it was.
var everyRefusal func(s *scene, first error)

// refusalTests are the tests of the tables of hostile candidates and of orders.
var refusalTests = map[string]func(*testing.T){
	"TestHostilePathForms":                 TestHostilePathForms,
	"TestHostileReservedNames":             TestHostileReservedNames,
	"TestHostileLength":                    TestHostileLength,
	"TestHostileFileAndDirectory":          TestHostileFileAndDirectory,
	"TestHostileJSON":                      TestHostileJSON,
	"TestHostileFiles":                     TestHostileFiles,
	"TestHostileDoubledHash":               TestHostileDoubledHash,
	"TestHostileHashValues":                TestHostileHashValues,
	"TestHostileRunDirectory":              TestHostileRunDirectory,
	"TestHostileMixAndMatch":               TestHostileMixAndMatch,
	"TestHostileMessages":                  TestHostileMessages,
	"TestHostileDecision":                  TestHostileDecision,
	"TestHostileRoot":                      TestHostileRoot,
	"TestHostileSources":                   TestHostileSources,
	"TestHostileUnreadable":                TestHostileUnreadable,
	"TestHostilePlantedLink":               TestHostilePlantedLink,
	"TestHostileRunIDs":                    TestHostileRunIDs,
	"TestOrderOfSteps":                     TestOrderOfSteps,
	"TestOrderOfRoot":                      TestOrderOfRoot,
	"TestOrderOfPaths":                     TestOrderOfPaths,
	"TestOrderInPlan":                      TestOrderInPlan,
	"TestOrderOfChain":                     TestOrderOfChain,
	"TestExistingTargetBeforeReservedName": TestExistingTargetBeforeReservedName,
}

// TestDeterminismOfRefusals runs them, in the sample a few, and asks for each refusal
// again and again. What changes under a restore's hands is for TestDeterminismOfFaults.
func TestDeterminismOfRefusals(t *testing.T) {
	refusals := 0
	everyRefusal = func(s *scene, first error) {
		if s.watch.Hashed != nil {
			return
		}
		refusals++
		c, rounds := s.candidate(), sample.Of(1, 3, 30)
		if strings.Contains(s.t.Name(), "TestHostileJSON") || strings.Contains(s.t.Name(), "TestOrderOfSteps") {
			rounds = sample.Of(1, 1, 10) // they are by far the most
		}
		repeatFor(s.t, rounds, refusal(s.t, first), func() string { return answer(s.t, c, s.root) })
	}
	t.Cleanup(func() { everyRefusal = nil })
	for _, name := range sample.Pick(t, 4, slices.Sorted(maps.Keys(refusalTests))) {
		t.Run(name, refusalTests[name])
	}
	t.Logf("%d refusals, each again and again", refusals)
	if refusals < sample.Of(1, 600, 600) {
		t.Errorf("only %d refusals were asked for again", refusals)
	}
}

// TestDeterminismIsWhole: every test of this package's tables that asks for a
// refusal is one of them.
func TestDeterminismIsWhole(t *testing.T) {
	names, err := filepath.Glob("*_test.go")
	must(t, err)
	for _, name := range names {
		if !strings.HasPrefix(name, "hostile_") && name != "order_test.go" {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		must(t, err)
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if ok && strings.HasPrefix(f.Name.Name, "Test") && asksForRefusals(f) && refusalTests[f.Name.Name] == nil {
				t.Errorf("%s: %s is not repeated", name, f.Name.Name)
			}
		}
	}
}

// asksForRefusals reports whether a test calls refused more than once or in a loop: whether it
// has a table.
func asksForRefusals(f *ast.FuncDecl) bool {
	table := false
	ast.Inspect(f, func(n ast.Node) bool {
		loop, ok := n.(*ast.RangeStmt)
		if !ok {
			return true
		}
		ast.Inspect(loop, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "refused" {
				table = true
			}
			return true
		})
		return true
	})
	return table
}

// TestDeterminismOfFaults repeats the table of faults, in a single restore and
// in a chain. A fault that changes its scene has it anew each time, on which
// its words depend; the code, the phase, the run and the path do not.
func TestDeterminismOfFaults(t *testing.T) {
	harness.TempInMemory(t)
	eachFault(t, sample.Every(t, 7), func(t *testing.T, f fault, make func(testing.TB) *scene) {
		if strings.HasSuffix(t.Name(), "/chain_of_one") {
			return
		}
		s := make(t)
		want := f.want(s)
		if !f.once {
			if _, err := s.plan(); restoretest.FailureOf(t, err) != want {
				t.Fatalf("got %v, want %+v", err, want)
			}
			c := s.candidate()
			repeat(t, answer(t, c, s.root), func() string { return answer(t, c, s.root) })
			return
		}
		repeat(t, fmt.Sprint(want), func() (said string) {
			t.Run("anew", func(t *testing.T) {
				_, err := make(t).plan()
				said = fmt.Sprint(restoretest.FailureOf(t, err))
			})
			return said
		})
	})
}

// manyFiles are hundreds of outputs of several sizes.
func manyFiles(n int) map[string]string {
	outputs := map[string]string{}
	for i := range n {
		outputs[fmt.Sprintf("d%d/%03d", i%4, i)] = strings.Repeat("x", i%29*(1+i%7*300)) + fmt.Sprint(i)
	}
	return outputs
}

// TestDeterminismOfSources: of hundreds of sources several are no regular files
// any more when PLAN looks at them. The lowest path is the answer, each time.
func TestDeterminismOfSources(t *testing.T) {
	harness.TempInMemory(t)
	random := sample.Rand(t)
	kinds := []func(string) error{func(string) error { return nil }, harness.Directory, harness.FIFO, harness.LinkTo("none")}
	codes := []restore.Code{restore.SourceMissing, restore.SourceNotRegularFile, restore.SourceNotRegularFile, restore.SourceNotRegularFile}
	contents := manyFiles(150)
	s := newScene(t, false, contents)
	c, paths := s.candidate(), harness.FilesIn(t, s.Root).Names()
	paths = slices.DeleteFunc(paths, func(p string) bool { return contents[p] == "" })
	repeat(t, "", func() string {
		bad := random.Perm(len(paths))[:2+random.IntN(5)]
		of := map[int]int{}
		hashed := 0
		c.Watch.Hashed = func(int64) {
			if hashed++; hashed == len(paths) {
				for _, i := range bad {
					of[i] = random.IntN(len(kinds))
					s.replace(paths[i], kinds[of[i]])
				}
			}
		}
		_, err := restore.ForRoot(context.Background(), c, s.root)
		lowest := slices.Min(bad)
		want := restore.Failure{Code: codes[of[lowest]], Phase: restore.Planning, Path: paths[lowest]}
		if got := restoretest.FailureOf(t, err); got != want {
			return fmt.Sprintf("%+v, want %+v", got, want)
		}
		for _, i := range bad {
			must(t, os.RemoveAll(s.inProject(paths[i])))
			s.Write(paths[i], contents[paths[i]])
		}
		return ""
	})
}

// TestDeterminismOfPlans: an accepted candidate has one plan: the same roots,
// order and conflicts, and the same bytes of both artifacts.
func TestDeterminismOfPlans(t *testing.T) {
	for _, chain := range []bool{false, true} {
		s := newScene(t, chain, manyFiles(60))
		if chain {
			s.add("another", manyFiles(20))
		} else {
			s.put("d1/001")
			s.put("d3")
			s.put(restore.ReportName)
		}
		c := s.candidate()
		first := answer(t, c, s.root)
		if !strings.HasPrefix(first, "chain ") {
			t.Fatal(first)
		}
		repeat(t, first, func() string { return answer(t, c, s.root) })
		view, err := restore.ForView(context.Background(), c)
		must(t, err)
		repeat(t, described(view), func() string {
			v, err := restore.ForView(context.Background(), c)
			must(t, err)
			return described(v)
		})
	}
}
