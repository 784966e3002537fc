package review

import (
	"bytes"
	"context"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// maxChanges is how many differences are kept.
const maxChanges = 32

// changes are the differences that were read.
type changes struct {
	of    map[int]*change // by number of the item
	order []int           // in which they were read
}

// change is the difference of one item.
type change struct {
	number int
	read   bool // else it is being read
	lines  []line
	err    error

	columns int // for which rows were laid out
	rows    []line
}

// changed is the message that a difference was read.
type changed struct{ *change }

// look reads the difference of the file that is looked at, if that was not done.
func (m *Model) look() tea.Cmd {
	i := m.item()
	if i == nil || i.Restricted || m.changes.of[i.Number] != nil {
		return nil
	}
	if len(m.changes.order) == maxChanges {
		delete(m.changes.of, m.changes.order[0])
		m.changes.order = m.changes.order[1:]
	}
	m.changes.of[i.Number] = &change{number: i.Number}
	m.changes.order = append(m.changes.order, i.Number)
	ctx, source, number := m.ctx, m.config.Source, i.Number
	return func() tea.Msg { return changed{readChange(ctx, source, number)} }
}

func readChange(ctx context.Context, s Source, number int) *change {
	patch, why, err := s.Changes(ctx, number)
	c := &change{number: number, read: true, err: err}
	switch {
	case why != "" && len(patch) > 0:
		c.lines = append(c.lines, line{yellow, "warning: " + escaped(why)})
	case why != "":
		c.lines = append(c.lines, line{dim, "no lines are shown: " + escaped(why)})
	}
	c.lines = append(c.lines, patchLines(patch)...)
	return c
}

func (c *changes) arrived(msg changed) {
	if c.of[msg.number] != nil {
		c.of[msg.number] = msg.change
	}
}

// patchLines are the lines of a patch without the names, which are shown above it.
func patchLines(patch []byte) (lines []line) {
	inHunks := false
	for raw := range bytes.Lines(patch) {
		text := strings.TrimSuffix(string(raw), "\n")
		inHunks = inHunks || strings.HasPrefix(text, "@@")
		switch {
		case !inHunks && (strings.HasPrefix(text, "diff --git ") || strings.HasPrefix(text, "--- ") || strings.HasPrefix(text, "+++ ")):
		case !inHunks:
			lines = append(lines, line{dim, escaped(text)})
		default:
			lines = append(lines, patchLine(text))
		}
	}
	return lines
}

// patchLine is a line of a hunk. Its first character is its kind, and tabs count from there.
func patchLine(text string) line {
	if text == "" || !strings.Contains(" +-@\\", text[:1]) { // which no patch has
		return line{dim, " " + content(text)}
	}
	style := map[byte]string{'+': green, '-': red, '@': cyan, '\\': dim}[text[0]]
	return line{style, text[:1] + content(text[1:])}
}

// laidOut returns the rows of a difference for a number of columns. A continued line begins with a
// dot, which no line of a patch does.
func (c *change) laidOut(columns int) []line {
	if c.columns == columns {
		return c.rows
	}
	c.columns, c.rows = columns, nil
	for _, l := range c.lines {
		if width(l.text) <= columns {
			c.rows = append(c.rows, l)
			continue
		}
		for n, part := range broken(l.text[1:], columns-1) {
			begin := "·"
			if n == 0 {
				begin = l.text[:1]
			}
			c.rows = append(c.rows, line{l.style, begin + part})
		}
	}
	return c.rows
}
