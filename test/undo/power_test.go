package undo

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// TestPower takes the power before some calls of each way back, of a take and of a
// prune: root and state directory are on a disk that loses what was not synced.
func TestPower(t *testing.T) {
	commands := []*command{rollback(), whole(), part(), taking(), pruning()}
	for _, a := range sample.Pick(t, 2, commands) {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			v := harness.MountedVolume(t, harness.Ext4)
			w := newWorld(t, place{dir: filepath.Dir(v.Path), state: filepath.Join(v.Path, "state"), above: filepath.Join(v.Path, "above")}, a)
			w.rehearse(t)
			w.cuts(t, v, 4)
		})
	}
}

// onDisk matches the calls that a disk can notice.
func (w *world) onDisk(c sysfault.Call) bool { return harness.OnDisk(c) && w.about(c) }

// cuts takes the power before each call, in a sample before about so many, and once when
// the command has ended.
func (w *world) cuts(t *testing.T, v *harness.Volume, count int) {
	var sum harness.Tally
	w.reset(t)
	calls := w.site.Project.Run(t, &sysfault.Plan{Match: w.onDisk}, w.args...).Fault.Calls
	s := sample.Every(t, calls/count)
	for i := 0; ; i++ {
		w.reset(t)
		v.Sync(t)
		r := w.site.Project.Run(t, harness.Killing(s.At(i), w.onDisk), w.args...)
		if !r.Killed() && r.Status != 0 {
			t.Fatal(r)
		}
		v.Shutdown(t, harness.LogLost)
		v.Remount(t)
		if err := w.afterCut(t, &sum, r); err != nil {
			t.Errorf("the power went before %s\n%v\n%v", w.site.Last(r), r, err)
		}
		if !r.Killed() {
			break
		}
		sum.Add("cuts")
	}
	sum.Demand(t, "cuts", "came late")
}

func (w *world) afterCut(t *testing.T, sum *harness.Tally, r harness.Reply) error {
	t.Helper()
	if w.command.after == nil {
		if !r.Killed() {
			sum.Add("came late")
			return w.storeKept(t, r)
		}
		return w.afterStore(t, r)
	}
	allowed := []harness.State{harness.Before, harness.After}
	if !r.Killed() {
		sum.Add("came late")
		allowed = allowed[1:]
	}
	if again := w.site.Recover(t, nil); again.Status != 0 {
		return fmt.Errorf("recover: %v", again)
	}
	state, err := w.site.State()
	sum.Add("recovered " + state.String())
	if err := errors.Join(err, w.ended(t, allowed...)); err != nil {
		return err
	}
	return w.back(t, state, 4)
}

// storeKept checks that what a command on the store has reported is so: a snapshot
// that was taken is there, those that were removed are not.
func (w *world) storeKept(t *testing.T, r harness.Reply) error {
	t.Helper()
	if err := errors.Join(w.keeps(t), w.unchanged(t)); err != nil {
		return err
	}
	want := len(w.snapshots)
	if w.command.name == "take" {
		want++
	}
	if n := len(w.list(t)); n != want {
		return fmt.Errorf("there are %d snapshots, not %d: %v", n, want, r)
	}
	return nil
}
