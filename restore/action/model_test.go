package action_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// TestModel plays a root, its commits, rollbacks and snapshots, and the process
// that dies in the midst of them, against a tree in memory. After every step the
// root is that tree; the chain of savepoints is that of the model; nothing is open
// in the log; every snapshot can be listed and verified.
func TestModel(t *testing.T) { playAll(t, sample.Of(2, 30, 30)) }

func TestLongModel(t *testing.T) {
	sample.Need(t, sample.Long)
	playAll(t, 1500)
}

func playAll(t *testing.T, checks int) {
	harness.Checks(t, checks)
	base := harness.OpenMemoryDir(t)
	n := 0
	tally := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		n++
		dir := filepath.Join(base, strconv.Itoa(n))
		must(t, os.Mkdir(dir, 0o755))
		defer os.RemoveAll(dir)
		m := &model{w: fixtureIn(t, dir), now: forest{"": {kind: 'd', mode: 0o755}}, made: map[string]*deed{}, tally: tally}
		rt.Repeat(map[string]func(*rapid.T){
			"":       m.check,
			"edit":   m.edit,
			"edit2":  m.edit,
			"edit3":  m.edit,
			"commit": m.commit, "commit2": m.commit,
			"undo": m.undo, "undo2": m.undo,
			"take":    m.take,
			"restore": m.restore, "restore2": m.restore,
			"prune": m.prune,
		})
	})
	t.Log(tally)
}

// A model is what is known of a root and of what is kept of it.
type model struct {
	w     *fixture
	now   forest
	chain []string         // ids of the commits that can be undone, the oldest first
	made  map[string]*deed // what each commit made
	snaps []*kept          // the oldest first
	tally map[string]int
}

// A deed is what a commit has made, at the places that it really made it.
type deed struct {
	files map[string]string // path to content
	dirs  []string
	chain []string // with it
}

// kept is a snapshot.
type kept struct {
	id     string
	tree   forest // of all that was there then
	scope  []string
	whole  bool
	chain  []string // of then
	action string
	brings []string // commits that stand again after the action
}

var (
	contents  = []string{"", "one", "two", strings.Repeat("\x00", 70000) + "end", "x" + strings.Repeat("\x00", 140000)}
	names     = []string{"a", "b", "d", "é", "e\u0301", "日本"}
	oddNames  = []string{"\xff\xfe", "new\nline", " ", "..."}
	times     = []int64{0, -1, 1, 1700000000_123456789, 4102444800_000000001, -86400_000000000 * 400}
	modes     = []uint32{0o644, 0o600, 0o4755, 0o400, 0o777}
	targets   = []string{"a", "b", "d", "../a", "../../x", "a/d", "d/b", "nowhere", ".", "/etc", "é"}
	artifacts = []string{"RESTORE_MANIFEST.json", "RESTORE_REPORT.json"}
)

func drawPath(rt *rapid.T, from []string) string {
	n := rapid.IntRange(1, 3).Draw(rt, "depth")
	var parts []string
	for range n {
		parts = append(parts, rapid.SampledFrom(from).Draw(rt, "name"))
	}
	return strings.Join(parts, "/")
}

// check compares everything.
func (m *model) check(rt *rapid.T) {
	m.w.kill = nil
	if diff := cmp.Diff(m.now.print(), read(m.w.t, m.w.root).print()); diff != "" {
		rt.Fatalf("the root (-model +disk):\n%s", diff)
	}
	if diff := cmp.Diff(append([]string{}, m.chain...), m.w.chain()); diff != "" {
		rt.Fatalf("the chain (-model +store):\n%s", diff)
	}
	if _, open := m.w.log(); open > 0 {
		rt.Fatalf("%d actions are open", open)
	}
	m.checkSnapshots(rt)
}

func (m *model) checkSnapshots(rt *rapid.T) {
	store := m.w.snapshots()
	defer store.Close()
	all, err := store.List("")
	if err != nil || len(all) != len(m.snaps) {
		rt.Fatalf("%d snapshots, want %d: %v", len(all), len(m.snaps), err)
	}
	for i, h := range all {
		if h.ID != m.snaps[i].id {
			rt.Fatalf("snapshot %d is %s, want %s", i, h.ID, m.snaps[i].id)
		}
		found, err := store.Find(h.ID)
		if err != nil {
			rt.Fatal(err)
		}
		if damaged, err := store.Verify(context.Background(), found); err != nil || len(damaged) > 0 {
			rt.Fatalf("snapshot %s: %v, %v", h.ID, damaged, err)
		}
	}
}

// learn takes note of the snapshots that came, all of what was there before.
func (m *model) learn(rt *rapid.T, before forest, chain []string) []*kept {
	store := m.w.snapshots()
	defer store.Close()
	all, err := store.List(m.w.root)
	if err != nil {
		rt.Fatal(err)
	}
	var came []*kept
	for _, h := range all {
		if slices.ContainsFunc(m.snaps, func(k *kept) bool { return k.id == h.ID }) {
			continue
		}
		found, err := store.Find(h.ID)
		if err != nil {
			rt.Fatal(err)
		}
		k := &kept{id: h.ID, tree: before.clone(), whole: h.Whole, chain: slices.Clone(chain), action: h.Action}
		for _, p := range found.Scope() {
			k.scope = append(k.scope, p.String())
		}
		came = append(came, k)
	}
	m.snaps = append(m.snaps, came...)
	return came
}

// wantScope requires exactly one snapshot before an action, of these names.
func wantScope(rt *rapid.T, came []*kept, scope []string) {
	slices.Sort(scope)
	if len(came) != 1 || came[0].whole || !slices.Equal(slices.Sorted(slices.Values(came[0].scope)), scope) {
		for _, k := range came {
			rt.Logf("%q, whole %v", k.scope, k.whole)
		}
		rt.Fatalf("%d snapshots before it, want one of %q", len(came), scope)
	}
}

// mayDie lets the process of the next action die, now and then.
func (m *model) mayDie(rt *rapid.T) {
	m.w.kill = nil
	if rapid.IntRange(0, 2).Draw(rt, "dies") == 0 {
		m.w.kill = &simulatedKill{left: rapid.IntRange(0, 220).Draw(rt, "calls")}
	}
}

// died ends what a dead process has left: the next one enters.
func (m *model) died() bool {
	if !m.w.kill.happened() {
		return false
	}
	m.w.kill = nil
	m.w.enter().leave()
	return true
}

func (m *model) count(what string, err error, died bool) {
	switch {
	case died:
		what += ", killed"
	case err != nil:
		what += ", refused"
	}
	m.tally[what]++
}

func (m *model) edit(rt *rapid.T) {
	at := drawPath(rt, append(slices.Clone(names), oddNames...))
	if rapid.IntRange(0, 2).Draw(rt, "there") > 0 {
		if all := m.now.sorted(); len(all) > 1 {
			at = rapid.SampledFrom(all[1:]).Draw(rt, "at")
		}
	}
	if !m.now.parentIsDir(at) {
		rt.Skip()
	}
	file := m.w.at(at)
	switch there := m.now[at]; {
	case there == nil:
		m.add(rt, at, file)
	case rapid.Bool().Draw(rt, "remove"):
		must(m.w.t, os.RemoveAll(file))
		m.now.drop(at)
	case there.kind == 'f':
		m.change(rt, there, file)
	case there.kind != 'l':
		there.mode = rapid.SampledFrom(modes).Draw(rt, "mode") | uint32(0o700)
		must(m.w.t, unix.Chmod(file, there.mode))
	}
}

func (m *model) add(rt *rapid.T, at, file string) {
	th := &thing{kind: rapid.SampledFrom([]byte("ffddllph")).Draw(rt, "kind"), mode: 0o755}
	var err error
	switch th.kind {
	case 'f':
		must(m.w.t, os.WriteFile(file, nil, 0o644))
		m.change(rt, th, file)
	case 'd':
		err = os.Mkdir(file, 0o755)
	case 'l':
		th.content, th.mode = rapid.SampledFrom(targets).Draw(rt, "target"), 0o777
		err = os.Symlink(th.content, file)
	case 'p':
		err = errors.Join(unix.Mkfifo(file, 0o600), unix.Chmod(file, th.mode))
	case 'h':
		other := ""
		for _, p := range m.now.sorted() {
			if m.now[p].kind == 'f' {
				other = p
			}
		}
		if other == "" {
			rt.Skip()
		}
		th, err = m.now[other], os.Link(m.w.at(other), file)
	}
	must(m.w.t, err)
	m.now[at] = th
}

// change gives a file another content, mode, attribute and time.
func (m *model) change(rt *rapid.T, th *thing, file string) {
	th.content = contents[rapid.IntRange(0, len(contents)-1).Draw(rt, "content")]
	th.mode = rapid.SampledFrom(modes).Draw(rt, "mode")
	th.time = rapid.SampledFrom(times).Draw(rt, "time")
	f, err := os.OpenFile(file, os.O_RDWR|os.O_TRUNC, 0)
	must(m.w.t, err)
	must(m.w.t, f.Truncate(int64(len(th.content))))
	if rest := strings.TrimLeft(th.content, "\x00"); len(th.content) < 70000 || rest != th.content {
		_, err = f.WriteAt([]byte(rest), int64(len(th.content)-len(rest)))
	} else {
		_, err = f.WriteAt([]byte("x"), 0)
	}
	must(m.w.t, errors.Join(err, f.Close()))
	if note := rapid.SampledFrom([]string{"", "n", "other"}).Draw(rt, "note"); note != "" && unix.Setxattr(file, attribute, []byte(note), 0) == nil {
		th.note = note
	}
	must(m.w.t, unix.Chmod(file, th.mode))
	ts := unix.NsecToTimespec(th.time)
	must(m.w.t, unix.UtimesNanoAt(unix.AT_FDCWD, file, []unix.Timespec{ts, ts}, 0))
}

func (m *model) commit(rt *rapid.T) {
	outputs := map[string]output{}
	for range rapid.IntRange(1, 4).Draw(rt, "outputs") {
		p := drawPath(rt, names)
		clash := slices.ContainsFunc(keysOf(outputs), func(other string) bool { return within(p, other) || within(other, p) })
		if !clash {
			mode := rapid.SampledFrom([]os.FileMode{0o644, 0o755, 0o600}).Draw(rt, "mode")
			outputs[p] = output{rapid.SampledFrom([]string{"", "one", "two\n"}).Draw(rt, "content"), mode, time.Unix(0, rapid.SampledFrom(times).Draw(rt, "time"))}
		}
	}
	if rapid.IntRange(0, 3).Draw(rt, "clear") > 0 { // what the last one has told is in the way
		for _, name := range artifacts {
			must(m.w.t, os.RemoveAll(m.w.at(name)))
			m.now.drop(name)
		}
	}
	before, chain := m.now.clone(), m.chain
	after, made, tops, possible := m.foresee(outputs)
	m.mayDie(rt)
	attempt, err := m.w.commit(outputs)
	died := m.died()
	m.count("commit", err, died)
	came := m.learn(rt, before, chain)
	if died && len(m.w.chain()) > len(chain) {
		attempt, err = m.w.chain()[len(chain)], nil
	}
	switch {
	case err != nil && (died || !possible):
		return
	case err != nil || !possible:
		rt.Fatalf("commit of %v: %v, want it possible: %v", outputs, err, possible)
	}
	wantScope(rt, came, tops)
	m.chain = append(slices.Clone(chain), attempt)
	m.made[attempt] = made
	made.chain = m.chain
	m.now = m.adopt(after)
}

// adopt takes what the model cannot know from the disk: what the result artifacts
// say, and when.
func (m *model) adopt(after forest) forest {
	disk := read(m.w.t, m.w.root)
	for _, name := range artifacts {
		if th := disk[name]; th != nil && th.kind == 'f' && th.content != "" {
			after[name] = th
		}
	}
	return after
}

// foresee is the tree that a commit makes, unless something is in its way.
func (m *model) foresee(outputs map[string]output) (after forest, d *deed, tops []string, possible bool) {
	after, d = m.now.clone(), &deed{files: map[string]string{}}
	all := map[string]output{artifacts[0]: {mode: 0o644}, artifacts[1]: {mode: 0o644}}
	for p, o := range outputs {
		all[p] = o
	}
	of := map[string]string{} // the logical first missing name, by the real one
	for _, p := range slices.Sorted(slices.Values(keysOf(all))) {
		real, top, err := m.now.land(p)
		if err != nil || top == "" {
			return nil, nil, nil, false
		}
		logical := strings.TrimSuffix(p, strings.TrimPrefix(real, top))
		if other, taken := of[top]; taken && other != logical {
			return nil, nil, nil, false
		}
		of[top] = logical
		tops = append(tops, top)
		d.files[real] = all[p].content
		after[real] = &thing{kind: 'f', mode: uint32(all[p].mode), content: all[p].content, time: all[p].time.UnixNano()}
		for dir := upOf(real); after[dir] == nil; dir = upOf(dir) {
			after[dir] = &thing{kind: 'd', mode: 0o755}
			d.dirs = append(d.dirs, dir)
		}
	}
	slices.Sort(tops)
	return after, d, slices.Compact(tops), true
}

func keysOf(m map[string]output) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func within(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }

func (m *model) undo(rt *rapid.T) {
	if len(m.chain) == 0 {
		rt.Skip()
	}
	i := rapid.IntRange(0, len(m.chain)-1).Draw(rt, "commit")
	later := rapid.IntRange(0, 3).Draw(rt, "later") > 0
	before, chain := m.now.clone(), m.chain
	what := action.What{Commit: chain[i], Later: later, Reason: "asked for"}
	seen, unseen := foreseen(rt, m.w, func(in *action.Root) (*action.Undone, error) {
		return action.ForeseeUndo(context.Background(), in, what)
	})
	m.mayDie(rt)
	in := m.w.enter()
	done, err := action.Undo(context.Background(), in.Root, what)
	in.leave()
	died := m.died()
	m.count("undo", err, died)
	if !died {
		wantForeseen(rt, seen, done, unseen, err)
	}
	var isLater *action.LaterError
	if !later && i < len(chain)-1 {
		if !errors.As(err, &isLater) && !died {
			rt.Fatalf("%v", err)
		}
		return
	}
	came := m.learn(rt, before, chain)
	switch {
	case died && err != nil && len(m.w.chain()) == len(chain):
		return
	case err != nil && !died:
		rt.Fatalf("undo: %v", err)
	}
	tops := m.without(chain[i:])
	if len(tops) > 0 {
		wantScope(rt, came, tops)
	}
	m.chain = chain[:i:i]
	if err == nil && (done.Done.Snapshot.ID() != came[0].id || len(done.Commits) != len(chain)-i) {
		rt.Fatalf("%+v", done)
	}
	if err == nil {
		wantChanges(rt, before, m.now, done.Changes)
	}
}

// without takes what commits have made out of the tree, and gives the names that
// go. What is not a file any more stays, and so does a directory that holds something.
func (m *model) without(commits []string) (tops []string) {
	files, dirs := map[string]bool{}, map[string]bool{}
	for _, id := range commits {
		for p := range m.made[id].files {
			files[p] = true
		}
		for _, p := range m.made[id].dirs {
			dirs[p] = true
		}
	}
	gone := map[string]bool{}
	for _, p := range slices.Backward(m.now.sorted()) { // what is in a directory comes before it
		th := m.now[p]
		empty := !slices.ContainsFunc(m.now.sorted(), func(other string) bool { return other != "" && upOf(other) == p && !gone[other] })
		gone[p] = p != "" && (files[p] && th.kind == 'f' || dirs[p] && th.kind == 'd' && empty)
	}
	for _, p := range m.now.sorted() {
		if gone[p] && !gone[upOf(p)] {
			tops = append(tops, p)
		}
	}
	for p := range gone {
		if gone[p] {
			delete(m.now, p)
		}
	}
	return tops
}

func (m *model) take(rt *rapid.T) {
	m.mayDie(rt)
	in := m.w.enter()
	taken, err := in.Snapshot(context.Background(), snapshot.Manual, "asked for")
	in.leave()
	died := m.died()
	m.count("take", err, died)
	came := m.learn(rt, m.now, m.chain)
	if !died && (err != nil || len(came) != 1 || !came[0].whole || came[0].id != taken.ID()) {
		rt.Fatalf("%v: %+v", err, came)
	}
}

func (m *model) restore(rt *rapid.T) {
	if len(m.snaps) == 0 {
		rt.Skip()
	}
	k := m.snaps[rapid.IntRange(0, len(m.snaps)-1).Draw(rt, "snapshot")]
	rt.Logf("%s of %q", k.id, k.scope)
	before, chain := m.now.clone(), m.chain
	wanted, possible := k.wanted(m.now)
	possible = possible && !m.hasLater(k)
	how := action.How{Type: audit.Session, Reason: "asked for"}
	seen, unseen := foreseen(rt, m.w, func(in *action.Root) (*action.Restored, error) {
		target, err := in.Snapshots().Find(k.id)
		if err != nil {
			return nil, err
		}
		return action.ForeseeRestore(context.Background(), in, target, how)
	})
	m.mayDie(rt)
	in := m.w.enter()
	target, err := in.Snapshots().Find(k.id)
	if err != nil && !m.w.kill.happened() {
		rt.Fatal(err)
	}
	var done *action.Restored
	if err == nil {
		done, err = action.Restore(context.Background(), in.Root, target, how)
	}
	in.leave()
	died := m.died()
	m.count(fmt.Sprintf("restore, whole %v", k.whole), err, died)
	if !died {
		wantForeseen(rt, seen, done, unseen, err)
	}
	came := m.learn(rt, before, chain)
	for _, c := range came {
		c.brings = slices.DeleteFunc(slices.Clone(k.chain), func(id string) bool { return slices.Contains(chain, id) })
	}
	switch {
	case err != nil && died && !cmp.Equal(read(m.w.t, m.w.root).print(), wanted.print()):
		return
	case err != nil && !possible:
		return
	case err != nil && !died || !possible:
		rt.Fatalf("restore of %s: %v, want it possible: %v", k.id, err, possible)
	}
	if err == nil && k.whole && (!came[0].whole || len(done.Left) > 0) {
		rt.Fatalf("%+v, %+v", done, came)
	}
	if err == nil {
		wantChanges(rt, before, wanted, done.Changes)
	}
	m.now = wanted
	if died && slices.Equal(m.w.chain(), chain) {
		return // the tree is the same as before
	}
	m.chain = k.chain
}

// hasLater reports whether commits were made since that a snapshot of a part knows nothing of:
// that neither came after it nor were brought back by what came after it.
func (m *model) hasLater(k *kept) bool {
	own := append([]string{k.action}, append(k.brings, k.chain...)...)
	return !k.whole && slices.ContainsFunc(m.chain, func(id string) bool { return !slices.Contains(own, id) })
}

// wanted is the tree after the restore of a snapshot. A part of a root can only
// come where its directory is there.
func (k *kept) wanted(now forest) (forest, bool) {
	if k.whole {
		return k.tree.clone(), true
	}
	for _, top := range k.scope {
		if k.tree[top] != nil && !now.parentIsDir(top) {
			return now, false
		}
	}
	after := now.clone()
	after.graft(k.tree, slices.DeleteFunc(slices.Clone(k.scope), func(top string) bool { return !now.parentIsDir(top) }))
	return after, true
}

func (m *model) prune(rt *rapid.T) {
	store := m.w.snapshots()
	defer store.Close()
	keep := rapid.IntRange(1, 6).Draw(rt, "keep")
	inUse := m.inUse()
	_, err := store.Prune(context.Background(), snapshot.Policy{Root: action.RootPath(m.w.root), KeepLast: keep}, func(h snapshot.Header) string { return inUse[h.Action] })
	if err != nil {
		rt.Fatal(err)
	}
	var left []*kept
	ranks := map[[2]bool]int{}
	for i, k := range slices.Backward(m.snaps) {
		kind := [2]bool{k.whole, k.action != ""}
		if !k.whole {
			kind = [2]bool{}
		}
		ranks[kind]++
		if i == len(m.snaps)-1 || ranks[kind] <= keep || inUse[k.action] != "" {
			left = append(left, k)
		}
	}
	slices.Reverse(left)
	m.snaps = left
}

// inUse are the commits that can be undone, or could be once a snapshot is restored.
func (m *model) inUse() map[string]string {
	inUse := map[string]string{}
	for id := range m.made {
		inUse[id] = "it can be undone"
	}
	return inUse
}
