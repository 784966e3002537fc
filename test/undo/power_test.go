package undo

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/spectrumfs/spectrum/test/blocklog"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// TestPower takes the power before some calls of each undo operation, of a take, a prune and a
// repair: root and state directory are on a disk that loses what was not synced. The file systems
// take turns; a btrfs is built again from what its disk was sent.
func TestPower(t *testing.T) {
	type cut struct {
		*command
		format harness.Format
	}
	var all []cut
	formats := sample.From(t.Name(), []harness.Format{harness.Ext4, harness.XFS, harness.Btrfs})
	for i, a := range []*command{rollback(), emergency(), whole(), part(), some(), taking(), pruning(), repairing()} {
		for j := range sample.Of(1, 1, len(formats)) {
			all = append(all, cut{a, formats[(i+j)%len(formats)]})
		}
	}
	for _, c := range sample.Pick(t, 2, all) {
		t.Run(c.name+" "+c.format.Name, func(t *testing.T) {
			t.Parallel()
			v := harness.MountedVolume(t, c.format)
			at := place{dir: filepath.Dir(v.Path), state: filepath.Join(v.Path, "state"), above: filepath.Join(v.Path, "above")}
			w := newFixture(t, at, c.command)
			w.rehearse(t)
			if c.format.Kind == harness.Btrfs.Kind {
				w.replays(t, v, 4)
			} else {
				w.cuts(t, v, 4)
			}
		})
	}
}

// onDisk matches the calls that a disk can notice.
func (w *fixture) onDisk(c sysfault.Call) bool { return harness.OnDisk(c) && w.about(c) }

// cuts takes the power before calls, in a sample before about so many, in a sweep before one
// of seven, and once when the command has ended.
func (w *fixture) cuts(t *testing.T, v *harness.Volume, count int) {
	var sum harness.Tally
	w.reset(t)
	calls := w.site.Project.Run(t, &sysfault.Plan{Match: w.onDisk}, w.args...).Fault.Calls
	s := sample.Thin(t, calls/count, 7)
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

// replays runs the command once on a disk that logs what it gets, and looks at the disk after
// writes, in a sample after about so many, and when the command has ended; each time with
// another one of eight ways to lose what was not flushed.
func (w *fixture) replays(t *testing.T, v *harness.Volume, count int) {
	var sum harness.Tally
	w.reset(t)
	v.Unmount(t)
	store := blocklog.Serve(t, v.Image)
	harness.Must(t, v.MountFile(store.Disk))
	store.Mark(t, "begin")
	r := w.site.Project.Run(t, nil, w.args...)
	if r.Status != 0 {
		t.Fatal(r)
	}
	store.Mark(t, "end")
	v.Unmount(t)
	records := store.Stop(t)
	begin, end := blocklog.Find(records, "begin"), blocklog.Find(records, "end")
	replay, image := blocklog.NewReplay(v.Image, records), filepath.Join(w.dir, "replayed")
	s := sample.Thin(t, max((end-begin)/count, 1), 7)
	for i := 0; ; i++ {
		n := min(begin+s.At(i)-1, end)
		_, err := replay.Image(image, n, uint64(i%8))
		harness.Must(t, err)
		harness.Must(t, v.MountFile(image))
		was := r
		if n < end {
			was.Status = 128 + 9 // it went with the power
			sum.Add("cuts")
		}
		if err := w.afterCut(t, &sum, was); err != nil {
			t.Errorf("the power went after write %d of %d: %v", n-begin, end-begin, err)
		}
		v.Unmount(t)
		if n == end {
			break
		}
	}
	v.Mount(t)
	sum.Demand(t, "cuts", "came late")
}

func (w *fixture) afterCut(t *testing.T, sum *harness.Tally, r harness.Reply) error {
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
func (w *fixture) storeKept(t *testing.T, r harness.Reply) error {
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
