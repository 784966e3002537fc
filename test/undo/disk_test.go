package undo

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
)

// TestDiskFull fills the disk of the root, or that of the state directory, more or less before
// each undo operation, a take, a prune and a repair.
func TestDiskFull(t *testing.T) {
	type full struct {
		command func() *command
		place   string
		format  harness.Format
	}
	var all []full
	formats := sample.From(t.Name(), kindsOfVolumes()) // they take turns, two for each; in the long tier all
	add := func(command func() *command, place string) {
		for range sample.Of(2, 2, len(formats)) {
			all = append(all, full{command, place, formats[len(all)%len(formats)]})
		}
	}
	for _, command := range []func() *command{taking, pruning, repairing} {
		add(command, "state") // nothing is written in the root
	}
	for _, way := range []func() *command{rollback, emergency, whole, part, some} {
		add(way, "root")
		add(way, "state")
	}
	for _, f := range sample.Pick(t, 2, all) {
		t.Run(f.command().name+" "+f.place+" "+f.format.Name, func(t *testing.T) {
			t.Parallel()
			v := harness.MountedVolume(t, f.format)
			v.PrepareFill(t)
			at := in(filepath.Dir(v.Path))
			at.ground.Format = f.format
			if f.place == "root" {
				at.above = filepath.Join(v.Path, "above")
			} else {
				at.state = filepath.Join(v.Path, "state")
			}
			w := newFixture(t, at, f.command())
			w.rehearse(t)
			w.fill(t, v)
		})
	}
}

// fill carries the command out with less and less missing.
func (w *fixture) fill(t *testing.T, v *harness.Volume) {
	var sum harness.Tally
	step, blocks := int64(sample.Of(56, 16, 1)), int64(0)
	if step > 1 {
		blocks = sample.Rand(t).Int64N(6)
	}
	for ; ; blocks += 1 + (blocks/8+1)*step/8 {
		w.reset(t)
		v.LeaveBytes(t, blocks*4096)
		r := w.site.Project.Run(t, nil, w.args...)
		sum.Add(fmt.Sprint("exit ", r.Status))
		v.Release(t)
		if err := errors.Join(wellSaid(r), w.afterFull(t, r)); err != nil {
			t.Errorf("with %d blocks left: %v\n%v", blocks, r, err)
			break
		}
		if r.Status == 0 && blocks > 4 {
			break
		}
	}
	sum.Demand(t, "exit 0")
}

// afterFull checks what a command has left that had too little room, now that it has
// more.
func (w *fixture) afterFull(t *testing.T, r harness.Reply) error {
	t.Helper()
	if w.command.after == nil {
		return w.afterStore(t, r)
	}
	state := harness.Before
	switch {
	case r.Status == 0:
		state = harness.After
	case r.Status == 3:
		return errors.New("a full disk halts the root")
	case isUnrecorded(r): // the last record has found no room
		state = harness.After
		if again := w.site.Recover(t, nil); again.Status != 0 {
			return fmt.Errorf("recover: %v", again)
		}
	}
	if err := w.ended(t, state); err != nil {
		return err
	}
	return w.back(t, state, 4)
}

// TestLongDiskFull tries every number of blocks.
func TestLongDiskFull(t *testing.T) {
	sample.Need(t, sample.Long)
	TestDiskFull(t)
}
