package review

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/words"
	"github.com/spectrumfs/spectrum/restore/preview/report"
	"github.com/spectrumfs/spectrum/restore/statement"
)

// letters are how the list shows what becomes of a file.
var letters = map[report.Fate]line{
	report.Blocked: {red, "B"}, report.Conflicting: {red, "C"}, report.Diverged: {red, "U"}, report.Removed: {yellow, "D"},
	report.Replaced: {yellow, "M"}, report.Created: {green, "A"},
	report.Unchanged: {dim, "="}, report.LeftAside: {dim, "-"},
}

// drawListRow draws a row of the list.
func (m *Model) drawListRow(n, columns int) string {
	if n >= m.length() {
		if n == 0 {
			return m.draw(line{dim, "  nothing is listed"}, columns)
		}
		return strings.Repeat(" ", columns)
	}
	marked := n == m.at[m.list]
	if m.list == conflicts {
		return m.drawSpans(m.conflictRow(n, marked), columns, marked)
	}
	return m.drawSpans(m.fileRow(n, columns, marked), columns, marked)
}

func cursor(marked bool) line {
	if marked {
		return line{bold, ">"}
	}
	return line{plain, " "}
}

// fileRow is a file or a directory of the tree.
func (m *Model) fileRow(n, columns int, marked bool) []line {
	r := m.tree.rows[n]
	indent := strings.Repeat(" ", min(2*r.depth, columns/3))
	if r.dir {
		fold := "> "
		if m.tree.open[r.path] {
			fold = "v "
		}
		note := " (" + number(r.to-r.from) + ")"
		name := cutStart(shown(r.name), columns-6-len(indent)-2-len(note))
		return []line{cursor(marked), {plain, m.box(r)}, {plain, " " + indent + fold}, {bold, name}, {dim, note}}
	}
	i := m.tree.kept[r.from]
	note := ""
	if len(i.Conflicts) > 0 {
		note = " " + m.over.Conflicts[i.Conflicts[0]-1].ID
	}
	name := cutStart(shown(r.name), columns-6-len(indent)-2-len(note))
	letter := letters[i.Fate]
	return []line{cursor(marked), {plain, m.box(r)}, {plain, " " + indent}, letter, {plain, " " + name}, {yellow, note}}
}

// box shows whether what is in a row is approved.
func (m *Model) box(r row) string {
	free, in := 0, 0
	for _, i := range m.tree.kept[r.from:r.to] {
		if i.Free {
			free++
		}
		if m.approved[i.Number] {
			in++
		}
	}
	switch {
	case in > 0 && in == r.to-r.from:
		return "[x]"
	case in > 0:
		return "[-]"
	case free > 0:
		return "[ ]"
	}
	return "   "
}

// verdictWords are the verdicts as a list shows them.
var verdictWords = map[statement.Verdict]line{
	"": {dim, "  --  "}, statement.Acknowledged: {green, " ackn "}, statement.Rejected: {red, " rej. "}, statement.Resolved: {green, " res. "},
}

func (m *Model) conflictRow(n int, marked bool) []line {
	c := &m.over.Conflicts[n]
	word := verdictWords[m.decided(c)]
	switch {
	case m.isOpen(c):
		word = line{yellow, " OPEN "}
	case m.isTaken(c):
		word = line{dim, " ackn "}
	}
	return []line{cursor(marked), word, {plain, c.ID + " "}, {plain, strings.TrimSuffix(c.Type, "_conflict")}, {dim, " " + shown(c.Path)}}
}

// isTaken reports whether the statement acknowledges a conflict without its number.
func (m *Model) isTaken(c *report.Conflict) bool {
	return m.decided(c) == "" && slices.Contains(m.draft.Taken, c.Number)
}

// isOpen reports whether a conflict has to be decided for what is chosen.
func (m *Model) isOpen(c *report.Conflict) bool {
	for _, n := range m.draft.Open {
		if n == c.Number {
			return true
		}
		if n > c.Number { // they ascend
			return false
		}
	}
	return false
}

// detailLength is how many rows the right side has.
func (m *Model) detailLength() int {
	head, rows := m.details()
	return len(head) + len(rows)
}

// drawDetailRow draws a row of the right side.
func (m *Model) drawDetailRow(n, columns int) string {
	head, rows := m.details()
	switch {
	case n < len(head):
		return m.draw(head[n], columns)
	case n < len(head)+len(rows):
		return m.draw(rows[n-len(head)], columns)
	}
	return strings.Repeat(" ", columns)
}

// details are the rows about what is looked at, and those of its difference.
func (m *Model) details() (head, rows []line) {
	columns := m.detailColumns()
	if c := m.conflict(); c != nil {
		return m.aboutConflict(c, columns), nil
	}
	i := m.item()
	switch {
	case i == nil && len(m.tree.rows) > 0:
		return m.aboutDir(m.tree.rows[m.at[files]], columns), nil
	case i == nil:
		return nil, nil
	}
	head = append(m.aboutItem(i, columns), line{})
	c := m.changes.of[i.Number]
	switch {
	case i.Restricted:
		head = append(head, wrapped(dim, "its content is not shown here: it may hold a secret; v opens it in the pager", columns)...)
	case c == nil || !c.read:
		head = append(head, line{dim, "reading …"})
	case c.err != nil:
		head = append(head, wrapped(red, escaped(c.err.Error()), columns)...)
	default:
		return head, c.laidOut(columns)
	}
	return head, nil
}

// aboutItem is what is known of a file.
func (m *Model) aboutItem(i *report.Item, columns int) []line {
	lines := wrapped(bold, quoted(i.Path), columns)
	state := "not approved"
	if m.approved[i.Number] {
		state = "approved by the statement"
	}
	size := bytesText(i.Bytes)
	mode := "mode " + i.Mode
	if b := i.Before; b != nil {
		size = bytesText(b.Bytes) + " to " + size
		if i.Removal {
			size, mode = bytesText(b.Bytes), "mode "+b.Mode
		} else if b.Mode != i.Mode {
			mode = "mode " + b.Mode + " to " + i.Mode
		}
	}
	lines = append(lines, wrapped(letters[i.Fate].style, fmt.Sprintf("%s %s, %s, %s, %s; %s", i.ID, i.Fate, size, mode, i.Scope, state), columns)...)
	if i.Reason != "" {
		lines = append(lines, wrapped(dim, escaped(i.Reason), columns)...)
	}
	if i.Opens {
		lines = append(lines, wrapped(yellow, "gives other users more access than the existing file", columns)...)
	}
	if i.Writable {
		lines = append(lines, wrapped(yellow, "every user can write it", columns)...)
	}
	if i.Runs != "" {
		lines = append(lines, wrapped(yellow, "can run by itself: "+escaped(i.Runs), columns)...)
	}
	for _, n := range i.Conflicts {
		c := &m.over.Conflicts[n-1]
		lines = append(lines, wrapped(yellow, fmt.Sprintf("%s %s, %s: %s; %s", c.ID, c.Type, m.decisionText(c), escaped(c.Current), escaped(c.Risk)), columns)...)
		lines = append(lines, wrapped(plain, "to resolve it: "+escaped(c.Resolution), columns)...)
	}
	return lines
}

func (m *Model) decisionText(c *report.Conflict) string {
	switch v := m.decided(c); {
	case v != "":
		return string(v)
	case m.isOpen(c):
		return "to decide"
	case m.isTaken(c):
		return "acknowledged by the statement"
	}
	return "nothing that is approved touches it"
}

// aboutDir counts what is in a directory.
func (m *Model) aboutDir(r row, columns int) []line {
	count := map[report.Fate]int{}
	var bytes int64
	in := 0
	for _, i := range m.tree.kept[r.from:r.to] {
		count[i.Fate]++
		bytes += i.Bytes
		if m.approved[i.Number] {
			in++
		}
	}
	lines := wrapped(bold, quoted(r.path), columns)
	lines = append(lines, wrapped(plain, fmt.Sprintf("%s, %s; %s approved by the statement", counted(r.to-r.from, "file"), bytesText(bytes), number(in)), columns)...)
	for f := report.Blocked; f <= report.LeftAside; f++ {
		if count[f] > 0 {
			lines = append(lines, line{letters[f].style, fmt.Sprintf("%s %s: %s", letters[f].text, f, number(count[f]))})
		}
	}
	return append(lines, line{}, line{dim, "Enter unfolds or folds it"})
}

// aboutConflict is an entry of the register.
func (m *Model) aboutConflict(c *report.Conflict, columns int) []line {
	lines := wrapped(bold, c.ID+" "+c.Type+": "+m.decisionText(c), columns)
	lines = append(lines, wrapped(plain, "about "+quoted(c.Path), columns)...)
	for _, part := range [][2]string{
		{"recommended", c.Resolution}, {"now", c.Current}, {"the candidate", c.Claim}, {"authority", c.Authority}, {"risk", c.Risk},
	} {
		lines = append(append(lines, line{}), wrapped(plain, part[0]+": "+escaped(part[1]), columns)...)
	}
	of := "the whole candidate"
	if len(c.Items) > 0 {
		of = statement.FormatItems(c.Items)
	}
	lines = append(append(lines, line{}), wrapped(plain, "of: "+of, columns)...)
	keys := "a acknowledge, r reject (leaves its files out), s resolved, u undecided"
	if c.OnlyAcknowledge {
		keys = "a acknowledge, u undecided"
	} else if len(c.Items) == 0 {
		keys = "a acknowledge, s resolved, u undecided"
	}
	return append(append(lines, line{}), wrapped(dim, keys, columns)...)
}

func bytesText(n int64) string { return words.Bytes(n) }
