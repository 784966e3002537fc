package undo

import (
	"errors"
	"fmt"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
)

// ways are the undo operations.
var ways = []func() *command{rollback, replaced, changed, emergency, whole, byName, part, some}

// rehearse carries the command out in a fixture: it must do what it is to do.
func (w *fixture) rehearse(t testing.TB) {
	t.Helper()
	w.reset(t)
	w.run(t, nil, w.args...)
	state := harness.After
	if w.command.after == nil {
		state = harness.Before
	}
	if _, err := w.site.Check(state); err != nil {
		t.Fatal(err)
	}
	if w.stay != nil {
		w.snapshots = w.stay
	}
	if err := w.records(t, state); err != nil {
		t.Fatal(err)
	}
}

// TestKill kills each undo operation before its calls, and then recovers.
func TestKill(t *testing.T) {
	for _, way := range sample.Pick(t, 3, append([]func() *command{bound}, ways...)) {
		t.Run(way().name, func(t *testing.T) { killEverywhere(t, way()) })
	}
}

// TestKillChanged does the same with the rollback of a change set whatever the seed.
func TestKillChanged(t *testing.T) { killEverywhere(t, changed()) }

func killEverywhere(t *testing.T, a *command) {
	var sum harness.Tally
	sweep(t, a, sample.Thin(t, 61, 11), func(t *testing.T, w *fixture, n int) bool {
		r := w.site.Project.Run(t, harness.Killing(n, w.changing), w.args...)
		if !r.Killed() {
			sum.Add(fmt.Sprint("calls ", r.Fault.Calls))
			if err := w.ended(t, harness.After); err != nil || r.Status != 0 {
				t.Errorf("not killed: %v, %v", r, err)
			}
			return false
		}
		found, _ := w.site.State()
		sum.Add("found " + found.String())
		again := w.next(t, n)
		state, err := w.site.State()
		err = errors.Join(err, w.ended(t, state))
		if again.Status != 0 || err != nil {
			t.Errorf("killed before %s\n%v\n%v", w.site.Last(r), again, err)
			return true
		}
		sum.Add("recovered " + state.String())
		if err := w.back(t, state, n); err != nil {
			t.Errorf("killed before %s\nthen %v", w.site.Last(r), err)
		}
		return true
	})
	sum.Demand(t, "recovered before", "recovered after", "found other")
}

// next is the first command after a kill: recover, or in every third trial a
// preview, which recovers too.
func (w *fixture) next(t testing.TB, n int) harness.Reply {
	t.Helper()
	if n%3 == 0 {
		if r := w.site.PreviewReply(t, nil); r.Status != 1 { // there are conflicts, or none
			return r
		}
	}
	return w.site.Recover(t, nil)
}

// ended checks a root after a recovery, and all that is recorded of it.
func (w *fixture) ended(t testing.TB, allowed ...harness.State) error {
	t.Helper()
	state, err := w.site.Recovered(t, allowed...)
	if err != nil {
		return err
	}
	return w.records(t, state)
}

// back carries the command out where it was not, and in some trials then takes it back.
func (w *fixture) back(t testing.TB, state harness.State, n int) error {
	t.Helper()
	if state == harness.Before {
		if r := w.site.Project.Run(t, nil, w.args...); r.Status != 0 {
			return fmt.Errorf("once more: %v", r)
		}
		if _, err := w.site.Check(harness.After); err != nil {
			return fmt.Errorf("once more: %w", err)
		}
		if err := w.records(t, harness.After); err != nil {
			return fmt.Errorf("once more: %w", err)
		}
	}
	if n%4 != 0 {
		return nil
	}
	all := w.list(t)
	for _, s := range all {
		if r := w.site.Project.Run(t, nil, "snapshot", "verify", s.ID); r.Status != 0 {
			return fmt.Errorf("%v", r)
		}
	}
	if r := w.site.Project.Run(t, nil, "snapshot", "restore", "--json", all[len(all)-1].ID); r.Status != 0 {
		return fmt.Errorf("and back: %v", r)
	}
	if diff := harness.Diff(anew(w.site.Before), w.picture(t)); diff != "" {
		return fmt.Errorf("and back: it is not as before:\n%s", diff)
	}
	return nil
}

// TestKillTwice kills some undo operations, and the recovery of each, before its calls.
func TestKillTwice(t *testing.T) {
	stride := sample.Of(211, 149, 5)
	for _, way := range sample.Pick(t, 2, ways) {
		t.Run(way().name, func(t *testing.T) {
			killTwice(t, way(), sample.Random(t, stride), sample.Thin(t, 13, 9))
		})
	}
}

func killTwice(t *testing.T, a *command, first, second sample.Stride) {
	var sum harness.Tally
	sweep(t, a, first, func(t *testing.T, w *fixture, n int) bool {
		for i := 0; ; i++ {
			w.reset(t)
			r := w.site.Project.Run(t, harness.Killing(n, w.changing), w.args...)
			if !r.Killed() {
				return false
			}
			sum.Add("kills")
			recovery := w.site.Recover(t, harness.Killing(second.At(i), w.changing))
			found, _ := w.site.State()
			end := w.site.Recover(t, nil)
			err := w.ended(t, harness.Before, harness.After)
			if err != nil || end.Status != 0 {
				t.Errorf("killed before %s\nrecovery killed before %s\n%v\n%v", w.site.Last(r), w.site.Last(recovery), end, err)
				return true
			}
			if !recovery.Killed() {
				return true
			}
			state, _ := w.site.State()
			sum.Add("pairs")
			sum.Add("found " + found.String())
			sum.Add("recovered " + state.String())
		}
	})
	sum.Demand(t, "pairs", "recovered before")
}

func TestLongKillTwice(t *testing.T) {
	sample.Need(t, sample.Long)
	TestKillTwice(t)
}
