package staging

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/tree"
	"golang.org/x/sys/unix"
)

// TestEverySyncOfReset holds the calls of resets, undos and recoveries against the
// rule that nothing is built on what was not synced. Then it takes each sync out: the
// rule has to be broken in at least one of them, or spareSyncs has the reason why not.
func TestEverySyncOfReset(t *testing.T) {
	tally := map[string]int{}          // how often each sync was missed
	for _, c := range resetCases[:3] { // the rollback has a syncfs like that of many swaps
		var kills []int
		try := func(commitFixture string, do func(f *resetFixture, r *recorder)) {
			t.Helper()
			f := c.make(t, filepath.Join(t.TempDir(), "x"))
			f.lazy = true
			r := &recorder{f: f, ended: true}
			do(f, r)
			r.judge(c.name+", "+commitFixture, tally)
			if commitFixture == "run" {
				kills = r.kills()
			}
		}
		try("run", func(f *resetFixture, r *recorder) { must(t, f.run(r.hook(nil))) })
		for _, n := range kills {
			try(fmt.Sprintf("killed before sync %d", n), func(f *resetFixture, r *recorder) {
				if survived(func() { _ = f.run(r.hook(killerOfSync(n))) }) {
					t.Fatalf("sync %d was not reached", n)
				}
				out, err := f.recover(Automatic, r.hook(nil))
				must(t, err)
				r.ended = len(out) > 0
			})
		}
		for _, last := range []string{"settle", "sync"} {
			try("undone after "+last, func(f *resetFixture, r *recorder) {
				f.e.settled = func() error { return nil }
				if e := failure(t, f.run(r.hook(breakAt(last, &injector{})))); e.Rollback != nil {
					t.Fatal(e)
				}
			})
		}
		try("beside others", func(f *resetFixture, r *recorder) {
			f.unsettled(f.rival(map[string]string{"rollback": "a/b", "plain": "a/file", "mixed": "a/file"}[c.name]))
			if e := failure(t, f.run(r.hook(nil))); e.Rollback != nil {
				t.Fatal(e)
			}
		})
		try("halted", func(f *resetFixture, r *recorder) {
			f.unsettled(func() { must(t, os.Rename(f.at("a"), f.at("moved"))) })
			if e := failure(t, f.run(r.hook(nil))); e.Rollback == nil {
				t.Fatal(e)
			}
		})
		try("kept", func(f *resetFixture, r *recorder) {
			r.release(func() { must(t, os.Remove(filepath.Join(f.journal(), intentName))) })
		})
		try("set aside", func(f *resetFixture, r *recorder) {
			r.release(func() { must(t, os.Chmod(f.journal(), 0o755)) })
		})
		try("set aside, committed", func(f *resetFixture, r *recorder) {
			r.releaseAt("remove directory new", func() { must(t, os.Chmod(f.journal(), 0o755)) })
		})
	}
	for _, name := range slices.Sorted(maps.Keys(tally)) {
		if tally[name] == 0 && spareSyncs[name] == "" {
			t.Errorf("without %q no rule is broken", name)
		}
	}
	for name := range spareSyncs {
		if missed, made := tally[name]; !made || missed > 0 {
			t.Errorf("%q is in the table: made %v, missed %d times", name, made, missed)
		}
	}
}

// spareSyncs are the syncs that are not missed, and why they are there.
var spareSyncs = map[string]string{
	"sync STAGE after create .spectrum06_committed.new":           noRecord,
	"sync STAGE after create .spectrum06_intent.new":              noRecord,
	"sync STAGE after create .spectrum06_prepared.new":            noRecord,
	"sync STAGE after stage STAGE":                                noRecord,
	"sync STAGE after unlink .spectrum06_intent.new":              noRecord,
	"sync BASE after create .spectrum06_halted":                   "an undo may fail before the name of the staging directory was durable",
	"sync STAGE after rename empty":                               afterSyncFS,
	"sync STAGE after rename N":                                   afterSyncFS,
	"sync STAGE after rename i":                                   afterSyncFS,
	"sync to after rename i":                                      linkToC,
	"sync STAGE after rename kept":                                keptTwice,
	"sync file system BASE after rename N.N":                      keptWhole,
	"sync STAGE/new after rename .spectrum06_prepared.new":        nothingMoved,
	"sync STAGE/old after rename .spectrum06_prepared.new":        nothingMoved,
	"sync b after rename .spectrum06_prepared.new":                nothingMoved,
	"sync g after rename .spectrum06_prepared.new":                nothingMoved,
	"sync to after rename .spectrum06_prepared.new":               nothingMoved,
	"sync file system BASE after rename .spectrum06_prepared.new": nothingMoved,
	"sync BASE after rename OLD":                                  leavesFirst,
	"sync STAGE after rename OLD":                                 leavesFirst,
	"sync STAGE/new after rename OLD":                             leavesFirst,
	"sync STAGE/old after rename OLD":                             leavesFirst,
	"sync a after rename OLD":                                     leavesFirst,
	"sync b after rename OLD":                                     leavesFirst,
	"sync to after rename N":                                      linkToC,
}

const (
	noRecord     = "a record that is not written yet, or is being removed, is not built on"
	afterSyncFS  = "the syncfs before it has done it"
	beforeTrash  = "the sync after the moves to the trash does it once more"
	nothingMoved = "an undo that had nothing to move cannot know that of the ones before it"
	leavesFirst  = "so that a power cut brings back nothing of it beside what comes; the undo does without"
	keptTwice    = "a directory that comes back under its old name too is not found there"
	keptWhole    = "what others put at a name is in no record; without it a power cut could lose it"
	linkToC      = "it is a link to c, which is synced under its own name"
)

// killerOfSync kills before sync n.
func killerOfSync(n int) hook {
	return func(op, _ string, do func() error) error {
		if strings.HasPrefix(op, "sync") {
			if n--; n == 0 {
				panic(errKilled)
			}
		}
		return do()
	}
}

// release makes the journal of a killed reset one that is not believed, and has it
// released.
func (r *recorder) release(spoil func()) {
	r.f.t.Helper()
	r.releaseAt(beforeCommit, spoil)
}

// releaseAt is release of one that was killed before a call.
func (r *recorder) releaseAt(call string, spoil func()) {
	t := r.f.t
	t.Helper()
	if survived(func() { _ = r.f.run(r.hook(before(call, func() { panic(errKilled) }))) }) {
		t.Fatal("not killed")
	}
	spoil()
	out, err := r.f.recover(Acknowledged, r.hook(nil))
	if err != nil || len(out) != 1 || out[0].Result != Released {
		t.Fatal(out, err)
	}
}

// A recorder records what the calls of a reset change, and what they sync.
type recorder struct {
	f     *resetFixture
	now   map[nameKey]entry
	all   []effect
	ended bool // the last session ended a reset
}

// A nameKey is a name in a directory, which is known by its inode.
type nameKey struct {
	dir  uint64
	name string
}

type entry struct {
	path string // beneath the parent of the root
	ino  uint64
}

// An effect is what one call changed or made durable.
type effect struct {
	call    string
	changes []nameChange
	gone    []uint64 // directories
	data    string   // its content, time or mode was changed
	sync    bool
	synced  string // its content, time and mode are durable
	dir     uint64 // the names in it are durable
	whole   bool   // everything is durable
}

// A nameChange is a name that means something else now, or nothing.
type nameChange struct {
	nameKey
	path   string
	gone   bool
	staged bool     // it is the staging directory, or in it
	kept   bool     // under the name that it has when it is one no more
	way    []string // from the staging directory
}

// hook records the calls of one session.
func (r *recorder) hook(inner hook) hook {
	r.now = r.scan()
	return func(op, path string, do func() error) error {
		e := effect{call: r.short(op + " " + path)}
		if strings.HasPrefix(op, "sync") {
			e.sync, e.synced, e.whole = true, path, op != "sync"
			e.dir = r.dirOf(path)
		}
		var err error
		if inner == nil {
			err = do()
		} else {
			err = inner(op, path, do)
		}
		switch op {
		case "write", "set times", "set mode":
			e.data = path
		case "stage":
			e.data = "the new things"
			r.compare(&e)
		case "settle": // what others do
			r.compare(&effect{})
		case "rename", "exchange", "unlink", "remove directory", "make directory", "create":
			r.compare(&e)
		}
		if e.data != "" || e.sync && err == nil || len(e.changes) > 0 {
			r.all = append(r.all, e)
		}
		return err
	}
}

func (r *recorder) base() string { return r.f.root() }

// scan lists all names beneath the parent of the root.
func (r *recorder) scan() map[nameKey]entry {
	found, dirs := map[nameKey]entry{}, map[string]uint64{}
	must(r.f.t, tree.Walk(r.f.above, func(name string, n *tree.Node, err error) error {
		if err == nil && !strings.HasPrefix(path.Base(name), LockName) { // nothing is built on it
			dirs[name] = n.Ino
			found[nameKey{dirs[path.Dir(name)], path.Base(name)}] = entry{name, n.Ino}
		}
		return err
	}))
	return found
}

// compare adds what a call has changed. A thing that was moved is the same, and so are
// the names in it.
func (r *recorder) compare(e *effect) {
	was, inodes := r.now, map[uint64]bool{}
	r.now = r.scan()
	for key, is := range r.now {
		inodes[is.ino] = true
		if was[key].ino != is.ino {
			e.changes = append(e.changes, placed(key, is.path, false))
		}
	}
	for key, is := range was {
		if _, ok := r.now[key]; !ok {
			e.changes = append(e.changes, placed(key, is.path, true))
		}
		if !inodes[is.ino] {
			e.gone = append(e.gone, is.ino)
		}
	}
}

// dirOf returns the inode of a directory by the name of its handle, 0 for a file.
func (r *recorder) dirOf(path string) uint64 {
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.base(), path)
	}
	var st unix.Stat_t
	if unix.Stat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return st.Ino
	}
	return 0
}

var attemptID = regexp.MustCompile(`\.spectrum06_exchange_[-0-9a-f]+|spectrum-kept-[-0-9a-f]+`)

// short is the text of a call that is the same each time.
func (r *recorder) short(call string) string {
	call = attemptID.ReplaceAllString(strings.ReplaceAll(call, r.base(), "BASE"), "STAGE")
	return numbers.ReplaceAllString(strings.ReplaceAll(call, "BASE/STAGE", "STAGE"), "N")
}

// placed finds out where a changed name is.
func placed(key nameKey, path string, gone bool) nameChange {
	c := nameChange{nameKey: key, path: path, gone: gone}
	names := strings.Split(path, "/")
	for i, name := range names {
		c.kept = strings.HasPrefix(name, keptPrefix)
		if c.staged = c.kept || strings.HasPrefix(name, resetPrefix); c.staged {
			c.way = names[i+1:]
			break
		}
	}
	return c
}

// record returns the name of a record of the journal, or "".
func (c nameChange) record() string {
	if len(c.way) == 1 && slices.Contains(journalNames, c.way[0]) {
		return c.way[0]
	}
	return ""
}

// isIn reports whether it is in one of these directories of staging.
func (c nameChange) isIn(parts ...string) bool {
	return len(c.way) > 1 && slices.Contains(parts, c.way[0])
}

// rollsBack reports whether COMMITTED becomes ROLLING_BACK.
func (e *effect) rollsBack() bool {
	return slices.ContainsFunc(e.changes, func(c nameChange) bool { return c.record() == rollingBackName && !c.gone })
}

// isVoid reports whether a record that is gone has got the name of a void one.
func (c nameChange) isVoid(e *effect) bool {
	return slices.ContainsFunc(e.changes, func(is nameChange) bool { return is.path == c.path+voidSuffix })
}

// A risk is what a power cut could take away, on the worst file system that POSIX
// allows: a name is durable when its directory was synced after the change.
type risk struct {
	names   map[nameKey]nameChange
	data    map[string]bool // true: content, false: time or mode of a directory
	records map[string]bool // that there are
	faults  []string
}

// faultsOf returns the rules that the calls break.
func faultsOf(all []effect, ended bool) []string {
	r := &risk{names: map[nameKey]nameChange{}, data: map[string]bool{}, records: map[string]bool{}}
	for i := range all {
		e := &all[i]
		for _, c := range e.changes {
			r.before(e, c)
		}
		r.apply(e)
	}
	if !ended {
		return r.faults
	}
	r.want("the end", func(c nameChange) bool {
		return !c.staged || len(c.way) == 0 && !(c.kept && c.gone) || len(c.way) == 1 && !c.kept
	})
	r.wantData(&effect{call: "the end"}, false)
	return r.faults
}

// partNames are the directories in the staging directory of a reset.
var partNames = []string{newsName, oldsName, trashName}

// before judges a change that is about to be made.
func (r *risk) before(e *effect, c nameChange) {
	record := c.record()
	switch {
	case record != "" && !c.gone: // what a record says is durable
		r.wantData(e, true)
		if record == preparedName || record == committedName {
			r.want(e.call, func(c nameChange) bool { return !c.staged || c.isIn(partNames...) })
		}
	case record != "" && !e.rollsBack(): // nothing has to be done by it any more
		r.wantData(e, false)
		r.want(e.call, func(c nameChange) bool { return !c.staged || c.kept && len(c.way) == 0 && !c.gone })
		if record == committedName && !c.kept { // no other record is left, that would lead back
			r.want(e.call, func(c nameChange) bool { return c.record() != "" })
		}
		if record == committedName && !c.kept && r.records[intentName] {
			r.faults = append(r.faults, e.call+": without COMMITTED the other records lead back")
		}
		// Without INTENT anything else in staging halts the root.
		if record == intentName && !c.kept && !c.isVoid(e) {
			r.want(e.call, func(c nameChange) bool { return len(c.way) == 1 && slices.Contains(partNames, c.way[0]) })
		}
	case c.gone && len(c.way) > 2 && c.isIn(trashName) && !r.records[committedName]: // a new thing is whole, or in the trash
		r.want(e.call, func(c nameChange) bool {
			return !c.staged || len(c.way) == 2 && (c.isIn(newsName, oldsName) || c.isIn(trashName) && !c.gone)
		})
	}
	if c.staged && !c.isIn(partNames...) {
		return
	}
	r.want(e.call, func(is nameChange) bool { // the journal leads back, or forward
		return is.staged && len(is.way) == 0 || is.record() != ""
	})
}

// apply makes a change.
func (r *risk) apply(e *effect) {
	for _, c := range e.changes {
		r.names[c.nameKey] = c
		if record := c.record(); record != "" {
			r.records[record] = !c.gone
		}
	}
	if e.data != "" {
		r.data[e.data] = !strings.HasPrefix(e.call, "set ")
	}
	if e.whole {
		clear(r.data)
		clear(r.names)
	}
	delete(r.data, e.synced)
	maps.DeleteFunc(r.names, func(key nameKey, _ nameChange) bool { return key.dir == e.dir || slices.Contains(e.gone, key.dir) })
}

func (r *risk) want(when string, of func(c nameChange) bool) {
	for _, c := range r.names {
		if of(c) {
			r.faults = append(r.faults, fmt.Sprintf("%s: the name %s is not durable (gone: %v)", when, c.path, c.gone))
		}
	}
}

func (r *risk) wantData(e *effect, content bool) {
	for what, is := range r.data {
		if content || !is {
			r.faults = append(r.faults, fmt.Sprintf("%s: %s is not durable", e.call, what))
		}
	}
}

// kills returns the numbers of the syncs before which something has changed.
func (r *recorder) kills() (numbers []int) {
	n, changed := 0, false
	for _, e := range r.all {
		if !e.sync {
			changed = true
			continue
		}
		if n++; changed {
			numbers = append(numbers, n)
		}
		changed = false
	}
	return numbers
}

// judge holds a recording against the rules, takes out each sync, and counts how often
// that was noticed.
func (r *recorder) judge(commitFixture string, tally map[string]int) {
	t := r.f.t
	t.Helper()
	faults := faultsOf(r.all, r.ended)
	slices.Sort(faults)
	for _, fault := range slices.Compact(faults) {
		t.Errorf("%s: %s", commitFixture, fault)
	}
	last := "nothing"
	for i, e := range r.all {
		if len(e.changes) > 0 {
			last = e.call
		}
		if !e.sync {
			continue
		}
		name := e.call + " after " + last
		without := faultsOf(slices.Delete(slices.Clone(r.all), i, i+1), r.ended)
		if tally[name] += 0; len(without) > len(faults) {
			tally[name]++
		}
	}
}
