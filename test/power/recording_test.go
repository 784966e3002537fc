package power

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/test/blocklog"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// The marks in a log.
const (
	beginMark = "begin"
	endMark   = "end" // the command has reported how it ended
)

// A command, and how it is run on a root while the disk logs.
type command struct {
	name    string
	prepare *sysfault.Plan // a commit under this plan comes first, and is killed
	plan    *sysfault.Plan // the command runs under this one
	recover bool           // it is recover, and not a commit
	status  int
	promise harness.State // what it reports, and must be true from then on
}

// naming is a plan for the call that gives something its name.
func naming(name string, p sysfault.Plan) *sysfault.Plan {
	p.N = 1
	p.Match = func(c sysfault.Call) bool { return c.Name == "renameat2" && filepath.Base(c.To) == name }
	return &p
}

// beforeSync is a plan for the first sync after something got its name.
func beforeSync(name string, p sysfault.Plan) *sysfault.Plan {
	named := false
	p.N = 1
	p.Match = func(c sysfault.Call) bool {
		named = named || c.Name == "renameat2" && filepath.Base(c.To) == name
		return named && c.Name == "fsync"
	}
	return &p
}

// committing succeeds; the others fail and roll back, or end what a commit that
// was killed has left.
var (
	kill       = sysfault.Plan{Kill: true}
	ioError    = sysfault.Plan{Errno: syscall.EIO}
	committing = command{name: "commit", promise: harness.After}
)

// endings makes the commands anew: a plan is good for one run.
func endings() []command {
	return []command{
		{name: "rollback of files", plan: beforeSync("top0", ioError), status: 74, promise: harness.Before},
		{name: "rollback of artifacts", plan: naming(reportName, ioError), status: 74, promise: harness.Before},
		{name: "recovery, back", prepare: naming(committedName, kill), recover: true, promise: harness.Before},
		{name: "recovery, forward", prepare: naming(manifestName, kill), recover: true, promise: harness.After},
	}
}

// A recording is a command on a disk that logs what it gets.
type recording struct {
	site       *harness.Site
	volume     *harness.Volume
	records    []blocklog.Record
	begin, end int // how many records there were
	promise    harness.State
}

// record runs a command on a new disk.
func record(t *testing.T, p *harness.Project, f harness.Format, a command) *recording {
	t.Helper()
	v := harness.MountedVolume(t, f)
	r := &recording{p.Site(t, filepath.Join(v.Path, "root")), v, nil, 0, 0, a.promise}
	if a.prepare != nil {
		if reply := r.site.Commit(t, a.prepare); !reply.Killed() {
			t.Fatalf("%s: %v", a.name, reply)
		}
	}
	v.Unmount(t)
	store := blocklog.Serve(t, v.Image)
	harness.Must(t, v.MountFile(store.Disk))
	t.Cleanup(func() { _ = blocklog.Unmount(v.Path) }) // before the store is stopped
	args := []string{"recover", r.site.Root}
	if !a.recover {
		args = harness.CommitArgs(r.site.Preview(t))
	}
	store.Mark(t, beginMark)
	if reply := p.Run(t, a.plan, args...); reply.Status != a.status || a.plan != nil && reply.Fault.Fired == 0 {
		t.Fatalf("%s: %v", a.name, reply)
	}
	store.Mark(t, endMark)
	if _, err := r.site.Check(a.promise); err != nil {
		t.Fatalf("%s: %v", a.name, err)
	}
	v.Unmount(t)
	r.records = store.Stop(t)
	r.begin, r.end = blocklog.Find(r.records, beginMark), blocklog.Find(r.records, endMark)
	if r.begin == 0 || r.end < r.begin+4 {
		t.Fatalf("%s on %s: only between the records %d and %d", a.name, f.Name, r.begin, r.end)
	}
	return r
}

// moments is how often the disk of a recording can be looked at.
func (r *recording) moments() int { return len(r.records) - r.begin + 1 }

// look rebuilds the disk at a moment and says what recovery makes of it.
func (r *recording) look(t *testing.T, replay *blocklog.Replay, moment int, seed uint64) (l loss) {
	t.Helper()
	n := r.begin + moment
	image := filepath.Join(filepath.Dir(r.volume.Image), "replayed")
	var err error
	l.writes, err = replay.Image(image, n, seed)
	harness.Must(t, err)
	l.late = n >= r.end
	if l.fault = r.volume.MountFile(image); l.fault == nil {
		l.state, l.fault = recovered(t, r.site)
		r.volume.Unmount(t)
	}
	if l.fault == nil && l.late && l.state != r.promise {
		l.fault = fmt.Errorf("the command has ended, and the root is as %v it", l.state)
	}
	if l.fault != nil {
		l.fault = fmt.Errorf("%s, record %d of %d (begin %d, end %d), seed %d, %d writes lost: %w",
			r.volume.Name, n, len(r.records), r.begin, r.end, seed, l.writes, l.fault)
	}
	return l
}

// sample looks at every moment, in a sample at about so many; each time with another one
// of eight ways to lose what was not flushed.
func (r *recording) sample(t *testing.T, count int) *tally {
	t.Helper()
	sum := &tally{}
	replay, seeds := blocklog.NewReplay(r.volume.Image, r.records), uint64(sample.Rand(t).IntN(8))
	stride := sample.Every(t, max(r.moments()/count, 1))
	for i := 0; stride.At(i) <= r.moments(); i++ {
		sum.add(r.look(t, replay, stride.At(i)-1, (uint64(i)+seeds)%8))
	}
	return sum
}

// spread looks at so many moments, with eight ways in turn.
func (r *recording) spread(t *testing.T, count int) *tally {
	t.Helper()
	sum := &tally{}
	replay, all := blocklog.NewReplay(r.volume.Image, r.records), r.moments()
	for i := range count {
		sum.add(r.look(t, replay, i*all/count, uint64(i%8)))
	}
	return sum
}

// everything looks at every moment, with all seeds where there is something to
// lose.
func (r *recording) everything(t *testing.T, seeds int) *tally {
	t.Helper()
	sum := &tally{}
	replay := blocklog.NewReplay(r.volume.Image, r.records)
	for moment := range r.moments() {
		for seed := range seeds {
			if seed == 0 || blocklog.Unflushed(r.records[:r.begin+moment]) > 0 {
				sum.add(r.look(t, replay, moment, uint64(seed)))
			}
		}
	}
	return sum
}
