package undo

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
	"pgregory.net/rapid"
)

// TestHistories plays random histories of a root by the program: commits, edits, snapshots,
// rollbacks, restores of all and of some of it, emergencies, prunes, and kills in the midst of
// them, after which recover ends what was left. A model knows what must stand after every step:
// the tree, the commits that can be undone, the snapshots; and what must be reachable: each
// snapshot of the whole root is written out at the end, and is what the root was.
func TestHistories(t *testing.T) { histories(t, sample.Of(1, 10, 20)) }

func TestLongHistories(t *testing.T) {
	sample.Need(t, sample.Long)
	histories(t, 300)
}

func histories(t *testing.T, checks int) {
	harness.Checks(t, checks)
	dir := harness.MemoryDir(t)
	runs := []harness.Files{
		{"shared/a": "a of 0\n", "zero/deep/f": "f of 0\n", "zero/g": strings.Repeat("g of 0", 9000)},
		{"shared/b": "b of 1\n", "one/f": "f of 1\n"}, {"shared/c": "", "zero/h": "h of 2\n"},
	}
	var projects []*harness.Project
	for i, files := range runs {
		top := filepath.Join(dir, fmt.Sprint("project ", i))
		harness.Must(t, os.Mkdir(top, 0o755))
		projects = append(projects, harness.NewIn(t, top, files))
	}
	n, tally := 0, map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		n++
		own := filepath.Join(dir, strconv.Itoa(n))
		harness.Must(t, os.MkdirAll(filepath.Join(own, "root"), 0o755))
		harness.Must(t, os.Mkdir(filepath.Join(own, "state"), 0o700))
		h := &history{t: t, dir: own, root: filepath.Join(own, "root"), runs: projects, tally: tally}
		for _, p := range projects {
			p.State = filepath.Join(own, "state")
		}
		h.now = harness.MustTake(t, h.root)
		rt.Repeat(map[string]func(*rapid.T){
			"": h.check, "edit": h.edit, "edit2": h.edit, "commit": h.commit, "commit2": h.commit, "take": h.take, "rollback": h.rollback,
			"restore": h.restore, "some": h.some, "emergency": h.emergency, "undo": h.undo, "prune": h.prune,
		})
		h.reach(rt)
		harness.Must(t, os.RemoveAll(own))
	})
	t.Log(tally)
}

// A history is what is known of a root and of what is kept of it.
type history struct {
	t         *testing.T
	dir, root string
	runs      []*harness.Project
	now       harness.Tree
	commits   []deed // that can be undone, the oldest first
	snaps     []state
	last      *state // the state that a restore of the last undo snapshot brings back; nil after anything else
	tally     map[string]int
}

// A deed is a commit.
type deed struct {
	id    string
	files []string // that it made
	dirs  []string
}

// A state is what a root was, and what its snapshot is called.
type state struct {
	id, kind, action string
	tree             harness.Tree // nil where the snapshot is not of all of it
	commits          []deed
}

func (h *history) count(what string) { h.tally[what]++ }

// run runs a command, which may be killed; then recover has to end what it has left.
func (h *history) run(rt *rapid.T, mayDie bool, args ...string) (r harness.Reply, died bool) {
	p := h.runs[0]
	if !mayDie || rapid.IntRange(0, 2).Draw(rt, "dies") > 0 {
		return p.Run(h.t, nil, args...), false
	}
	about := func(c sysfault.Call) bool {
		return harness.Changing(c) && (harness.Inside(c.Path, h.dir) || harness.Inside(c.To, h.dir))
	}
	r = p.Run(h.t, harness.Killing(rapid.IntRange(1, 160).Draw(rt, "call"), about), args...)
	if !r.Killed() {
		return r, false
	}
	h.count("killed " + args[0])
	if again := p.Run(h.t, nil, "recover", "--json", h.root); again.Status != 0 {
		rt.Fatalf("%q was killed, and then: %v", args, again)
	}
	return r, true
}

// check compares what must hold after every step.
func (h *history) check(rt *rapid.T) {
	if diff := harness.Diff(h.now, harness.MustTake(h.t, h.root)); diff != "" {
		rt.Fatalf("the root:\n%s", diff)
	}
	var list struct{ Savepoints []struct{ Attempt string } }
	h.read(rt, &list, "savepoint", "list", "--json", h.root)
	var is, want []string
	for _, sp := range list.Savepoints {
		is = append(is, sp.Attempt)
	}
	for _, c := range h.commits {
		want = append(want, c.id)
	}
	if !slices.Equal(is, want) {
		rt.Fatalf("the commits are %q, want %q", is, want)
	}
	if r := h.runs[0].Run(h.t, nil, "recover", "--json", h.root); r.Status != 0 || !strings.Contains(r.Stdout, `"attempts":[]`) {
		rt.Fatalf("%v", r)
	}
}

// read runs a command that must succeed.
func (h *history) read(rt *rapid.T, into any, args ...string) {
	r := h.runs[0].Run(h.t, nil, args...)
	if r.Status != 0 {
		rt.Fatalf("%v", r)
	}
	if err := json.Unmarshal([]byte(r.Stdout), into); err != nil {
		rt.Fatalf("%v: %v", err, r)
	}
}

// learn adds the snapshots that there are since the last step, of a root as it was before it.
func (h *history) learn(rt *rapid.T, before harness.Tree, commits []deed) (came []state) {
	var list struct {
		Snapshots []struct {
			ID, Kind string
			Action   *string
			Whole    bool
		}
	}
	h.read(rt, &list, "snapshot", "list", "--json", h.root)
	if len(list.Snapshots) < len(h.snaps) {
		rt.Fatalf("%d snapshots, want %d or more", len(list.Snapshots), len(h.snaps))
	}
	for i, s := range list.Snapshots {
		if i < len(h.snaps) {
			if s.ID != h.snaps[i].id {
				rt.Fatalf("snapshot %d is %s, want %s", i, s.ID, h.snaps[i].id)
			}
			continue
		}
		one := state{id: s.ID, kind: s.Kind, commits: slices.Clone(commits)}
		if s.Action != nil {
			one.action = *s.Action
		}
		if s.Whole {
			one.tree = anew(before)
		}
		came = append(came, one)
	}
	h.snaps = append(h.snaps, came...)
	return came
}

// goes notes what an undo operation has made of the root: it has to be as before, or as after,
// and that if it was not killed.
func (h *history) goes(rt *rapid.T, after harness.Tree, commits []deed, mayDie bool, args ...string) {
	before, had := h.now, slices.Clone(h.commits)
	r, died := h.run(rt, mayDie, args...)
	if !died && r.Status != 0 {
		rt.Fatalf("%v", r)
	}
	is := harness.MustTake(h.t, h.root)
	isBefore, isAfter := harness.Diff(before, is), harness.Diff(after, is)
	if isAfter != "" && (!died || isBefore != "") {
		rt.Fatalf("%v\nit is not as after:\n%s\nnor as before:\n%s", r, isAfter, isBefore)
	}
	came := h.learn(rt, before, had)
	h.now, h.last = is, nil
	var list struct{ Savepoints []struct{ Attempt string } }
	h.read(rt, &list, "savepoint", "list", "--json", h.root)
	if isAfter == "" && !(died && isBefore == "" && len(list.Savepoints) == len(had)) {
		h.commits = commits
	}
	h.count(args[0] + " " + args[1])
	if !died && len(came) == 1 {
		h.last = &state{id: came[0].id, tree: anew(before), commits: had}
	}
}

var (
	modelDirs  = []string{"zero", "one", "shared", "own"}
	modelNames = []string{"a", "b", "f", "g", "h", "deep"}
)

// edit is what a person does: writes, removes, makes, and changes modes. The directories that
// commits make stay directories.
func (h *history) edit(rt *rapid.T) {
	for range rapid.IntRange(1, 4).Draw(rt, "edits") {
		dir := rapid.SampledFrom(modelDirs).Draw(rt, "dir")
		if rapid.Bool().Draw(rt, "top") {
			dir = ""
		}
		at := filepath.Join(h.root, dir, rapid.SampledFrom(modelNames).Draw(rt, "name"))
		if _, err := os.Lstat(filepath.Join(h.root, dir)); err != nil {
			harness.Must(h.t, os.Mkdir(filepath.Join(h.root, dir), 0o750))
		}
		is, err := os.Lstat(at)
		switch what := rapid.IntRange(0, 5).Draw(rt, "edit"); {
		case what == 0 && err == nil:
			harness.Must(h.t, os.RemoveAll(at))
		case what == 1 && dir != "":
			harness.Must(h.t, os.Chmod(filepath.Dir(at), []os.FileMode{0o700, 0o755, 0o775}[len(dir)%3]))
		case what == 2 && err != nil:
			harness.Must(h.t, os.Symlink("../nowhere", at))
		case what == 3 && dir != "":
			harness.Must(h.t, os.RemoveAll(filepath.Dir(at)))
		case err != nil || is.Mode().IsRegular():
			text := []string{"", "one\n", "two\n", strings.Repeat("long", 40_000)}[rapid.IntRange(0, 3).Draw(rt, "text")]
			harness.Must(h.t, os.WriteFile(at, []byte(text), 0o644))
		}
	}
	h.now, h.last = harness.MustTake(h.t, h.root), nil
}

// commit commits a run whose names are free, after the artifacts of the last one were moved away.
func (h *history) commit(rt *rapid.T) {
	p := h.runs[rapid.IntRange(0, len(h.runs)-1).Draw(rt, "run")]
	for _, artifact := range []string{"RESTORE_MANIFEST.json", "RESTORE_REPORT.json"} {
		harness.Must(h.t, os.RemoveAll(filepath.Join(h.root, artifact)))
	}
	h.now = harness.MustTake(h.t, h.root)
	for name := range p.Runs[0].Files {
		if _, taken := h.now[name]; taken {
			return
		}
		for up := path.Dir(name); up != "."; up = path.Dir(up) {
			if thing, is := h.now[up]; is && !thing.Mode.IsDir() {
				return
			}
		}
	}
	before, had := h.now, slices.Clone(h.commits)
	var made struct {
		ID string `json:"preview_id"`
	}
	h.read(rt, &made, "preview", "--json", "--restore-root", h.root, p.Runs[0].Dir)
	r, died := h.run(rt, true, harness.CommitArgs(made.ID)...)
	if !died && r.Status != 0 {
		rt.Fatalf("%v", r)
	}
	is, one := harness.MustTake(h.t, h.root), deed{}
	rest := maps.Clone(is)
	for name, thing := range is {
		if _, was := before[name]; was {
			continue
		}
		delete(rest, name)
		if thing.Mode.IsDir() {
			one.dirs = append(one.dirs, name)
		} else {
			one.files = append(one.files, name)
		}
	}
	if diff := harness.Diff(before, rest); diff != "" || len(one.files) > 0 && len(one.files) != len(p.Runs[0].Files)+2 || len(one.files) == 0 && !died {
		rt.Fatalf("%v\nit made %q; of the rest:\n%s", r, one.files, diff)
	}
	for _, s := range h.learn(rt, before, had) {
		one.id = s.action
	}
	if h.now, h.last = is, nil; len(one.files) > 0 {
		h.commits = append(h.commits, one)
	}
	h.count("commit")
}

func (h *history) take(rt *rapid.T) {
	r, died := h.run(rt, true, "snapshot", "take", "--json", h.root)
	if !died && r.Status != 0 {
		rt.Fatalf("%v", r)
	}
	h.learn(rt, h.now, h.commits)
	h.last = nil
}

// rollback undoes a commit, and those after it.
func (h *history) rollback(rt *rapid.T) {
	if len(h.commits) == 0 {
		return
	}
	from := rapid.IntRange(0, len(h.commits)-1).Draw(rt, "commit")
	after := maps.Clone(h.now)
	var dirs []string
	for _, c := range h.commits[from:] {
		for _, name := range c.files {
			if after[name].Mode.IsRegular() {
				delete(after, name)
			}
		}
		dirs = append(dirs, c.dirs...)
	}
	slices.Sort(dirs)
	for _, dir := range slices.Backward(dirs) { // what they made and is empty now
		isIn := func(name string) bool { return strings.HasPrefix(name, dir+"/") }
		if after[dir].Mode.IsDir() && !slices.ContainsFunc(slices.Collect(maps.Keys(after)), isIn) {
			delete(after, dir)
		}
	}
	h.goes(rt, after, h.commits[:from:from], true, "rollback", "--with-later", "--json", h.commits[from].id)
}

// whole is a snapshot of the whole root; nil where there is none.
func (h *history) whole(rt *rapid.T, manual bool) *state {
	var all []state
	for _, s := range h.snaps {
		if s.tree != nil && (s.kind == "manual" || !manual) {
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return &all[rapid.IntRange(0, len(all)-1).Draw(rt, "snapshot")]
}

func (h *history) restore(rt *rapid.T) {
	if s := h.whole(rt, false); s != nil {
		h.goes(rt, s.tree, s.commits, true, "snapshot", "restore", "--json", s.id)
	}
}

// some restores one path of a snapshot, with the directories to it that are missing.
func (h *history) some(rt *rapid.T) {
	s := h.whole(rt, true)
	if s == nil || len(s.tree) < 2 {
		return
	}
	at := rapid.SampledFrom(slices.DeleteFunc(slices.Sorted(maps.Keys(s.tree)), func(name string) bool { return name == "." })).Draw(rt, "path")
	after := maps.Clone(h.now)
	for name := range h.now {
		if name == at || strings.HasPrefix(name, at+"/") {
			delete(after, name)
		}
	}
	for name, thing := range s.tree {
		if name == at || strings.HasPrefix(name, at+"/") {
			after[name] = thing
		}
	}
	for up := path.Dir(at); up != "."; up = path.Dir(up) {
		switch is, there := h.now[up]; {
		case !there:
			after[up] = s.tree[up]
		case !is.Mode.IsDir():
			if r := h.runs[0].Run(h.t, nil, "snapshot", "restore", s.id, at); r.Status != 1 {
				rt.Fatalf("%v", r)
			}
			return
		}
	}
	h.goes(rt, after, h.commits, true, "snapshot", "restore", "--json", s.id, at)
}

// target is the snapshot that an emergency goes back to: the newest that a person has taken.
func (h *history) target() *state {
	for i := range slices.Backward(h.snaps) {
		if h.snaps[i].kind == "manual" {
			return &h.snaps[i]
		}
	}
	return nil
}

func (h *history) emergency(rt *rapid.T) {
	if to := h.target(); to != nil {
		h.goes(rt, to.tree, to.commits, true, "rollback", "--emergency", "--json", h.root)
		return
	}
	if r := h.runs[0].Run(h.t, nil, "rollback", "--emergency", h.root); r.Status != 1 {
		rt.Fatalf("%v", r)
	}
}

// undo undoes the last undo operation: the root is as it was before it.
func (h *history) undo(rt *rapid.T) {
	if h.last != nil {
		h.goes(rt, h.last.tree, h.last.commits, true, "snapshot", "restore", "--json", h.last.id)
		h.count("undo of an undo operation")
	}
}

// prune never removes the snapshot from before the last undo operation.
func (h *history) prune(rt *rapid.T) {
	var gone struct{ Removed []string }
	h.read(rt, &gone, "snapshot", "prune", "--json", "--keep-last", strconv.Itoa(rapid.IntRange(1, 3).Draw(rt, "keep")), h.root)
	target, keeps := h.target(), ""
	if target != nil {
		keeps = target.id
	}
	newest := ""
	if len(h.snaps) > 0 {
		newest = h.snaps[len(h.snaps)-1].id
	}
	for _, id := range gone.Removed {
		i := slices.IndexFunc(h.snaps, func(s state) bool { return s.id == id })
		if i < 0 {
			rt.Fatalf("%s went, and was not there", id)
		}
		needed := slices.ContainsFunc(h.commits, func(c deed) bool { return c.id == h.snaps[i].action })
		if needed || id == keeps || id == newest {
			rt.Fatalf("%+v went", h.snaps[i])
		}
		h.snaps = slices.Delete(h.snaps, i, i+1)
		h.count("pruned")
	}
}

// reach writes every snapshot of the whole root out.
func (h *history) reach(rt *rapid.T) {
	for i, s := range h.snaps {
		if s.tree == nil {
			continue
		}
		to := filepath.Join(h.dir, fmt.Sprint("to ", i))
		if r := h.runs[0].Run(h.t, nil, "snapshot", "restore", "--to", to, s.id); r.Status != 0 {
			rt.Fatalf("%v", r)
		}
		if diff := harness.Diff(s.tree, harness.MustTake(h.t, to)); diff != "" {
			rt.Fatalf("snapshot %d is not what the root was:\n%s", i, diff)
		}
	}
}
