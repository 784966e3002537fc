package protocol

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// A said is a statement, and what the model knows of it.
type said struct {
	text   string
	vague  bool
	slip   bool // it approves but for its form
	unfit  bool
	wanted []item
}

// say makes a statement about a preview.
func (m *model) say(p *previewModel) said {
	switch n := m.r.IntN(12); {
	case n == 0:
		vague := []string{"Looks good.", "Sure.", "approved", "Approved: restore everything.", "Approved: restore item R-1 only."}
		return said{text: vague[m.r.IntN(len(vague))], vague: true}
	case n == 1 && m.r.IntN(2) == 0:
		slips := []string{strings.ToLower(exactly), strings.TrimSuffix(exactly, "."), strconv.Quote(exactly)}
		return said{text: slips[m.r.IntN(len(slips))], slip: true}
	case n == 1:
		return said{text: "Approved: restore item R-099 only.", unfit: true}
	case n < 6 || len(p.Proposed) == 0:
		return m.sayWhole(p)
	case n == 6:
		return m.sayScope(p)
	}
	var items []item
	for _, i := range p.Proposed {
		if m.r.IntN(2) == 0 {
			items = append(items, i)
		}
	}
	if len(items) == 0 {
		items = p.Proposed[:1]
	}
	var ids []string
	for _, i := range items {
		ids = append(ids, i.ID)
	}
	return m.sayDecisions(p, said{text: "Approved: restore items " + english(ids) + " only.", wanted: items})
}

func english(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// rejected reports whether a conflict about the whole candidate was rejected before the preview.
func (p *previewModel) rejected() bool {
	return slices.ContainsFunc(p.Conflicts, func(c conflict) bool { return c.Decision == "rejected" && len(c.Items) == 0 })
}

// sayWhole approves all that is proposed but what may hold secrets, which has to be named.
func (m *model) sayWhole(p *previewModel) said {
	wanted := slices.DeleteFunc(slices.Clone(p.Proposed), func(i item) bool { return i.Scope == "restricted_context" })
	return said{text: exactly, wanted: wanted, unfit: p.rejected() || len(wanted) == 0}
}

func (m *model) sayScope(p *previewModel) said {
	s := said{text: "Approved: restore decisions only."}
	for _, i := range p.Proposed {
		if i.Scope == "decisions" {
			s.wanted = append(s.wanted, i)
		}
	}
	s.unfit = len(s.wanted) == 0
	return m.sayDecisions(p, s)
}

// sayDecisions acknowledges all that is open, or nothing.
func (m *model) sayDecisions(p *previewModel, s said) said {
	s.unfit = s.unfit || p.rejected()
	var open []string
	touched := false
	for _, c := range p.Conflicts {
		if c.Decision != "pending" {
			continue
		}
		open = append(open, c.ID)
		touched = touched || len(c.Items) == 0 || slices.ContainsFunc(s.wanted, func(i item) bool { return slices.Contains(c.Items, i.ID) })
	}
	switch {
	case len(open) > 0 && m.r.IntN(4) > 0:
		s.text += " Acknowledge " + english(open) + "."
	case touched:
		s.unfit = true
	}
	return s
}

// forecast is what the commit of a preview must end with.
func (m *model) forecast(p *previewModel, s said) (status int, why string) {
	h := m.hosts[p.host]
	if p.used {
		return 4, "used"
	}
	if s.vague {
		return 4, "vague"
	}
	if s.slip {
		return 4, "a slip of form"
	}
	if status, why = m.refusal(p.cand, p.root, p.host); status != 0 {
		return status, why
	}
	sources, _ := m.sources(m.cands[p.cand])
	switch {
	case sources != p.sources, m.bound(p) != p.bound, h.trusts() != p.trust, h.attempts[p.root] != p.attempts:
		return 4, "stale"
	case s.unfit:
		return 4, "unfit"
	case h.held[p.Source]:
		return 5, "held"
	case p.inTheWay(s.wanted):
		return 1, "a target exists"
	}
	return 0, "approved"
}

// trusts is whom a state directory trusts, as text.
func (h *hostModel) trusts() string { return fmt.Sprint(h.pinned, h.revoked) }

func (p *previewModel) inTheWay(wanted []item) bool {
	result := func(c conflict) bool { return c.Type == "state_conflict" && len(c.Items) == 0 }
	return slices.ContainsFunc(wanted, func(i item) bool { return i.Class != "create" }) || slices.ContainsFunc(p.Conflicts, result)
}

// commit answers one of the last previews, and may be killed.
func (m *model) commit(kill bool) {
	back := m.r.IntN(4)
	if kill || back == 0 {
		m.preview()
		back = 0
	}
	if len(m.shown) == 0 {
		return
	}
	p := m.shown[max(0, len(m.shown)-1-back)]
	s := m.say(p)
	h, root := m.hosts[p.host], m.roots[p.root]
	status, why := m.forecast(p, s)
	var plan *sysfault.Plan
	if kill {
		plan = &sysfault.Plan{N: 1 + m.r.IntN(130), Match: changing(&fixture{Project: &harness.Project{State: h.state}, root: root.path}), Kill: true}
	}
	before := root.tree
	r := m.run(p.host, plan, "commit", "--json", "--preview", p.ID, "--approve", s.text)
	m.tally["commit: "+why]++
	if kill && r.Killed() {
		m.killed(p, s, before, status)
		return
	}
	allowed := []int{status}
	if p.unsure != root.unsure && status != 4 { // a commit was killed since: it had begun, or not
		allowed = append(allowed, 4)
	}
	m.wants(r, why, allowed...)
	if s.vague {
		m.vague(p, r)
	}
	if s.slip && r.Answer.Code != "APPROVAL_UNFIT" && r.Answer.Code != "APPROVAL_USED" { // it holds nothing
		m.t.Error(r)
	}
	if why == "a target exists" && r.Status == 1 || r.Status == 0 {
		p.used = true
	}
	if r.Status != 0 {
		m.unchanged(r)
		return
	}
	m.done(p, s.wanted, before)
}

// vague is after a vague answer: it holds the candidate, unless the preview was used, which is not
// known of one whose commit may have begun before it was killed.
func (m *model) vague(p *previewModel, r harness.Reply) {
	m.t.Helper()
	held := r.Answer.Code == "APPROVAL_VAGUE"
	if p.unsure == m.roots[p.root].unsure && held == p.used || !held && r.Answer.Code != "APPROVAL_USED" {
		m.t.Errorf("used is %t: %v", p.used, r)
	}
	if held {
		m.hosts[p.host].held[p.Source] = true
	}
}

// killed remembers what was running.
func (m *model) killed(p *previewModel, s said, before harness.Tree, status int) {
	root := m.roots[p.root]
	root.unsure++
	root.pending = &killedCommit{host: p.host, before: before, wanted: p}
	if status == 0 {
		root.pending.items = s.wanted
	}
	if s.vague { // it holds, or not: a release settles it
		m.hosts[p.host].held[p.Source] = false
		m.run(p.host, nil, "quarantine", "release", p.Source, "--reason", "a killed answer")
	}
}

// done is after a commit: what is new was wanted.
func (m *model) done(p *previewModel, wanted []item, before harness.Tree) {
	m.t.Helper()
	h, root := m.hosts[p.host], m.roots[p.root]
	root.tree = m.take(p.root)
	m.approved(p, wanted, before, root.tree)
	m.unchanged(harness.Reply{Args: []string{"the other root"}})
	h.attempts[p.root]++
	h.savepoints[p.root]++
	m.counted(p.host, p.root)
}

// approved compares a root with what was approved for it: every new file is an
// item, byte for byte, or a result artifact, and all else is as it was.
func (m *model) approved(p *previewModel, wanted []item, before, after harness.Tree) {
	m.t.Helper()
	rest := maps.Clone(after)
	take := func(path, sha string) {
		thing, there := rest[path]
		if !there || !thing.Mode.IsRegular() || sha != "" && "sha256:"+thing.Content != sha {
			m.t.Errorf("%q is %+v, want %s", path, thing, sha)
		}
		delete(rest, path)
		for dir := filepath.Dir(path); dir != "."; dir = filepath.Dir(dir) {
			if _, old := before[dir]; !old {
				delete(rest, dir)
			}
		}
	}
	dirs := map[string]bool{}
	for _, i := range wanted {
		take(i.Path, i.SHA256)
		dir, _, _ := strings.Cut(i.Path, "/")
		if !m.cands[p.cand].chain {
			dir = "."
		}
		dirs[dir] = true
	}
	for dir := range dirs {
		take(filepath.Join(dir, "RESTORE_MANIFEST.json"), "")
		take(filepath.Join(dir, "RESTORE_REPORT.json"), "")
	}
	if diff := harness.Diff(before, rest); diff != "" {
		m.t.Errorf("not approved:\n%s", diff)
	}
}

// counted requires as many savepoints as commits.
func (m *model) counted(host, root int) {
	m.t.Helper()
	w := &fixture{Project: &harness.Project{Dir: m.w.Dir, State: m.hosts[host].state}, root: m.roots[root].path}
	if all := w.savepoints(m.t); len(all) != m.hosts[host].savepoints[root] {
		m.t.Errorf("%d savepoints, want %d", len(all), m.hosts[host].savepoints[root])
	}
}

// afterKill plays the first command after a kill: perhaps one with the other state directory,
// which does not know what was running, and then one that ends it: all of it is there, or
// nothing.
func (m *model) afterKill(root *rootModel) {
	k := root.pending
	n := slices.Index(m.roots[:], root)
	if m.r.IntN(3) == 0 {
		m.stranger(k, n)
	}
	if m.r.IntN(3) == 0 {
		r := m.run(k.host, nil, m.previewArgs(k.wanted.cand, n, nil)...)
		m.wants(r, "after a kill", 0, 1, 5)
		if r.Status != 0 { // it may have ended before the root was entered
			m.wants(m.run(k.host, nil, "recover", "--json", root.path), "after a kill", 0)
		}
	} else {
		m.wants(m.run(k.host, nil, "recover", "--json", root.path), "after a kill", 0)
	}
	root.pending = nil
	root.tree = m.take(n)
	if harness.Diff(k.before, root.tree) == "" {
		m.tally["killed: before"]++
		m.counted(k.host, n)
		return
	}
	m.tally["killed: after"]++
	m.hosts[k.host].attempts[n]++
	if k.items == nil {
		m.t.Errorf("a commit that must have been refused has changed the root:\n%s", harness.Diff(k.before, root.tree))
		return
	}
	m.approved(k.wanted, k.items, k.before, root.tree)
	m.hosts[k.host].savepoints[n]++
	m.counted(k.host, n)
}

// stranger looks at a root in which another state directory's commit was killed:
// it is rejected with 3, and ends nothing that is not its own.
func (m *model) stranger(k *killedCommit, root int) {
	before := m.take(root)
	r := m.run(1-k.host, nil, m.previewArgs(k.wanted.cand, root, nil)...)
	m.wants(r, "another state directory", 0, 1, 3, 5)
	if diff := harness.Diff(before, m.take(root)); diff != "" && r.Status == 3 {
		m.t.Errorf("%v:\n%s", r, diff)
	}
}
