package review

import (
	"fmt"
	"slices"

	tea "charm.land/bubbletea/v2"
	"github.com/spectrumfs/spectrum/restore/preview/report"
	"github.com/spectrumfs/spectrum/restore/statement"
)

// verdictKeys are the keys that decide a conflict.
var verdictKeys = map[string]statement.Verdict{"a": statement.Acknowledged, "r": statement.Rejected, "s": statement.Resolved, "u": ""}

// decide takes a key that changes the choice, and reports whether it is one.
func (m *Model) decide(key string) bool {
	verdict, decides := verdictKeys[key]
	switch {
	case decides:
		m.decideOne(verdict)
	case key == "E":
		m.acknowledgeAll()
	case key == "space" || key == " " || key == "x":
		m.choose()
	default:
		return false
	}
	return true
}

// decideOne decides the conflict that is looked at, or that of the file that is looked at.
func (m *Model) decideOne(v statement.Verdict) {
	c := m.subject()
	switch {
	case c == nil:
		return
	case c.Decided != "":
		m.message = fmt.Sprintf("%s was decided with the preview: %s", c.ID, c.Decided)
		return
	case v == "":
		delete(m.verdicts, c.Number)
	case c.OnlyAcknowledge && v != statement.Acknowledged:
		m.message = c.ID + " can only be acknowledged, or avoided with another restore root"
		return
	case v == statement.Rejected && len(c.Items) == 0:
		m.message = c.ID + " concerns the whole candidate; to reject it, leave with q"
		return
	default:
		m.verdicts[c.Number] = v
	}
	m.compose()
	if v == "" {
		v = "not decided"
	}
	m.message = fmt.Sprintf("%s: %s", c.ID, v)
	if m.verdicts[c.Number] != "" && m.divergedOf(c) != nil { // no statement restores it
		m.message += ", and left out; R makes a preview that replaces it"
	}
}

// subject is the conflict that is selected, or that of the file that is selected. Where there is
// none, or several, the last line says so, and it is nil.
func (m *Model) subject() *report.Conflict {
	c, i := m.conflict(), m.item()
	switch {
	case c != nil:
		return c
	case i != nil && len(i.Conflicts) == 1:
		return &m.over.Conflicts[i.Conflicts[0]-1]
	case i != nil && len(i.Conflicts) > 1:
		m.message = fmt.Sprintf("%s has %s; press c to list them", i.ID, counted(len(i.Conflicts), "conflict"))
	default:
		m.message = "no conflict is selected; press c to list them"
	}
	return nil
}

// divergedOf is the item that has diverged and that a conflict is about; nil for none.
func (m *Model) divergedOf(c *report.Conflict) *report.Item {
	n := slices.IndexFunc(m.over.Items, func(i report.Item) bool { return i.Fate == report.Diverged && slices.Contains(c.Items, i.Number) })
	if n < 0 {
		return nil
	}
	return &m.over.Items[n]
}

// replaceDiverged ends this review, to go on in a new preview that replaces the selected file
// although it has diverged. Where something was chosen or decided it asks first, once.
func (m *Model) replaceDiverged() tea.Cmd {
	c := m.subject()
	if c == nil {
		return nil
	}
	i := m.divergedOf(c)
	switch {
	case i == nil:
		m.message = c.ID + " is not about a file that has diverged, so it has nothing to replace"
	case m.again != "R" && !m.isUntouched():
		m.asks, m.message = "R", "what was chosen and decided is lost: R makes the new preview, any other key stays"
	default:
		m.replace = i.ID
		return tea.Quit
	}
	return nil
}

// acknowledgeAll acknowledges what still has to be decided, once the operator looks at the list.
func (m *Model) acknowledgeAll() {
	if m.list != conflicts {
		m.message = "E acknowledges every open conflict in their list: c shows it"
		return
	}
	n := len(m.draft.Open)
	for _, open := range m.draft.Open {
		m.verdicts[open] = statement.Acknowledged
	}
	m.compose()
	m.message = counted(n, "conflict") + " acknowledged"
}

// choose chooses the file that is looked at, or all beneath the directory, or leaves them out.
func (m *Model) choose() {
	if m.list != files || len(m.tree.rows) == 0 {
		m.message = "no file is selected"
		return
	}
	r := m.tree.rows[m.at[files]]
	var can []*report.Item
	any := false
	for _, i := range m.tree.kept[r.from:r.to] {
		if !i.Free || r.dir && i.Restricted { // what may hold secrets is chosen one by one
			continue
		}
		can = append(can, i)
		any = any || !m.in[i.Number]
	}
	if len(can) == 0 {
		m.message = m.whyNot(r)
		return
	}
	for _, i := range can {
		m.in[i.Number] = any
	}
	taken := m.draft.Taken
	m.compose()
	switch {
	case r.dir || !any || m.approved[can[0].Number]:
	case m.draft.Statement == "" && m.draft.Why != nil:
		m.message = fmt.Sprintf("%s stays excluded: %v", can[0].ID, m.draft.Why)
	default:
		m.message = can[0].ID + " stays excluded: its conflict was rejected"
	}
	opened := func(n int) bool { return slices.Contains(m.draft.Open, n) }
	if again := slices.DeleteFunc(slices.Clone(taken), func(n int) bool { return !opened(n) }); len(again) > 0 {
		m.message = "a statement of a part has to acknowledge " + statement.FormatConflicts(again) + " by number: c, then a"
	}
}

// whyNot returns why a row cannot be chosen.
func (m *Model) whyNot(r row) string {
	if r.dir {
		return "it has no item that can be chosen"
	}
	switch i := m.tree.kept[r.from]; i.Fate {
	case report.Diverged:
		return i.ID + " is not what the change set started from; R replaces it all the same"
	case report.LeftAside:
		return i.ID + " is not proposed; the preview says why"
	case report.Unchanged:
		return i.ID + " is already identical; a preview with --replace keeps it"
	default:
		return i.ID + " is blocked and cannot be chosen"
	}
}
