package undo

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// taking takes a snapshot of a root of which there are others.
func taking() *command {
	return &command{name: "take", stands: true, prepare: func(t testing.TB, w *fixture) {
		w.clear(t)
		w.commitIt(t)
		w.take(t)
		w.goOn(t)
		w.args = []string{"snapshot", "take", "--json", w.site.Root}
	}}
}

// pruning removes two of five snapshots. That from before the commit stays, since the
// commit can be undone.
func pruning() *command {
	return &command{name: "prune", stands: true, prepare: func(t testing.TB, w *fixture) {
		w.clear(t)
		harness.Must(t, os.WriteFile(w.path("first"), []byte("only in the first\n"), 0o600))
		w.take(t)
		harness.Must(t, os.Remove(w.path("first")))
		w.commitIt(t)
		harness.Must(t, os.WriteFile(w.path("second"), []byte("only in the second\n"), 0o600))
		w.take(t)
		harness.Must(t, os.WriteFile(w.path("second"), []byte("in the last two\n"), 0o600))
		w.goOn(t)
		w.take(t)
		harness.Must(t, os.WriteFile(w.path("third"), []byte("only in the last\n"), 0o600))
		w.take(t)
		w.args = []string{"snapshot", "prune", "--json", "--keep-last", "2", w.site.Root}
		all := w.list(t)
		w.stay = map[string]bool{all[len(all)-1].ID: true, all[len(all)-2].ID: true}
		for _, s := range all {
			if s.Action == w.commit {
				w.stay[s.ID] = true
			}
		}
	}}
}

// repairing brings again a content that was damaged, and one that is missing, of two that are
// still in the root.
func repairing() *command {
	return &command{name: "repair", stands: true, damaged: true, prepare: func(t testing.TB, w *fixture) {
		w.clear(t)
		w.commitIt(t)
		id := w.take(t)
		for name, thing := range w.picture(t) {
			object := filepath.Join(w.state(), "snapshots", "objects", (thing.Content + "--")[:2], thing.Content)
			switch name {
			case "out/deep/long.bin":
				harness.Must(t, os.Remove(object))
				harness.Must(t, os.WriteFile(object, []byte("a bad block"), 0o400))
			case "beside/deep.txt":
				harness.Must(t, os.Remove(object))
			}
		}
		w.args = []string{"snapshot", "verify", "--json", "--repair", id}
	}}
}

// strays are contents in the store that no snapshot needs, and what takes have left.
func (w *fixture) strays() ([]string, error) {
	store := filepath.Join(w.site.Project.State, "snapshots")
	strays, err := filepath.Glob(filepath.Join(store, "incoming", "*"))
	if err != nil {
		return nil, err
	}
	needed := ""
	manifests, err := filepath.Glob(filepath.Join(store, "roots", "*", "*"))
	for _, path := range manifests {
		raw, readErr := os.ReadFile(path)
		needed, err = needed+string(raw), errors.Join(err, readErr)
	}
	objects, globErr := filepath.Glob(filepath.Join(store, "objects", "*", "*"))
	for _, path := range objects {
		if !strings.Contains(needed, filepath.Base(path)) {
			strays = append(strays, path)
		}
	}
	return strays, errors.Join(err, globErr)
}

// TestKillTake kills a take before its calls. The next one succeeds, and nothing is
// left of the other.
func TestKillTake(t *testing.T) {
	storeSweep(t, taking(), sample.Thin(t, 17, 3), func(w *fixture, n int) []sysfault.Plan {
		return []sysfault.Plan{*harness.Killing(n, w.changing)}
	})
}

// TestKillPrune kills a prune before its calls.
func TestKillPrune(t *testing.T) {
	storeSweep(t, pruning(), sample.Every(t, 5), func(w *fixture, n int) []sysfault.Plan {
		return []sysfault.Plan{*harness.Killing(n, w.changing)}
	})
}

// TestKillRepair kills a repair before its calls.
func TestKillRepair(t *testing.T) {
	storeSweep(t, repairing(), sample.Every(t, 5), func(w *fixture, n int) []sysfault.Plan {
		return []sysfault.Plan{*harness.Killing(n, w.changing)}
	})
}

// TestStoreErrors fails the calls of each.
func TestStoreErrors(t *testing.T) {
	for _, a := range []*command{taking(), pruning(), repairing()} {
		t.Run(a.name, func(t *testing.T) {
			storeSweep(t, a, sample.Thin(t, 151, 17), func(w *fixture, n int) (plans []sysfault.Plan) {
				for _, f := range harness.FaultsAt(n, kinds()) {
					plans = append(plans, sysfault.Plan{N: n, Onward: f.Onward, Errno: f.Errno, Record: true, Match: w.failing})
				}
				return plans
			})
		})
	}
}

// storeSweep runs a command on the store under plans, and then once more.
func storeSweep(t *testing.T, a *command, s sample.Stride, plans func(w *fixture, n int) []sysfault.Plan) {
	t.Helper()
	var sum harness.Tally
	sweep(t, a, s, func(t *testing.T, w *fixture, n int) bool {
		for _, plan := range plans(w, n) {
			w.reset(t)
			r := w.site.Project.Run(t, &plan, w.args...)
			if r.Fault.Fired == 0 {
				sum.Add(fmt.Sprint("calls ", r.Fault.Calls))
				return false
			}
			sum.Add(strings.TrimSpace(fmt.Sprint("exit ", r.Status, " ", r.Answer.Code)))
			if err := w.afterStore(t, r); err != nil {
				at := r.Fault.Trace[min(plan.N, len(r.Fault.Trace))-1]
				t.Errorf("%v%v at %s\n%v\n%v", plan.Errno, map[bool]string{true: " from there on"}[plan.Onward], w.site.Describe(at), r, err)
			}
		}
		return true
	})
	sum.DemandKinds(t, 2)
}

// afterStore checks the store after a command on it, and that the command does its
// work then.
func (w *fixture) afterStore(t *testing.T, r harness.Reply) error {
	t.Helper()
	if !r.Killed() {
		if err := wellSaid(r); err != nil {
			return err
		}
	}
	// A snapshot that its command could not log any more recover logs.
	ended := w.site.Recover(t, nil)
	isDamaged := strings.Contains(ended.Stdout, `"damaged":[{`)
	if ended.Status != 0 && !isDamaged || isDamaged && !w.command.damaged {
		return fmt.Errorf("recover: %v", ended)
	}
	if err := w.unchanged(t); err != nil {
		return err
	}
	if err := w.keeps(t); err != nil && !isDamaged {
		return err
	}
	if again := w.site.Project.Run(t, nil, w.args...); again.Status != 0 {
		return fmt.Errorf("once more: %v", again)
	}
	if err := errors.Join(w.keeps(t), w.unchanged(t)); err != nil {
		return fmt.Errorf("once more: %w", err)
	}
	return w.tidy(t)
}

// unchanged checks that the root is as it was, and the log whole.
func (w *fixture) unchanged(t *testing.T) error {
	t.Helper()
	w.site.Project.CheckAudit(t)
	_, err := w.site.Check(harness.Before)
	return errors.Join(err, w.site.Ended())
}

// tidy checks that a prune leaves what it is to leave and no stray, and that one can
// go back to every snapshot.
func (w *fixture) tidy(t *testing.T) error {
	t.Helper()
	if left := names(t, filepath.Join(w.site.Project.State, "snapshots", "incoming")); len(left) > 0 {
		return fmt.Errorf("incoming has %q", left)
	}
	if w.command.name != "prune" {
		w.run(t, nil, "snapshot", "prune", "--keep-last", "100")
	}
	strays, err := w.strays()
	if err != nil || len(strays) > 0 {
		return fmt.Errorf("prune leaves %q: %w", strays, err)
	}
	ids := []string{}
	for _, s := range w.list(t) {
		ids = append(ids, s.ID)
		w.run(t, nil, "snapshot", "verify", s.ID)
	}
	slices.Sort(ids)
	if w.command.name == "prune" && !slices.Equal(ids, slices.Sorted(maps.Keys(w.stay))) {
		return fmt.Errorf("prune leaves %q", ids)
	}
	w.run(t, nil, "snapshot", "restore", ids[0])
	w.run(t, nil, "snapshot", "restore", ids[len(ids)-1])
	return nil
}

func TestLongStoreErrors(t *testing.T) {
	sample.Need(t, sample.Long)
	TestStoreErrors(t)
}
