package power

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// The names of SPECTRUM-06 and of the journal.
const (
	stagePrefix   = ".spectrum06_staging_"
	chainPrefix   = ".spectrum06_chain_"
	intentName    = ".spectrum06_intent"
	preparedName  = ".spectrum06_prepared"
	committedName = ".spectrum06_committed"
	artifactsName = ".spectrum06_artifacts"
	manifestName  = "RESTORE_MANIFEST.json"
	reportName    = "RESTORE_REPORT.json"
	newSuffix     = ".new"
)

var records = []string{intentName, preparedName, committedName}

// A discipline watches a commit or a recovery and knows what a power cut could
// take away at each moment, on the worst file system that POSIX allows: each
// file and each name is on the disk when it, or the directory that has the name,
// was synced after the change, and not before.
type discipline struct {
	root, state string
	stage       string
	data        map[string]change // files and directories whose content or metadata is not safe
	names       map[string]change // names that are there or gone, and not safely so
	left        map[string]string // what left staging, by its new name: its old one
	entered     []string          // the records that there are
	begun       bool              // something beneath the root was changed
	faults      []string
}

// A change was over at a line of the trace.
type change struct {
	line int
	gone bool // it took a name away
}

// check returns the rules that a trace breaks. d is what the trace begins with.
func (d discipline) check(all []effect) []string {
	d.names, d.data, d.entered = maps.Clone(d.names), map[string]change{}, slices.Clone(d.entered)
	d.left = map[string]string{}
	if d.names == nil {
		d.names = map[string]change{}
	}
	type moment struct {
		line int
		do   func()
	}
	var moments []moment
	for _, e := range all {
		if e.kind < syncing {
			moments = append(moments, moment{e.start, func() { d.before(e) }})
		}
		if e.ok {
			moments = append(moments, moment{e.end, func() { d.apply(e) }})
		}
	}
	slices.SortStableFunc(moments, func(a, b moment) int { return a.line - b.line })
	for _, m := range moments {
		m.do()
	}
	d.wantSafe("success is reported", func(path string) bool { return within(path, d.root) || d.kept(path) })
	if !d.begun {
		d.faults = append(d.faults, "nothing was changed")
	}
	return d.faults
}

// lockForm is the name of the lock of a root, and the one that it is made and locked under.
var lockForm = regexp.MustCompile(`^\.spectrum06_lock(_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})?$`)

// withoutLock takes the calls out of a trace that make and remove the lock of the root, which
// no rule is about. It need not outlive a power cut, for nothing holds a flock then: one that is
// back is taken, one that is gone is made anew (TestLockAfterLoss). To make it is not a change of
// the root, so the state directory need not be safe by then. A sync counts, whatever it is of.
func (d discipline) withoutLock(all []effect) (rest []effect) {
	isLock := func(path string) bool {
		return path == "" || filepath.Dir(path) == d.root && lockForm.MatchString(filepath.Base(path))
	}
	for _, e := range all {
		if e.kind >= syncing || !isLock(e.path) || !isLock(e.to) {
			rest = append(rest, e)
		}
	}
	return rest
}

func within(path, dir string) bool { return strings.HasPrefix(path, dir+"/") }

// kept reports whether a path is in the state directory, and is relied on: a file that a snapshot
// has not yet put in its place is removed by the next one.
func (d *discipline) kept(path string) bool {
	return within(path, d.state) && !within(path, filepath.Join(d.state, "snapshots", "incoming"))
}

// staged reports whether a path is within the staging directory.
func (d *discipline) staged(path string) bool { return d.stage != "" && within(path, d.stage) }

// outside reports whether a path is beneath the root and neither the staging directory nor within
// it.
func (d *discipline) outside(path string) bool {
	return within(path, d.root) && path != d.stage && !d.staged(path)
}

// record is the name of a record of the journal, or "".
func (d *discipline) record(path string) string {
	if d.stage == "" || filepath.Dir(path) != d.stage || !slices.Contains(records, filepath.Base(path)) {
		return ""
	}
	return filepath.Base(path)
}

// before judges a change that is about to be made.
func (d *discipline) before(e effect) {
	target := e.path
	if e.to != "" {
		target = e.to
		d.wantSafe(fmt.Sprintf("%s gets its name %s", e.path, e.to), func(path string) bool {
			return d.isData(path) && (path == e.path || within(path, e.path))
		})
	}
	if !within(e.path, d.root) && !within(target, d.root) {
		return
	}
	if !d.begun {
		d.begun = true
		d.wantSafe("the root is touched", func(path string) bool { return d.kept(path) })
	}
	d.wantSafe(fmt.Sprintf("%s of %s comes after a record", e.kind, e.path), func(path string) bool {
		return !d.names[path].gone && (d.record(path) != "" || path == d.stage && len(d.entered) > 0)
	})
	switch {
	case e.to != "" && d.staged(e.path) && d.outside(e.to):
		d.beforePublish(e)
	case e.to != "" && d.record(e.to) != "":
		d.beforeRecord(d.record(e.to))
	case e.kind == removing && (d.record(e.path) != "" || filepath.Base(e.path) == artifactsName):
		d.beforeForget(e)
	}
}

// beforeRecord: the records are made in their order, and what the later ones
// describe is durable.
func (d *discipline) beforeRecord(name string) {
	if want := records[:slices.Index(records, name)]; !slices.Equal(d.entered, want) {
		d.faults = append(d.faults, fmt.Sprintf("the record %s is made after %q", name, d.entered))
	}
	if name == intentName {
		return
	}
	d.wantSafe("the record "+name+" is made", func(path string) bool {
		return d.outside(path) || d.staged(path) && !d.journal(path) && !d.names[path].gone
	})
}

// beforePublish: what leaves staging is durable, with all names that lead to it.
func (d *discipline) beforePublish(e effect) {
	d.wantSafe(fmt.Sprintf("%s leaves staging", e.path), func(path string) bool {
		return path == e.path || within(path, e.path) || within(e.path, path) && within(path, d.root)
	})
	record := preparedName
	switch name := filepath.Base(e.to); {
	case name == manifestName || name == reportName:
		record = committedName
	case strings.HasPrefix(name, chainPrefix):
		record = intentName
	}
	if !slices.Contains(d.entered, record) {
		d.faults = append(d.faults, d.short(e.path)+" leaves staging without a record "+record)
	}
}

// beforeForget: what a record describes is durable before the record goes; what stood beside
// the records is gone permanently before INTENT, without which it would be foreign; and what leads
// back is gone permanently before the one that leads forward.
func (d *discipline) beforeForget(e effect) {
	d.wantSafe("the journal forgets "+filepath.Base(e.path), func(path string) bool {
		return d.outside(path) || d.kept(path) // the end of a commit is in the audit log
	})
	switch d.record(e.path) {
	case intentName:
		d.wantSafe("what stands beside the records is foreign", func(path string) bool { return d.staged(path) && filepath.Dir(path) == d.stage && d.record(path) == "" })
	case committedName:
		d.wantSafe("nothing leads forward any longer", func(path string) bool { return d.record(path) == preparedName || d.record(path) == intentName })
	}
}

// journal reports whether a path is a record, whole or not.
func (d *discipline) journal(path string) bool {
	return d.record(strings.TrimSuffix(path, newSuffix)) != ""
}

func (d *discipline) isData(path string) bool {
	_, is := d.data[path]
	return is
}

// wantSafe notes a fault for everything of the given paths that a power cut
// could take.
func (d *discipline) wantSafe(when string, of func(path string) bool) {
	var at []string
	for path := range d.data {
		if of(path) {
			at = append(at, path)
		}
	}
	for path := range d.names {
		if of(path) && !slices.Contains(at, path) {
			at = append(at, "the name "+path)
		}
	}
	slices.Sort(at)
	for _, path := range at {
		d.faults = append(d.faults, d.short(when+", but "+path+" is not safe"))
	}
}

// apply makes a change.
func (d *discipline) apply(e effect) {
	now := change{line: e.end}
	switch e.kind {
	case making:
		d.data[e.path] = now
		if !e.nameless {
			d.names[e.path] = now
		}
		if filepath.Dir(e.path) == d.root && strings.HasPrefix(filepath.Base(e.path), stagePrefix) {
			d.stage = e.path
		}
	case writing:
		d.data[e.path] = now
	case linking:
		d.names[e.to] = now
	case moving:
		rename(d.data, e.path, e.to)
		rename(d.names, e.path, e.to)
		d.names[e.to], d.names[e.path] = now, change{e.end, true}
		if d.staged(e.path) && d.outside(e.to) {
			d.left[e.to] = e.path
		}
		if name := d.record(e.to); name != "" {
			d.entered = append(d.entered, name)
		}
	case removing:
		forget(d.data, e.path)
		forget(d.names, e.path)
		d.names[e.path] = change{e.end, true}
	case syncing:
		d.enteredFirst(e)
		settle(d.data, e.start, func(path string) bool { return path == e.path })
		settle(d.names, e.start, func(path string) bool { return filepath.Dir(path) == e.path })
	case syncingAll:
		clear(d.left)
		settle(d.data, e.start, func(string) bool { return true })
		settle(d.names, e.start, func(string) bool { return true })
	}
}

// enteredFirst judges the sync of a directory that something has entered: the
// one that it has left has to be synced before, or btrfs may come back from a
// power cut with both names.
func (d *discipline) enteredFirst(e effect) {
	for to, from := range d.left {
		if filepath.Dir(to) != e.path {
			continue
		}
		if old, unsafe := d.names[from]; unsafe && old.gone {
			d.faults = append(d.faults, d.short(fmt.Sprintf("%s is synced before %s, which %s has left", e.path, filepath.Dir(from), to)))
		}
		delete(d.left, to)
	}
}

// rename takes along what is known of a path and of all beneath it.
func rename(known map[string]change, from, to string) {
	for _, path := range paths(known) {
		if path == from || within(path, from) {
			known[to+path[len(from):]] = known[path]
			delete(known, path)
		}
	}
}

func forget(known map[string]change, dir string) {
	for _, path := range paths(known) {
		if path == dir || within(path, dir) {
			delete(known, path)
		}
	}
}

// settle makes safe what was over before a line.
func settle(known map[string]change, before int, of func(path string) bool) {
	for _, path := range paths(known) {
		if of(path) && known[path].line < before {
			delete(known, path)
		}
	}
}

func paths(known map[string]change) []string {
	var all []string
	for path := range known {
		all = append(all, path)
	}
	return all
}

// A syncPoint is a sync in a trace, or several of the same thing with nothing
// between them.
type syncPoint struct {
	name string // what is synced, and what changed before
	at   []int
}

// changing are the parts of names that are new each time.
var changing = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{64}|#[0-9]+`)

// short writes R and S for the root and the state directory.
func (d *discipline) short(text string) string {
	return changing.ReplaceAllString(strings.NewReplacer(d.root, "R", d.state, "S").Replace(text), "*")
}

func (d discipline) syncPoints(all []effect) (points []syncPoint) {
	last := "nothing"
	for i, e := range all {
		switch {
		case !e.ok || !within(e.path+"/", d.root) && !within(e.path+"/", d.state):
		case e.kind >= syncing:
			name := fmt.Sprintf("%s %s after %s", e.kind, d.short(e.path), last)
			if n := len(points); n == 0 || points[n-1].name != name {
				points = append(points, syncPoint{name: name})
			}
			points[len(points)-1].at = append(points[len(points)-1].at, i)
		case e.to != "":
			last = fmt.Sprintf("%s to %s", e.kind, d.short(e.to))
		default:
			last = fmt.Sprintf("%s of %s", e.kind, d.short(e.path))
		}
	}
	return points
}

// without is a trace in which a sync was not made.
func (p syncPoint) without(all []effect) (rest []effect) {
	for i, e := range all {
		if !slices.Contains(p.at, i) {
			rest = append(rest, e)
		}
	}
	return rest
}
