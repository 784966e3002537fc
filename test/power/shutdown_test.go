package power

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// A cut is a way to take the power from a mounted file system.
type cut struct {
	name string
	harness.Format
	flag int
}

var cuts = []cut{
	{"ext4", harness.Ext4Large, harness.LogLost},
	{"ext4 with its log flushed", harness.Ext4Large, harness.LogFlushed},
	{"xfs", harness.XFS, harness.LogLost},
}

// A cutter commits on one volume again and again, each time in a new root.
type cutter struct {
	project *harness.Project
	volume  *harness.Volume
	cut     cut
	roots   int
	sum     tally
}

func newCutter(t *testing.T, p *harness.Project, c cut) *cutter {
	t.Helper()
	k := &cutter{project: p, volume: harness.MountedVolume(t, c.Format), cut: c}
	return k
}

// newSite makes a root that will survive the loss.
func (k *cutter) newSite(t *testing.T) *harness.Site {
	t.Helper()
	k.roots++
	s := k.project.Site(t, filepath.Join(k.volume.Path, fmt.Sprintf("root%d", k.roots)))
	k.volume.Sync(t)
	return s
}

// try runs a commit under a plan, takes the power, and looks at the root after
// the recovery. It returns how many calls there were, and whether the plan
// stopped the commit.
func (k *cutter) try(t *testing.T, plan *sysfault.Plan) (calls int, killed bool) {
	t.Helper()
	site := k.newSite(t)
	r := site.Commit(t, plan)
	if r.Status != 0 && !r.Killed() {
		t.Fatal(r)
	}
	k.volume.Shutdown(t, k.cut.flag)
	k.volume.Remount(t)
	l := loss{writes: 1, late: !r.Killed()} // how many were lost is not known
	l.state, l.fault = recovered(t, site)
	if l.fault == nil && l.late && l.state != harness.After {
		l.fault = errors.New("success was reported, and the root is as before")
	}
	if l.fault != nil {
		l.fault = fmt.Errorf("%s, call %d: %w", k.cut.name, plan.N, l.fault)
	}
	k.sum.add(l)
	site.Remove(t)
	return r.Fault.Calls, r.Killed()
}

// sweep kills the commit before its calls, in a sample about so many, in a sweep one of seven,
// and once not at all.
func (k *cutter) sweep(t *testing.T, count int) {
	t.Helper()
	calls, _ := k.try(t, &sysfault.Plan{Match: harness.OnDisk})
	kills, tried := 0, 0
	stride := sample.Thin(t, calls/count, 7)
	for i := 0; stride.At(i) <= calls; i++ {
		tried++
		if _, killed := k.try(t, harness.Killing(stride.At(i), harness.OnDisk)); killed {
			kills++
		}
	}
	k.volume.Unmount(t)
	k.sum.report(t, harness.Before, harness.After)
	if kills < tried*9/10 {
		t.Errorf("%d of %d kills", kills, tried)
	}
	t.Logf("%d calls, %d kills", calls, kills)
}

// TestShutdown takes the power before the calls of each kind of commit.
func TestShutdown(t *testing.T) {
	type shutdown struct {
		cut
		commit
	}
	var all []shutdown
	for _, c := range cuts {
		for _, s := range commits {
			all = append(all, shutdown{c, s})
		}
	}
	for _, c := range sample.Pick(t, 3, all) {
		t.Run(c.cut.name+", "+c.commit.name, func(t *testing.T) {
			t.Parallel()
			newCutter(t, c.project(t), c.cut).sweep(t, 8)
		})
	}
}
