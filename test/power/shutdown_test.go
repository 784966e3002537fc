package power

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// A cut is a way to take the power from a mounted file system.
type cut struct {
	name string
	format
	flag int32
}

// The flags of the shutdown ioctl, which ext4 has from XFS.
const (
	shutdownIoctl = 0x8004587d // _IOR('X', 125, __u32)
	logFlush      = 1          // the log is written first: metadata survives, data does not
	noLogFlush    = 2          // only what is in the log survives
)

var cuts = []cut{
	{"ext4", ext4, noLogFlush},
	{"ext4 with its log flushed", ext4, logFlush},
	{"xfs", xfs, noLogFlush},
}

// shutdown takes the power: from here on nothing reaches the image.
func shutdown(dir string, flag int32) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.IoctlSetPointerInt(int(f.Fd()), shutdownIoctl, int(flag))
}

// onDisk matches the calls that a disk can notice.
func onDisk(c sysfault.Call) bool {
	return c.Name != "close" && c.Name != "flock" && sysfault.Mutating(c)
}

// A cutter commits on one volume again and again, each time in a new root.
type cutter struct {
	project *harness.Project
	volume  *volume
	cut     cut
	roots   int
	sum     tally
}

func newCutter(t *testing.T, p *harness.Project, c cut) *cutter {
	t.Helper()
	k := &cutter{project: p, volume: newVolume(t, c.format), cut: c}
	k.volume.mount(t, k.volume.image)
	return k
}

// newSite makes a root that will survive the loss.
func (k *cutter) newSite(t *testing.T) *harness.Site {
	t.Helper()
	k.roots++
	s := k.project.Site(t, filepath.Join(k.volume.path, fmt.Sprintf("root%d", k.roots)))
	f, err := os.Open(s.Root)
	harness.Must(t, err)
	harness.Must(t, errors.Join(unix.Syncfs(int(f.Fd())), f.Close()))
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
	harness.Must(t, shutdown(k.volume.path, k.cut.flag))
	k.volume.unmount(t)
	k.volume.mount(t, k.volume.image)
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

// sweep kills the commit before about count of its calls, or before each, and
// once not at all.
func (k *cutter) sweep(t *testing.T, count int) {
	t.Helper()
	calls, _ := k.try(t, &sysfault.Plan{Match: onDisk})
	count = min(count, calls)
	kills := 0
	for i := range count {
		if _, killed := k.try(t, &sysfault.Plan{N: 1 + i*calls/count, Kill: true, Match: onDisk}); killed {
			kills++
		}
	}
	k.volume.unmount(t)
	k.sum.report(t, harness.Before, harness.After)
	if kills < count*9/10 {
		t.Errorf("%d of %d kills", kills, count)
	}
	t.Logf("%d calls, %d kills", calls, kills)
}

// TestShutdown takes the power before a sample of the calls of a commit.
func TestShutdown(t *testing.T) {
	for _, c := range cuts {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			newCutter(t, single.project(t), c).sweep(t, 95)
		})
	}
}

// TestLongShutdown takes it before every call of every kind of commit.
func TestLongShutdown(t *testing.T) {
	if os.Getenv("SPECTRUM_LONG") == "" {
		t.Skip("long: make test-long")
	}
	for _, c := range cuts {
		for _, s := range commits {
			t.Run(c.name+", "+s.name, func(t *testing.T) {
				t.Parallel()
				newCutter(t, s.project(t), c).sweep(t, math.MaxInt32)
			})
		}
	}
}
