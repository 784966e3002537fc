package undo

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
)

// TestInterrupt asks each undo operation to end before its calls: the root is as before, or all
// of it is done, and the line says which. There is nothing to recover.
func TestInterrupt(t *testing.T) {
	for _, way := range sample.Pick(t, 2, ways) {
		t.Run(way().name, func(t *testing.T) {
			var sum harness.Tally
			sweep(t, way(), sample.Thin(t, 127, 37), func(t *testing.T, w *fixture, n int) bool {
				r := w.site.Project.Run(t, harness.Interrupt(n, w.changing), w.args...)
				if r.Fault.Fired == 0 {
					return false
				}
				done, err := harness.Interrupted(r)
				state := harness.Before
				if done {
					state = harness.After
				}
				sum.Add(state.String())
				_, wrong := w.site.Check(state)
				if err := errors.Join(err, wrong, w.clean(t), w.ended(t, state)); err != nil {
					t.Errorf("before %s: %v\n%v", w.site.Last(r), r, err)
					return true
				}
				if err := w.back(t, state, n); err != nil {
					t.Errorf("before %s\nthen %v", w.site.Last(r), err)
				}
				return true
			})
			sum.Demand(t, "before", "after")
		})
	}
}

// TestInterruptStore asks a take, a check and a prune of snapshots to end. Of a prune the
// snapshots that went may stay away, and the rest is whole.
func TestInterruptStore(t *testing.T) {
	checking := taking()
	checking.name = "verify"
	take := checking.prepare
	checking.prepare = func(t testing.TB, w *fixture) {
		take(t, w)
		all := w.list(t)
		w.args = []string{"snapshot", "verify", "--json", all[len(all)-1].ID}
	}
	for a, stride := range map[*command]int{taking(): 211, pruning(): 131, checking: 73} {
		t.Run(a.name, func(t *testing.T) {
			var sum harness.Tally
			sweep(t, a, sample.Thin(t, stride, 29), func(t *testing.T, w *fixture, n int) bool {
				r := w.site.Project.Run(t, harness.Interrupt(n, w.about), w.args...)
				if r.Fault.Fired == 0 {
					return false
				}
				done, err := harness.Interrupted(r)
				sum.Add(map[bool]string{true: "done", false: "interrupted"}[done])
				if err := errors.Join(err, w.clean(t)); err != nil {
					t.Errorf("before %s: %v\n%v", w.site.Last(r), r, err)
				}
				r.Status = 128 + 9 // what it has said was looked at
				if err := w.afterStore(t, r); err != nil {
					t.Errorf("before %s: %v", w.site.Last(r), err)
				}
				return true
			})
			if a == checking { // which may be done before the signal arrives
				sum.Demand(t)
			} else {
				sum.Demand(t, "interrupted")
			}
		})
	}
}

// clean checks that nothing half made is left, in the root, beside it or in the store, before any
// recovery.
func (w *fixture) clean(t testing.TB) error {
	t.Helper()
	if left := names(t, filepath.Join(w.site.Project.State, "snapshots", "incoming")); len(left) > 0 {
		return fmt.Errorf("incoming has %q", left)
	}
	for _, dir := range []string{w.above(), w.site.Root} {
		for _, name := range names(t, dir) {
			if strings.HasPrefix(name, ".spectrum06_") && name != harness.ForeignStaging {
				return fmt.Errorf("%q is left", name)
			}
		}
	}
	if r := w.site.Recover(t, nil); !strings.Contains(r.Stdout, `"attempts":[]`) {
		return fmt.Errorf("there was something to recover: %v", r)
	}
	return nil
}
