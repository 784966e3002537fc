package power

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/test/blocklog"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// The marks in a log.
const (
	beginMark = "begin"
	endMark   = "end" // the command has reported how it ended
)

// An act is what a command does to a root while the disk logs.
type act struct {
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
	committing = act{name: "commit", promise: harness.After}
)

// endings makes the acts anew: a plan is good for one run.
func endings() []act {
	return []act{
		{name: "rollback of files", plan: beforeSync("top0", ioError), status: 1, promise: harness.Before},
		{name: "rollback of artifacts", plan: naming(reportName, ioError), status: 1, promise: harness.Before},
		{name: "recovery, back", prepare: naming(committedName, kill), recover: true, promise: harness.Before},
		{name: "recovery, forward", prepare: naming(manifestName, kill), recover: true, promise: harness.After},
	}
}

// A recording is a command on a disk that logs what it gets.
type recording struct {
	site       *harness.Site
	volume     *volume
	records    []blocklog.Record
	begin, end int // how many records there were
	promise    harness.State
}

// record runs an act on a new disk.
func record(t *testing.T, p *harness.Project, f format, a act) *recording {
	t.Helper()
	v := newVolume(t, f)
	v.mount(t, v.image)
	r := &recording{p.Site(t, filepath.Join(v.path, "root")), v, nil, 0, 0, a.promise}
	if a.prepare != nil {
		if reply := r.site.Commit(t, a.prepare); !reply.Killed() {
			t.Fatalf("%s: %v", a.name, reply)
		}
	}
	v.unmount(t)
	store := blocklog.Serve(t, v.image)
	v.mount(t, store.Disk)
	t.Cleanup(v.drop) // before the store is stopped
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
	v.unmount(t)
	r.records = store.Stop(t)
	r.begin, r.end = blocklog.Find(r.records, beginMark), blocklog.Find(r.records, endMark)
	if r.begin == 0 || r.end < r.begin+4 {
		t.Fatalf("%s on %s: only between the records %d and %d", a.name, f.name, r.begin, r.end)
	}
	return r
}

// moments is how often the disk of a recording can be looked at.
func (r *recording) moments() int { return len(r.records) - r.begin + 1 }

// look rebuilds the disk at a moment and says what recovery makes of it.
func (r *recording) look(t *testing.T, replay *blocklog.Replay, moment int, seed uint64) (l loss) {
	t.Helper()
	n := r.begin + moment
	image := filepath.Join(filepath.Dir(r.volume.image), "replayed")
	var err error
	l.writes, err = replay.Image(image, n, seed)
	harness.Must(t, err)
	l.late = n >= r.end
	if l.fault = blocklog.Mount(image, r.volume.path, r.volume.kind, r.volume.options); l.fault == nil {
		l.state, l.fault = recovered(t, r.site)
		r.volume.unmount(t)
	}
	if l.fault == nil && l.late && l.state != r.promise {
		l.fault = fmt.Errorf("the command has ended, and the root is as %v it", l.state)
	}
	if l.fault != nil {
		l.fault = fmt.Errorf("%s, record %d of %d (begin %d, end %d), seed %d, %d writes lost: %w",
			r.volume.name, n, len(r.records), r.begin, r.end, seed, l.writes, l.fault)
	}
	return l
}

// sample looks at about count moments, with the seeds in turn.
func (r *recording) sample(t *testing.T, count, seeds int) *tally {
	t.Helper()
	sum := &tally{}
	replay, all := blocklog.NewReplay(r.volume.image, r.records), r.moments()
	for i := range count {
		sum.add(r.look(t, replay, i*all/count, uint64(i%seeds)))
	}
	return sum
}

// everything looks at every moment, with all seeds where there is something to
// lose.
func (r *recording) everything(t *testing.T, seeds int) *tally {
	t.Helper()
	sum := &tally{}
	replay := blocklog.NewReplay(r.volume.image, r.records)
	for moment := range r.moments() {
		for seed := range seeds {
			if seed == 0 || blocklog.Unflushed(r.records[:r.begin+moment]) > 0 {
				sum.add(r.look(t, replay, moment, uint64(seed)))
			}
		}
	}
	return sum
}
