package review

import (
	"context"

	tea "charm.land/bubbletea/v2"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/preview/report"
	"github.com/spectrumfs/spectrum/restore/statement"
)

// list is what the left side lists.
type list int

const (
	files list = iota
	conflicts
)

// over is what covers the panes.
type over int

const (
	nothing over = iota
	help
	facts
	approval
)

// Model is the state of a review. Only messages change it, and it is independent of the terminal.
type Model struct {
	ctx    context.Context //nolint:containedctx // of the review as a whole: bubbletea has no other way to pass it to what a key begins
	config Config
	over   report.Overview

	width, height int
	tree          *tree
	list          list
	at, top       [2]int // of each list: the row that is looked at, and the first that is shown
	detail        bool   // the keys are for the right side; on a narrow screen it is what is shown
	scroll        int    // of the right side
	cover         over
	coverTop      int // the first line of it that is shown
	laid          laidCover

	filter  filter
	asking  bool   // for what to search
	input   string // what was typed so far
	search  string // for what was searched last
	message string // for the last line, until the next key
	before  string // the character that was typed last
	deaf    bool   // letters are ignored

	in       []bool // items that are chosen, by number
	verdicts map[int]statement.Verdict
	draft    preview.Draft
	approved []bool // items that the draft approves, by number

	seen   bool // all that an approval approves was on the screen
	seenTo int  // how many lines of that were, from the first one on
	asked  int  // how often it was waited until the question is drawn
	quiet  int  // how often nothing has arrived since
	drawn  bool // the question is on the screen of the terminal, to its end: what is typed now answers it
	slips  int  // lines that were no statement

	waits bool   // the last line says why no pager was opened
	asks  string // the key that the last line asks for once more, since choices would be lost
	again string // what it was before this key

	changes     changes
	given       string
	replace     string // ID of the diverged item to replace in a new preview
	interrupted bool
}

// New returns the model of a review that begins.
func New(ctx context.Context, c Config) *Model {
	m := &Model{ctx: ctx, config: c, over: c.Overview, in: make([]bool, len(c.Overview.Items)+1), verdicts: map[int]statement.Verdict{}, changes: changes{of: map[int]*change{}}}
	for _, n := range c.Chosen {
		m.in[n] = true
	}
	m.tree = newTree(m.over.Items)
	m.at[files] = m.tree.first()
	m.compose()
	return m
}

// Init does nothing: the size of the terminal arrives first.
func (m *Model) Init() tea.Cmd { return nil }

// Update takes a message.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		if m.cover == approval {
			m.unread() // the lines are others now
			if m.message == readFirst {
				m.message = ""
			}
		}
	case tea.KeyPressMsg:
		if cmd := m.key(msg); cmd != nil {
			return m, cmd
		}
	case tea.PasteMsg:
		if m.cover == approval {
			m.message = "a pasted text approves nothing: type " + firstWord
		} else {
			m.typed(msg.Content)
		}
	case drawn:
		if cmd := m.wasQuiet(msg); cmd != nil {
			return m, cmd
		}
	case changed:
		m.changes.arrived(msg)
	case paged:
		if msg.err != nil {
			m.message = escaped(msg.err.Error())
		}
		return m, tea.ClearScreen // whatever the pager has left
	}
	wasSeen := m.seen
	m.keepInSight()
	if m.cover == approval && m.seen && !m.drawn && (isInput(msg) || !wasSeen) {
		return m, m.awaitDrawn()
	}
	return m, m.look()
}

// isInput reports whether a message is of the terminal, whatever it says, and not of this package.
func isInput(msg tea.Msg) bool {
	switch msg.(type) {
	case drawn, changed, paged:
		return false
	}
	return true
}

// compose composes the statement for the current choice.
func (m *Model) compose() {
	choice := preview.Choice{Decisions: m.verdicts}
	for n := range m.over.Items {
		if number := m.over.Items[n].Number; m.in[number] {
			choice.Items = append(choice.Items, number)
		}
	}
	m.draft = m.config.Source.Draft(choice)
	m.approved = make([]bool, len(m.in))
	for _, n := range m.draft.Items {
		m.approved[n] = true
	}
	m.laid = laidCover{}
	m.unread()
}

// item is the file that is looked at; nil for none.
func (m *Model) item() *report.Item {
	if m.list != files {
		return nil
	}
	return m.tree.item(m.at[files])
}

// conflict is the conflict that is looked at; nil for none.
func (m *Model) conflict() *report.Conflict {
	if m.list != conflicts || m.at[conflicts] >= len(m.over.Conflicts) {
		return nil
	}
	return &m.over.Conflicts[m.at[conflicts]]
}

// length is how many rows the list has.
func (m *Model) length() int {
	if m.list == conflicts {
		return len(m.over.Conflicts)
	}
	return len(m.tree.rows)
}

// decided is the verdict on a conflict, of the preview or of the choice; "" for none.
func (m *Model) decided(c *report.Conflict) statement.Verdict {
	if c.Decided != "" {
		return c.Decided
	}
	return m.verdicts[c.Number]
}

// filter is which files are listed.
type filter int

const (
	allFiles filter = iota
	toWrite
	inTheWay
	notApproved
	filters
)

// filterNames are what the filters list.
var filterNames = [filters]string{"files", "written", "in conflict", "not approved"}

func (m *Model) passes(i *report.Item) bool {
	switch m.filter {
	case toWrite:
		return i.Fate == report.Removed || i.Fate == report.Replaced || i.Fate == report.Created
	case inTheWay:
		return len(i.Conflicts) > 0 || i.Fate <= report.Diverged
	case notApproved:
		return !m.approved[i.Number]
	}
	return true
}
