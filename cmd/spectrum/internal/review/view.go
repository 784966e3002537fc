package review

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// The sizes of a screen.
const (
	minColumns  = 40
	minLines    = 12
	wideColumns = 80 // from here on both sides are shown
	tallLines   = 18 // from here on there is room for more than the list
)

func (m *Model) isSmall() bool { return m.width < minColumns || m.height < minLines }
func (m *Model) isWide() bool  { return m.width >= wideColumns }
func (m *Model) isTall() bool  { return m.height >= tallLines }

// View draws the screen: exactly as many lines as it has, none longer than it is wide.
func (m *Model) View() tea.View {
	var rows []string
	v := tea.View{AltScreen: true}
	switch {
	case m.width == 0:
	case m.isSmall():
		rows = wrap(fmt.Sprintf("At least %dx%d is needed. q leaves.", minColumns, minLines), m.width)
		rows = rows[:min(len(rows), m.height)]
	case m.cover != nothing:
		rows = m.drawCover()
	default:
		rows = append(rows, m.drawAll(m.head(), m.width)...)
		rows = append(rows, m.drawBody()...)
		rows = append(rows, m.drawAll(m.foot(), m.width)...)
	}
	if m.asking || m.cover == approval && !m.isSmall() {
		last := rows[len(rows)-1]
		v.Cursor = tea.NewCursor(min(m.width-1, width(strings.TrimRight(last, " "))+1), len(rows)-1)
	}
	v.Content = strings.Join(rows, "\n")
	return v
}

// draw is a line of exactly so many columns.
func (m *Model) draw(l line, columns int) string { return m.styled(l.style, fill(l.text, columns)) }

func (m *Model) drawAll(lines []line, columns int) (rows []string) {
	for _, l := range lines {
		rows = append(rows, m.draw(l, columns))
	}
	return rows
}

// styled is a text in a style. Without colors only those are left that are none.
func (m *Model) styled(style, text string) string {
	if style == plain || !m.config.Color && strings.HasPrefix(style, "3") {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[m"
}

// drawSpans draws pieces of a line in their styles, in exactly so many columns.
func (m *Model) drawSpans(spans []line, columns int, marked bool) string {
	var b strings.Builder
	for _, s := range spans {
		text := cut(s.text, columns)
		columns -= width(text)
		if marked {
			s.style = plain
		}
		b.WriteString(m.styled(s.style, text))
	}
	b.WriteString(strings.Repeat(" ", max(0, columns)))
	if marked {
		return m.styled(reverse, b.String())
	}
	return b.String()
}

// bodyHeight is how many rows the list has.
func (m *Model) bodyHeight() int {
	height := m.height - len(m.head()) - len(m.foot())
	if m.isTall() {
		height-- // the titles
	}
	return max(1, height)
}

// listColumns is how wide the left side is.
func (m *Model) listColumns() int {
	if !m.isWide() {
		return m.width
	}
	return min(max(32, m.width*2/5), 72)
}

// detailColumns is how wide the right side is.
func (m *Model) detailColumns() int {
	if !m.isWide() {
		return m.width
	}
	return m.width - m.listColumns() - 3
}

// drawBody draws the list, and beside it, or in its place, what is looked at.
func (m *Model) drawBody() (rows []string) {
	height := m.bodyHeight()
	left, right := m.listColumns(), m.detailColumns()
	if m.isTall() {
		rows = append(rows, m.drawTitles(left, right))
	}
	for n := range height {
		switch {
		case m.isWide():
			rows = append(rows, m.drawListRow(m.top[m.list]+n, left)+m.styled(dim, " │ ")+m.drawDetailRow(m.scroll+n, right))
		case m.detail:
			rows = append(rows, m.drawDetailRow(m.scroll+n, right))
		default:
			rows = append(rows, m.drawListRow(m.top[m.list]+n, left))
		}
	}
	return rows
}

// drawTitles draws what the sides show, above them.
func (m *Model) drawTitles(left, right int) string {
	list := filterNames[m.filter]
	if m.list == conflicts {
		list = "conflicts"
	}
	list = fmt.Sprintf("─ %s, %s of %s ", list, number(min(m.at[m.list]+1, m.length())), number(m.length()))
	detail := "─ " + m.detailTitle()
	if rows, height := m.detailLength(), m.bodyHeight(); rows > height {
		detail = fmt.Sprintf("─ %slines %s to %s of %s ", m.detailTitle(), number(m.scroll+1), number(min(rows, m.scroll+height)), number(rows))
	}
	bar := func(title string, columns int, here bool) string {
		title = cut(title, columns)
		style := dim
		if here {
			style = bold
		}
		return m.styled(style, title+strings.Repeat("─", max(0, columns-width(title))))
	}
	switch {
	case m.isWide():
		return bar(list, left, !m.detail) + m.styled(dim, "─┬─") + bar(detail, right, m.detail)
	case m.detail:
		return bar(detail, right, true)
	}
	return bar(list, left, true)
}

// detailTitle names what is looked at.
func (m *Model) detailTitle() string {
	if c := m.conflict(); c != nil {
		return c.ID + " "
	}
	if i := m.item(); i != nil {
		return i.ID + " "
	}
	return ""
}

// keepInSight keeps the row that is looked at on the screen, and each side within its lines.
func (m *Model) keepInSight() {
	if m.isSmall() {
		return
	}
	height, at, top := m.bodyHeight(), &m.at[m.list], &m.top[m.list]
	*at = max(0, min(*at, m.length()-1))
	*top = max(0, min(*top, *at, m.length()-height), *at-height+1)
	m.scroll = max(0, min(m.scroll, m.detailLength()-height))
	if m.cover == nothing {
		return
	}
	lines, last := m.coverLines()
	m.coverTop = max(0, min(m.coverTop, len(lines)-m.coverHeight()))
	if m.cover == approval {
		m.read(last)
	}
}
