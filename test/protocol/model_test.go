package protocol

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
	"golang.org/x/sys/unix"
)

// TestModel plays random commands against the program and against a model that
// knows who has approved what: what enters a root was approved for it, byte
// for byte, and every command ends with the status of the command line's law.
func TestModel(t *testing.T) { play(t, sample.Rand(t), sample.Of(100, 300, 300)) }

func TestLongModel(t *testing.T) {
	sample.Need(t, sample.Long)
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { play(t, rand.New(rand.NewPCG(seed, 0)), 3000) })
	}
}

// A model is what is known of two roots, two state directories and three
// candidates.
type model struct {
	t     *testing.T
	r     *rand.Rand
	w     *fixture // that of the sources
	roots [2]*rootModel
	hosts [2]*hostModel
	cands []*candidate
	files map[string]*sourceModel
	shown []*previewModel
	told  []string // the commands so far
	tally map[string]int
}

type rootModel struct {
	path    string
	tree    harness.Tree // after the last command
	unsure  int          // how many commits were killed there
	pending *killedCommit
}

// A killedCommit has left the root in between.
type killedCommit struct {
	host   int
	before harness.Tree
	wanted *previewModel
	items  []item
}

type hostModel struct {
	state      string
	pinned     map[byte]bool
	revoked    map[byte]bool
	held       map[string]bool // by source
	distrusts  bool            // a validator was pinned or revoked here
	attempts   [2]int          // by root
	savepoints [2]int
}

type candidate struct {
	name  string
	runs  []string
	files []string
	key   byte
	chain bool
}

// A sourceModel is a source: as it was signed, or broken; and its time.
type sourceModel struct {
	content string
	broken  bool
	late    int
}

type previewModel struct {
	block
	cand, root, host int
	sources          string
	trust            string
	bound            string // what stood at the names of the plan
	attempts         int
	unsure           int
	used             bool
}

func play(t *testing.T, random *rand.Rand, steps int) {
	t.Helper()
	m := newModel(t, random)
	for n := range steps {
		m.step()
		if t.Failed() {
			t.Fatalf("step %d; the commands were\n%s", n, strings.Join(m.told, "\n"))
		}
	}
	t.Log(m.tally)
}

func newModel(t *testing.T, random *rand.Rand) *model {
	top := t.TempDir()
	m := &model{t: t, r: random, w: fixtureIn(t, top), files: map[string]*sourceModel{}, tally: map[string]int{}}
	for n := range m.roots {
		m.roots[n] = &rootModel{path: filepath.Join(top, fmt.Sprint("root ", n))}
		m.hosts[n] = &hostModel{
			state: filepath.Join(top, fmt.Sprint("state ", n)), pinned: map[byte]bool{}, revoked: map[byte]bool{}, held: map[string]bool{},
		}
		harness.Must(t, os.Mkdir(m.roots[n].path, 0o755))
		harness.Must(t, os.Mkdir(m.hosts[n].state, 0o700))
		put(t, m.roots[n].path+"/state/foreign.txt", "not yours\n")
		m.roots[n].tree = m.take(n)
		host := &fixture{Project: &harness.Project{Dir: m.w.Dir, State: m.hosts[n].state}}
		t.Cleanup(func() { host.CheckAudit(t) })
	}
	scopes := map[string]any{"restore_scopes": map[string]any{"decided/**": "decisions", "vault/**": "restricted_context"}}
	m.sign("single", 1, forgery{files: harness.Files{"state/a1": "a1\n", "state/a2": strings.Repeat("a2", 5000), "decided/a3": "a3\n", "vault/a4": "a4\n"}, constraints: scopes})
	m.sign("other", 2, forgery{files: harness.Files{"state/a1": "a1\n", "other/b1": "b1\n"}})
	m.sign("chain", 1,
		forgery{files: harness.Files{"links/c1": "c1\n", "decided/c2": "c2\n"}, constraints: map[string]any{"restore_scopes": map[string]any{"decided/**": "decisions"}}, completed: "2026-01-01T00:00:00Z"},
		forgery{files: harness.Files{"links/c3": "", "state/a1": "a1\n"}, completed: "2026-01-02T00:00:00Z"})
	return m
}

func (m *model) sign(name string, key byte, runs ...forgery) {
	c := &candidate{name: name, key: key, chain: len(runs) > 1}
	for n, f := range runs {
		f.key = key
		id := fmt.Sprintf("%s-%d", name, n+1)
		m.w.forge(m.t, id, f)
		c.runs = append(c.runs, m.w.runDir(id))
		for path, content := range f.files {
			m.files[path] = &sourceModel{content: content}
			c.files = append(c.files, path)
		}
	}
	slices.Sort(c.files)
	m.cands = append(m.cands, c)
}

// step plays one command.
func (m *model) step() {
	for _, root := range m.roots {
		if root.pending != nil {
			m.afterKill(root)
			return
		}
	}
	switch n := m.r.IntN(100); {
	case n < 30:
		m.preview()
	case n < 62:
		m.commit(false)
	case n < 72:
		m.commit(true)
	case n < 79:
		m.editTrust()
	case n < 85:
		m.release()
	case n < 90:
		m.touchSource()
	case n < 97:
		m.touchRoot()
	default:
		m.recover()
	}
}

// run runs a command with a state directory.
func (m *model) run(host int, plan *sysfault.Plan, args ...string) harness.Reply {
	m.t.Helper()
	p := harness.Project{Dir: m.w.Dir, State: m.hosts[host].state}
	m.told = append(m.told, fmt.Sprintf("state %d: %q", host, args))
	r := p.Run(m.t, plan, args...)
	m.told = append(m.told, fmt.Sprintf("    exit %d %s", r.Status, r.Answer.Code))
	m.tally[fmt.Sprint(args[0], " ", r.Status)]++
	return r
}

func (m *model) take(root int) harness.Tree {
	m.t.Helper()
	tree, err := harness.Take(m.roots[root].path)
	harness.Must(m.t, err)
	return tree
}

// wants compares a reply with what the model says.
func (m *model) wants(r harness.Reply, why string, allowed ...int) {
	m.t.Helper()
	if !slices.Contains(allowed, r.Status) {
		m.t.Errorf("want exit %v (%s): %v", allowed, why, r)
	}
}

// unchanged requires both roots to be as they were.
func (m *model) unchanged(r harness.Reply) {
	m.t.Helper()
	for n, root := range m.roots {
		if diff := harness.Diff(root.tree, m.take(n)); diff != "" {
			m.t.Errorf("%v\nhas changed %q:\n%s", r, root.path, diff)
		}
	}
}

func (m *model) sources(c *candidate) (text string, broken bool) {
	for _, path := range c.files {
		f := m.files[path]
		text += fmt.Sprintln(path, f.late)
		broken = broken || f.broken
	}
	return text, broken
}

// refusal is what a preview of a candidate must end with, before the root is
// looked at; 0 for none.
func (m *model) refusal(cand, root, host int) (status int, why string) {
	c, h := m.cands[cand], m.hosts[host]
	if _, broken := m.sources(c); broken {
		return 1, "a source is broken"
	}
	for _, run := range c.runs {
		if _, there := m.roots[root].tree[filepath.Base(run)]; there && c.chain {
			return 1, "the directory of a run exists"
		}
	}
	if h.revoked[c.key] || len(h.pinned) > 0 && !h.pinned[c.key] {
		return 5, "trust"
	}
	return 0, ""
}

func (m *model) previewArgs(cand, root int, flags []string) []string {
	c := m.cands[cand]
	args := append([]string{"preview", "--json", "--restore-root", m.roots[root].path}, flags...)
	if c.chain {
		args = append(args, "--chain")
	}
	return append(args, c.runs...)
}

func (m *model) preview() {
	m.previewOf(m.r.IntN(len(m.cands)), m.r.IntN(2), m.r.IntN(2), nil)
}

func (m *model) previewOf(cand, root, host int, flags []string) {
	m.t.Helper()
	if flags == nil {
		flags = [][]string{
			{"-v"}, {"-v"}, {"--agent", "builder"}, {"--scope", "project_state"}, {"--scope", "project_state,restricted_context"}, {"--scope", "decisions"},
		}[m.r.IntN(6)]
	}
	r := m.run(host, nil, m.previewArgs(cand, root, flags)...)
	m.unchanged(r)
	status, why := m.refusal(cand, root, host)
	m.wants(r, why, status)
	if r.Status != 0 {
		return
	}
	h, c := m.hosts[host], m.cands[cand]
	sources, _ := m.sources(c)
	p := &previewModel{
		block: parse(m.t, r.Stdout), cand: cand, root: root, host: host, sources: sources,
		trust: h.trusts(), attempts: h.attempts[root], unsure: m.roots[root].unsure,
	}
	p.bound = m.bound(p)
	if held := strings.Contains(r.Stderr, "quarantined"); held != h.held[p.Source] {
		m.t.Errorf("held is %v: %v", h.held[p.Source], r)
	}
	m.shown = slices.DeleteFunc(m.shown, func(o *previewModel) bool { return o.ID == p.ID && o.host == host })
	m.shown = append(m.shown, p)
	if len(p.Conflicts) > 0 && m.r.IntN(3) == 0 && !strings.Contains(fmt.Sprint(flags), "--decide") {
		c := p.Conflicts[m.r.IntN(len(p.Conflicts))]
		verdicts := []string{"acknowledged", "resolved", "rejected"}
		if len(c.Items) == 0 { // it is about the whole candidate
			verdicts = verdicts[:2]
		}
		m.previewOf(cand, root, host, append(flags, "--decide", c.ID+"="+verdicts[m.r.IntN(len(verdicts))]))
	}
}

// bound is what an approval of a preview binds in its root: what stands at the names of the plan, and
// the directories that lead there.
func (m *model) bound(p *previewModel) string {
	m.t.Helper()
	names := map[string]bool{".": true}
	add := func(name string) {
		for ; name != "."; name = filepath.Dir(name) {
			names[name] = true
		}
	}
	for _, i := range slices.Concat(p.Proposed, p.Reference, p.Unwanted) {
		add(i.Path)
		dir := "."
		if m.cands[p.cand].chain {
			dir, _, _ = strings.Cut(i.Path, "/")
		}
		add(filepath.Join(dir, "RESTORE_MANIFEST.json"))
		add(filepath.Join(dir, "RESTORE_REPORT.json"))
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(names)) {
		var st unix.Stat_t
		err := unix.Lstat(filepath.Join(m.roots[p.root].path, name), &st)
		switch {
		case err != nil:
			fmt.Fprintln(&b, name, "absent")
		case st.Mode&unix.S_IFMT == unix.S_IFDIR:
			fmt.Fprintln(&b, name, st.Mode, st.Ino)
		default:
			fmt.Fprintln(&b, name, st.Mode, st.Ino, st.Size, st.Mtim, st.Ctim)
		}
	}
	return b.String()
}

func (m *model) editTrust() {
	host := m.r.IntN(2)
	h := m.hosts[host]
	h.distrusts = true
	key := byte(1 + m.r.IntN(2))
	switch n := m.r.IntN(8); {
	case n < 4 && !h.pinned[key]:
		m.wants(m.run(host, nil, "trust", "add", validator(key)), "trust", 0)
		h.pinned[key] = true
	case n < 7 && h.pinned[key]:
		m.wants(m.run(host, nil, "trust", "remove", validator(key)), "trust", 0)
		delete(h.pinned, key)
	case n == 7 && !h.revoked[3]:
		m.wants(m.run(host, nil, "trust", "revoke", "--reason", "a leaked key", validator(3)), "trust", 0)
		h.revoked[3] = true
	default:
		return
	}
	m.unchanged(harness.Reply{})
}

func (m *model) release() {
	if len(m.shown) == 0 {
		return
	}
	p := m.shown[m.r.IntN(len(m.shown))]
	h := m.hosts[p.host]
	for _, o := range m.shown { // rather one that is held
		if m.hosts[o.host].held[o.Source] {
			p, h = o, m.hosts[o.host]
		}
	}
	want := []int{1}
	switch {
	case h.held[p.Source]:
		want = []int{0}
	case h.distrusts: // it may be marked as one that is not trusted
		want = []int{0, 1}
	}
	r := m.run(p.host, nil, "quarantine", "release", "--json", p.Source, "--reason", "clarified")
	m.wants(r, "release", want...)
	h.held[p.Source] = false
	m.unchanged(r)
}

// touchSource breaks a source, repairs it, or gives it another time.
func (m *model) touchSource() {
	path := slices.Sorted(maps.Keys(m.files))[m.r.IntN(len(m.files))]
	for _, name := range slices.Sorted(maps.Keys(m.files)) { // what is broken is repaired soon
		if m.files[name].broken {
			path = name
		}
	}
	f := m.files[path]
	switch {
	case f.broken:
		f.broken = false
	case m.r.IntN(2) == 0:
		f.broken = true
	default:
		f.late++
	}
	content := f.content
	if f.broken {
		content += "!"
	}
	put(m.t, m.w.Source(path), content)
	when := day.AddDate(0, 0, f.late)
	harness.Must(m.t, os.Chtimes(m.w.Source(path), when, when))
	m.told = append(m.told, fmt.Sprintf("source %s: %+v", path, *f))
}

// touchRoot puts something into a root, takes something out, or empties it.
func (m *model) touchRoot() {
	n := m.r.IntN(2)
	root := m.roots[n]
	if len(root.tree) == 1 { // to empty it would change nothing
		put(m.t, root.path+"/beside", "")
	}
	var files []string
	for _, name := range slices.Sorted(maps.Keys(root.tree)) {
		if root.tree[name].Mode.IsRegular() {
			files = append(files, name)
		}
	}
	switch k := m.r.IntN(5); {
	case k == 0:
		names := []string{"state/a1", "state/a2", "other/b1", "beside"}
		name := names[m.r.IntN(len(names))]
		put(m.t, filepath.Join(root.path, name), []string{"a1\n", "not yours\n"}[m.r.IntN(2)])
	case k == 1 && len(files) > 0:
		harness.Must(m.t, os.Remove(filepath.Join(root.path, files[m.r.IntN(len(files))])))
	default:
		(&fixture{root: root.path}).clear(m.t)
	}
	root.tree = m.take(n)
	m.told = append(m.told, fmt.Sprintf("root %d is touched", n))
}

// recover has nothing to do: what is unfinished was ended before.
func (m *model) recover() {
	r := m.run(m.r.IntN(2), nil, "recover", "--json", m.roots[m.r.IntN(2)].path)
	m.wants(r, "nothing to do", 0)
	m.unchanged(r)
}
