package restore_test

import (
	"context"
	"reflect"
	"slices"
	"testing"

	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/restoretest"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
)

// TestSealed: a plan and a restore have no field that another package can set, and no method that
// changes them, except a decision of the operator (Overrule).
func TestSealed(t *testing.T) {
	for _, c := range []struct {
		value   any
		methods []string
	}{
		{&restore.Plan{}, []string{"Bytes", "ChainRoot", "Dirs", "Files", "IsChain", "IsChangeSet", "Removes", "Runs"}},
		{&restore.Run{}, []string{"Artifacts", "BlocksFault", "Bundle", "Bytes", "Changes", "ChangesFault", "Dir", "Perm", "SignsModes", "SourceReaders", "Target"}},
		{&restore.Restore{}, []string{"Blocked", "Close", "Conflicts", "Divergence", "Overrule", "Plan", "Replaces", "Root", "Target", "Targets"}},
	} {
		typ := reflect.TypeOf(c.value)
		for field := range fieldsOf(typ.Elem()) {
			if field.IsExported() {
				t.Errorf("%v: %s is exported", typ, field.Name)
			}
		}
		var methods []string
		for i := range typ.NumMethod() {
			methods = append(methods, typ.Method(i).Name)
		}
		if !slices.Equal(methods, c.methods) {
			t.Errorf("%v has methods %v, want %v", typ, methods, c.methods)
		}
	}
}

func fieldsOf(typ reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range typ.NumField() {
			if !yield(typ.Field(i)) {
				return
			}
		}
	}
}

// TestZeroPlan: the zero value holds nothing.
func TestZeroPlan(t *testing.T) {
	var p restore.Plan
	for r := range p.Runs() {
		t.Errorf("it has run %v", r)
	}
	if p.Files() != 0 || p.Bytes() != 0 || p.IsChain() || p.ChainRoot() != "" {
		t.Errorf("%+v", p)
	}
}

// TestPlanIsACopy: what leaves a plan can be changed without changing the plan.
func TestPlanIsACopy(t *testing.T) {
	s := newScene(t, false, oneRun)
	s.put("top.txt")
	r := s.mustPlan()
	r.Conflicts()[0].Path = "forged"
	if got := r.Conflicts()[0].Path; got != "top.txt" {
		t.Errorf("conflict at %q", got)
	}
	for run := range r.Plan().Runs() {
		for i := range run.Artifacts() {
			run.Artifacts()[i].Data = "forged"
			run.Artifacts()[i].Path = "forged"
			if a := run.Artifacts()[i]; a.Data[0] != '{' || a.Path == "forged" {
				t.Errorf("%q became %q", a.Path, a.Data)
			}
		}
	}
}

// TestRunsCanBeLeft: an iterator that is stopped stops.
func TestRunsCanBeLeft(t *testing.T) {
	n := 0
	for range newScene(t, true, oneRun, anotherRun).mustPlan().Plan().Runs() {
		n++
		break
	}
	if n != 1 {
		t.Error(n)
	}
}

// TestPlanNumbers: what a plan says of itself, single and chain.
func TestPlanNumbers(t *testing.T) {
	for _, c := range []struct {
		name    string
		chain   bool
		outputs []map[string]string
		files   int
		bytes   int64
		targets []string
	}{
		{"single", false, []map[string]string{oneRun}, 3, 15, []string{"out/a.txt", "out/b.txt", "top.txt"}},
		{"chain of one", true, []map[string]string{anotherRun}, 1, 6, []string{"run-1/gen/c.txt"}},
		{"several runs are a chain", false, []map[string]string{anotherRun, oneRun}, 4, 21,
			[]string{"run-1/gen/c.txt", "run-2/out/a.txt", "run-2/out/b.txt", "run-2/top.txt"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t, c.chain, c.outputs...)
			p := s.mustPlan().Plan()
			var targets []string
			for run := range p.Runs() {
				for o := range run.Bundle().Outputs() {
					targets = append(targets, run.Target(o.Path().String()))
				}
			}
			if p.Files() != c.files || p.Bytes() != c.bytes || !slices.Equal(targets, c.targets) {
				t.Errorf("%d files, %d bytes, targets %q", p.Files(), p.Bytes(), targets)
			}
			if isChain := c.name != "single"; p.IsChain() != isChain || (p.ChainRoot() != "") != isChain {
				t.Errorf("chain %v, root %q", p.IsChain(), p.ChainRoot())
			}
		})
	}
}

// TestViewIsTheSamePlan: a view shows what a commit would write.
func TestViewIsTheSamePlan(t *testing.T) {
	for _, mode := range modes {
		s := mode.make(t)
		view, err := restore.ForView(context.Background(), s.candidate())
		must(t, err)
		root := s.mustPlan().Plan()
		if a, b := artifactsOf(view), artifactsOf(root); !reflect.DeepEqual(a, b) {
			t.Errorf("%s: view %q, restore %q", mode.name, a, b)
		}
	}
}

func artifactsOf(p *restore.Plan) []restore.Artifact {
	var all []restore.Artifact
	for run := range p.Runs() {
		all = append(all, run.Artifacts()...)
	}
	return all
}

// TestViewRejects: a view has no restore root, all else is as for a restore:
// the same failure, and no plan.
func TestViewRejects(t *testing.T) {
	harness.TempInMemory(t)
	tried, n := sample.Every(t, 4), 0
	for _, group := range [][]fault{{lastStrict()}, proofFaults, hashesFaults, pathFaults[:3], planFaults} {
		for _, f := range group {
			for _, mode := range modes {
				if n++; !tried.Has(n) {
					continue
				}
				s := mode.make(t)
				f.cause(s)
				p, err := restore.ForView(context.Background(), s.candidate())
				if got := restoretest.FailureOf(t, err); got != f.want(s) || p != nil {
					t.Errorf("%s, %s: %+v, plan %v", f.name, mode.name, got, p)
				}
			}
		}
	}
}
