package review

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/spectrumfs/spectrum/restore/preview/report"
	"github.com/spectrumfs/spectrum/restore/statement"
)

// key takes a key that was pressed.
func (m *Model) key(k tea.KeyPressMsg) tea.Cmd {
	m.message = ""
	m.again, m.asks = m.asks, ""
	waits := m.waits
	m.waits = false
	switch key := k.String(); {
	case key == "ctrl+c":
		m.interrupted = true
		return tea.Quit
	case key == "ctrl+z":
		return tea.Suspend
	case key == "ctrl+l":
		return tea.ClearScreen
	case waits && key == "q": // as it ends the pager that was not opened
	case m.ignores(k.Text):
	case m.asking:
		m.searchKey(key, k.Text)
	case m.cover == approval:
		return m.approvalKey(key, k.Text)
	case key == "q" && (m.cover == nothing || m.isSmall()):
		return m.leave()
	case m.isSmall(): // nothing is decided that is not seen
	case m.cover != nothing:
		m.coverKey(key)
	case key == "v" || key == "o":
		return m.page()
	case key == "R":
		return m.replaceDiverged()
	case !m.move(key) && !m.decide(key) && !m.show(key):
		m.message = fmt.Sprintf("key %s has no function here; press ? for help", shown(key))
	}
	return nil
}

// leave ends the review. Where something was chosen or decided it asks first, once.
func (m *Model) leave() tea.Cmd {
	if m.isUntouched() || m.again == "q" || m.isSmall() {
		return tea.Quit
	}
	m.asks, m.message = "q", "what was chosen and decided is lost: q leaves, any other key stays"
	return nil
}

// isUntouched reports whether nothing was chosen or decided.
func (m *Model) isUntouched() bool {
	before := make([]bool, len(m.in))
	for _, n := range m.config.Chosen {
		before[n] = true
	}
	return len(m.verdicts) == 0 && slices.Equal(m.in, before)
}

// ignores reports whether a key is ignored because it continues the word of an approval that is not
// asked for now: its letters are keys that choose and decide. Enter and Esc end the word.
func (m *Model) ignores(text string) bool {
	before, was := m.before, m.deaf
	m.before = text
	switch {
	case m.cover != nothing || m.asking || text == "":
		m.deaf = false
		return was && !m.asking && m.cover == nothing
	case strings.EqualFold(before+text, firstWord[:2]):
		m.deaf = true
	}
	if m.deaf {
		m.message = "letters are ignored until Esc or Enter"
	}
	return m.deaf
}

// coverKey takes a key while the help or the facts are shown.
func (m *Model) coverKey(key string) {
	switch key {
	case "up", "k":
		m.coverTop--
	case "down", "j":
		m.coverTop++
	case "pgup", "ctrl+b":
		m.coverTop -= m.coverHeight()
	case "pgdown", "ctrl+f", "space", " ":
		m.coverTop += m.coverHeight()
	default:
		m.cover = nothing
	}
}

// move takes a key that moves, and reports whether it is one.
func (m *Model) move(key string) bool {
	page := max(1, m.bodyHeight()-1)
	by, moves := map[string]int{
		"up": -1, "k": -1, "down": 1, "j": 1, "pgup": -page, "ctrl+b": -page, "pgdown": page, "ctrl+f": page,
		"home": -1 << 30, "g": -1 << 30, "end": 1 << 30, "G": 1 << 30,
	}[key]
	further, scrolls := map[string]int{"shift+up": -1, "K": -1, "shift+down": 1, "J": 1, "ctrl+u": -page / 2, "ctrl+d": page / 2}[key]
	switch {
	case scrolls:
		m.scroll += further
	case moves && m.detail:
		m.scroll += by
	case moves:
		m.goTo(m.at[m.list] + by)
	default:
		return m.turn(key)
	}
	return true
}

// goTo looks at another row.
func (m *Model) goTo(at int) {
	at = max(0, min(at, m.length()-1))
	if at != m.at[m.list] {
		m.at[m.list], m.scroll = at, 0
	}
}

// turn handles a key that folds, or changes sides.
func (m *Model) turn(key string) bool {
	at := m.at[files]
	isDir := m.list == files && at < len(m.tree.rows) && m.tree.rows[at].dir
	isOpen := isDir && m.tree.open[m.tree.rows[at].path]
	switch key {
	case "tab":
		m.detail = !m.detail
	case "esc":
		if !m.detail && m.list == conflicts {
			m.list, m.scroll = files, 0
		}
		m.detail = false
	case "enter", "right", "l":
		switch {
		case m.detail:
		case !isDir:
			m.detail = true
		case key == "enter" || !isOpen:
			m.tree.toggle(at)
		}
	case "left", "h":
		switch {
		case m.detail:
			m.detail = false
		case isOpen:
			m.tree.toggle(at)
		case m.list == files && len(m.tree.rows) > 0:
			m.goTo(m.tree.parent(at))
		}
	default:
		return false
	}
	return true
}

// show takes a key that changes what is shown.
func (m *Model) show(key string) bool {
	switch key {
	case "?":
		m.cover, m.coverTop = help, 0
	case "i":
		m.cover, m.coverTop = facts, 0
	case "c":
		if m.list, m.scroll, m.detail = 1-m.list, 0, false; m.length() == 0 {
			m.list, m.message = files, "there is no conflict"
		}
	case "f":
		m.nextFilter()
	case "/":
		m.asking, m.input, m.detail = true, "", false
	case "n":
		m.find(false)
	case "N":
		m.find(true)
	case "A":
		m.askApproval()
	default:
		return false
	}
	return true
}

// nextFilter lists other files. The file that is looked at stays so, if it is listed.
func (m *Model) nextFilter() {
	if m.list != files {
		m.list, m.scroll = files, 0
	}
	was := m.item()
	for {
		m.filter = (m.filter + 1) % filters
		m.tree.filter(m.passes)
		if len(m.tree.kept) > 0 || m.filter == allFiles {
			break
		}
	}
	m.at[files], m.top[files], m.scroll = 0, 0, 0
	if was != nil && m.passes(was) {
		m.at[files] = max(0, m.tree.reveal(was.Path))
	}
	m.message = map[filter]string{
		allFiles: "all files are listed", toWrite: "listed: files that are created, replaced or removed",
		inTheWay: "listed: files with a conflict", notApproved: "listed: files that the statement does not approve",
	}[m.filter]
}

// searchKey handles a key while a search text is typed.
func (m *Model) searchKey(key, text string) {
	switch key {
	case "enter", "ctrl+j":
		m.asking = false
		if m.input != "" {
			m.search = m.input
			m.find(false)
		}
	case "esc":
		m.asking = false
	case "backspace", "ctrl+h":
		m.input = shorter(m.input)
	case "ctrl+u":
		m.input = ""
	default:
		m.typed(text)
	}
}

// shorter is a text without its last character.
func shorter(s string) string {
	runes := []rune(s)
	return string(runes[:max(0, len(runes)-1)])
}

// maxTyped is how many bytes of a line are taken: a statement that is pasted may be long.
const maxTyped = statement.MaxLength

// typed handles text that was typed or pasted into a line.
func (m *Model) typed(text string) {
	if m.asking || m.cover == approval && m.drawn {
		if text != " " {
			text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' || r == '\t' }), " ")
		}
		if len(m.input)+len(text) <= maxTyped {
			m.input += text
		}
	}
}

// find moves to the next match of the search.
func (m *Model) find(back bool) {
	if m.search == "" {
		m.message = "no search yet; press / to search"
		return
	}
	m.detail = false
	if m.list == conflicts {
		m.findConflict(back)
		return
	}
	path := m.tree.find(m.at[files], back, func(i *report.Item) bool { return fits(m.search, i.Path, i.ID) })
	if path == "" {
		m.message = fmt.Sprintf("no listed file has %s in its name", shown(m.search))
		return
	}
	m.goTo(m.tree.reveal(path))
}

func (m *Model) findConflict(back bool) {
	n, step := len(m.over.Conflicts), 1
	if back {
		step = -1
	}
	for k := 1; k <= n; k++ {
		at := ((m.at[conflicts]+step*k)%n + n) % n
		if c := &m.over.Conflicts[at]; fits(m.search, c.ID, c.Type, c.Path) {
			m.goTo(at)
			return
		}
	}
	m.message = fmt.Sprintf("no conflict has %s in its name", shown(m.search))
}

// fits reports whether one of some texts holds a word, in upper or lower case unless the word
// has upper case.
func fits(word string, texts ...string) bool {
	for _, text := range texts {
		if strings.ToLower(word) == word {
			text = strings.ToLower(text)
		}
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// paged is the message that the pager has ended.
type paged struct{ err error }

// page shows the file that is looked at in the pager.
func (m *Model) page() tea.Cmd {
	i := m.item()
	switch {
	case i == nil && m.list == conflicts:
		m.message, m.waits = "this is a conflict; press c to go back to the files, and v to open one; press any key", true
		return nil
	case i == nil:
		m.message, m.waits = "this is a directory, and v opens a file in it; press any key", true
		return nil
	case i.Removal:
		m.message, m.waits = "the candidate removes this file, and has no content of it; press any key", true
		return nil
	}
	ctx, source, number := m.ctx, m.config.Source, i.Number
	return tea.Exec(&pager{run: func() error { return source.Page(ctx, number) }}, func(err error) tea.Msg { return paged{err} })
}
