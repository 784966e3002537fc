package review

import (
	"errors"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spectrumfs/spectrum/internal/visible"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/statement"
)

// firstWord is what the operator types: the rest of the statement was composed in sight.
const firstWord = "Approved"

// maxSlips is how many lines one question takes.
const maxSlips = 3

// readFirst is the message on a word that was typed before the whole question was on the screen.
const readFirst = "first read this to its end: PgDn"

// askApproval shows the whole statement, and asks for its first word.
func (m *Model) askApproval() {
	switch why := m.draft.Why; {
	case m.over.Held:
		m.message = "the candidate is in quarantine: it cannot be approved until a person has released it; q leaves, and names the \"spectrum quarantine release\" that does"
	case errors.Is(why, preview.ErrUndecided):
		m.message = "first decide " + m.openText() + ": c lists the conflicts"
	case why != nil:
		m.message = escaped(why.Error())
	default:
		m.cover = approval
		m.unread()
	}
}

// approvalKey handles a key while the first word is asked for.
func (m *Model) approvalKey(key, text string) tea.Cmd {
	switch key {
	case "esc":
		m.cover = nothing
	case "up":
		m.coverTop--
	case "down":
		m.coverTop++
	case "pgup":
		m.coverTop -= m.coverHeight()
	case "pgdown":
		m.coverTop += m.coverHeight()
	case "backspace", "ctrl+h":
		m.input = shorter(m.input)
	case "ctrl+u":
		m.input = ""
	default:
		if m.input == "" && text == "q" { // no statement begins with it
			return m.leave()
		}
		if key == "enter" || key == "ctrl+j" { // as it was typed before the terminal was raw
			return m.answer()
		}
		if text != "" && !m.seen {
			m.message = readFirst
		}
		m.typed(text)
	}
	return nil
}

// answer handles a typed line. Only the first word of the visible statement, or all of it,
// approves. Another line is explained; the third one is returned as it is, as at the prompt of a
// commit.
func (m *Model) answer() tea.Cmd {
	if m.isSmall() || !m.seen {
		m.message = readFirst
		return nil
	}
	if !m.drawn {
		return nil
	}
	typed := strings.Trim(m.input, " ")
	switch strings.ToLower(strings.TrimRight(typed, ".! ")) {
	case "", "n", "no", "reject", "rejected", ":q", "quit", "exit", "fg", "bg":
		m.cover, m.message = nothing, "not approved"
		return nil
	}
	whole := m.draft.Statement
	text := typed + strings.TrimPrefix(whole, firstWord)
	if typed == whole {
		text = whole
	}
	if text == whole {
		m.given = whole
		return tea.Quit
	}
	m.input = ""
	if strings.HasSuffix(firstWord, typed) { // its beginning was typed before the question
		m.message = "type the whole word here: " + firstWord
		return nil
	}
	if _, err := statement.Parse(typed); err == nil {
		m.message = "this differs from the statement above; press Esc to go back and choose or decide"
		return nil
	}
	if isForm := func(of string) bool { return strings.EqualFold(formless(typed), formless(of)) }; isForm(firstWord) || isForm(whole) {
		m.message = fmt.Sprintf("not quite: type exactly %q, with the same case, without spaces or a full stop", firstWord)
		return nil
	}
	m.slips++
	if _, err := statement.Parse(text); err == nil || m.slips < maxSlips {
		m.message = fmt.Sprintf("%q is not %q", visible.Escape(cut(typed, 20)), firstWord)
		if m.slips >= maxSlips-1 {
			m.message = "one more and the candidate is put in quarantine: " + m.message
		}
		return nil
	}
	m.given = typed
	return tea.Quit
}

// formless is a text without what is easily mistyped: white space, and a colon or full stop at its end.
func formless(text string) string {
	return strings.TrimRight(strings.Join(strings.Fields(text), ""), ".:")
}

// unread begins the question of the approval anew: nothing of it was read.
func (m *Model) unread() {
	m.coverTop, m.seenTo, m.seen, m.drawn, m.input = 0, 0, false, false, ""
}

// drawn is the message that some time has passed since the question was waited for the n-th time.
type drawn int

// drawTime is more than it takes until a screen is drawn: it is every 60th of a second. The reader
// of the terminal holds an incomplete escape sequence back for half of it, so that nothing may
// arrive in quietTimes in a row.
var drawTime = 100 * time.Millisecond

const quietTimes = 4

// awaitDrawn waits until the screen was drawn and the terminal has sent nothing for a while: no
// key, no report, no bytes that wait to be read. Earlier input was typed, or pasted, before the
// question was visible, and is not an answer to it.
func (m *Model) awaitDrawn() tea.Cmd {
	m.asked++
	m.quiet = 0
	return m.awaitQuiet()
}

// awaitQuiet waits for the next drawn.
func (m *Model) awaitQuiet() tea.Cmd {
	n := drawn(m.asked)
	return tea.Tick(drawTime, func(time.Time) tea.Msg { return n })
}

// wasQuiet takes a drawn. Only the last one of a row without input makes the question drawn.
func (m *Model) wasQuiet(n drawn) tea.Cmd {
	switch {
	case m.drawn || !m.seen || int(n) != m.asked:
		return nil
	case m.config.Pending != nil && m.config.Pending():
		return m.awaitDrawn()
	}
	if m.quiet++; m.quiet < quietTimes {
		return m.awaitQuiet()
	}
	m.drawn = true
	return nil
}

// read notes what of the question was on the screen: all of what is approved, and where, has to
// be, from the first line on.
func (m *Model) read(last int) {
	if m.coverTop <= m.seenTo {
		m.seenTo = max(m.seenTo, m.coverTop+m.coverHeight())
	}
	m.seen = m.seenTo > last
}

// openText names the conflicts that have to be decided.
func (m *Model) openText() string {
	return statement.FormatConflicts(m.draft.Open)
}
