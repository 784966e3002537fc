package review

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/words"
	"github.com/spectrumfs/spectrum/restore/preview/report"
	"github.com/spectrumfs/spectrum/restore/statement"
)

// keysHelp is the help on the keys.
var keysHelp = [...][2]string{
	{"up, down, j, k", "go to the next row; PgUp, PgDn, Home, End further"},
	{"Enter, right, l", "unfold a directory, or go to what changes in a file"},
	{"left, h, Esc", "fold it, or go back to the list"},
	{"Tab", "go from the list to the changes, and back"},
	{"J, K", "scroll the changes from the list"},
	{"space, x", "leave a file or a directory out, or choose it again"},
	{"c", "list the conflicts, or the files again"},
	{"a, r, s, u", "acknowledge, reject, resolve a conflict, or undo that"},
	{"R", "replace a file that has diverged: makes a new preview"},
	{"E", "in the list of conflicts: acknowledge every open one"},
	{"f", "list other files: written, with a conflict, not approved"},
	{"/, n, N", "search in the names and ids; next, previous"},
	{"v, o", "open the file in your pager (SPECTRUM_PAGER, PAGER)"},
	{"i", "everything the preview proposes"},
	{"A", "see the whole statement, and approve it in your own word"},
	{"Ctrl-L, Ctrl-Z", "draw the screen again; suspend the program"},
	{"q, Ctrl-C", "leave: nothing is written, and the preview is kept"},
}

// laidCover is what covers the panes, laid out.
type laidCover struct {
	over    over
	columns int
	lines   []line
	last    int // line that has to be read before an approval
}

// coverLines are the lines of what covers the panes, and which of them is the last one that has to
// be read before an approval.
func (m *Model) coverLines() (lines []line, last int) {
	if m.laid.over != m.cover || m.laid.columns != m.width {
		lines, last := m.layOutCover()
		m.laid = laidCover{m.cover, m.width, lines, last}
	}
	return m.laid.lines, m.laid.last
}

func (m *Model) layOutCover() (lines []line, last int) {
	switch m.cover {
	case help:
		return m.helpLines(), 0
	case facts:
		return m.factLines(), 0
	}
	lines = wrapped(bold, "Preview "+m.over.ID[:8]+", of "+m.over.Source, m.width)
	if m.over.Title != "" { // on one line, so that no line begins with a part of it
		lines = append(lines, line{plain, "title: " + cut(m.over.Title, m.width-len("title: "))})
	}
	lines = append(lines, wrapped(bold, "in "+m.over.Root, m.width)...)
	lines = append(lines, wrapped(plain, "signed by "+strings.Join(m.over.Signers, ", ")+"; "+m.standingText(), m.width)...)
	for _, w := range m.warnings() {
		lines = append(lines, wrapped(w.style, w.text, m.width)...)
	}
	lines = append(lines, m.runningLines()...)
	lines = append(lines, line{}, line{dim, "The whole statement:"})
	lines = append(lines, wrapped(bold, m.draft.Statement, m.width)...)
	lines = append(lines, line{}, line{dim, "What it approves:"})
	lines = append(lines, m.approvedLines()...)
	lines = append(lines, wrapped(plain, "also writes RESTORE_MANIFEST.json and RESTORE_REPORT.json", m.width)...)
	last = len(lines) - 1
	lines = append(lines, line{}, line{dim, "Of this preview:"})
	for _, text := range m.config.Recap {
		lines = append(lines, wrapped(plain, text, m.width)...)
	}
	return lines, last
}

func (m *Model) helpLines() []line {
	const indent = 18
	lines := []line{{bold, "Keys"}, {}}
	for _, h := range keysHelp {
		for n, text := range wrap(h[1], m.width-indent) {
			if n > 0 {
				h[0] = ""
			}
			lines = append(lines, line{plain, fill(h[0], indent) + text})
		}
	}
	lines = append(lines, line{}, line{bold, "Letters"}, line{})
	for _, l := range [][2]string{
		{"[x] [-] [ ]", "approved by the statement, in part, not"}, {"A", "nothing is there: the file is created"},
		{"M", "the existing file is replaced"}, {"D", "it is removed"}, {"U", "it is not what a change set started from, and stays"}, {"=", "the same file is there"}, {"C", "something else is there, and stays"},
		{"B", "nothing can be put there"}, {"-", "not proposed"}, {"·", "a line that goes on"},
	} {
		for n, text := range wrap(l[1], m.width-indent) {
			if n > 0 {
				l[0] = ""
			}
			lines = append(lines, line{plain, fill(l[0], indent) + text})
		}
	}
	return lines
}

func (m *Model) factLines() []line {
	lines := wrapped(gradeStyles[m.over.Grade], m.over.Word+": "+m.over.Verdict, m.width)
	lines = append(lines, wrapped(plain, "Preview "+m.over.ID+", of "+m.over.Source, m.width)...)
	if m.over.Title != "" {
		lines = append(lines, labeled(plain, "title: ", m.over.Title, m.width)...)
	}
	lines = append(lines, wrapped(plain, "in "+m.over.Root, m.width)...)
	for _, f := range m.over.Facts {
		label := goesOn
		if f.Name != "" {
			label = f.Name + ": "
		}
		lines = append(lines, labeled(plain, label, f.Value, m.width)...)
	}
	return lines
}

// maxNamed is how many lines the names of files have that are removed, replaced or created, or that can
// run: where there are more files, directories are named, as in a summary.
const maxNamed = 200

// approvedLines are what the statement approves: what is lost first. The content that stays as it is
// is only counted.
func (m *Model) approvedLines() (lines []line) {
	names := map[report.Fate][]string{}
	for n := range m.over.Items {
		if i := &m.over.Items[n]; m.approved[i.Number] {
			names[i.Fate] = append(names[i.Fate], i.Path)
		}
	}
	for _, fate := range []report.Fate{report.Removed, report.Replaced, report.Created, report.Unchanged} {
		n := len(names[fate])
		if n == 0 {
			continue
		}
		style := letters[fate].style
		text := fmt.Sprintf("%s %s", fate, counted(n, "file"))
		if few := n <= words.MaxNamed; few && fate != report.Unchanged {
			for at, path := range names[fate] {
				names[fate][at] = quoted(path)
			}
			text += ": " + strings.Join(names[fate], ", ")
			lines = append(lines, wrapped(style, text, m.width)...)
			continue
		}
		lines = append(lines, wrapped(style, text, m.width)...)
		if fate == report.Unchanged {
			continue
		}
		lines = append(lines, m.folded(style, "  "+fate.String()+" ", names[fate])...)
	}
	for _, sentence := range m.draft.Plan {
		lines = append(lines, wrapped(plain, escaped(sentence), m.width)...)
	}
	return append(lines, wrapped(plain, m.verdictsText(), m.width)...)
}

// folded are lines with the names of files, or of their directories.
func (m *Model) folded(style, label string, paths []string) (lines []line) {
	rows, more := report.Fold(paths, maxNamed)
	for _, r := range rows {
		text := steady(r.Path)
		if r.IsDir {
			text += " " + counted(r.Files, "file")
		}
		lines = append(lines, labeled(style, label, text, m.width)...)
	}
	if more > 0 {
		lines = append(lines, wrapped(style, label+counted(more, "more file")+", which the list of files has", m.width)...)
	}
	return lines
}

// runningLines are the approved files that can run by themselves, the most dangerous first: all of them.
func (m *Model) runningLines() (lines []line) {
	if len(m.over.Running) <= report.MaxListed {
		return nil // the facts above name them
	}
	var rest []string
	for _, number := range m.over.Running {
		i := &m.over.Items[number-1]
		switch {
		case !m.approved[number]:
		case len(lines) < maxNamed:
			lines = append(lines, labeled(yellow, "  can run ", quoted(i.Path)+": "+escaped(i.Runs), m.width)...)
		default:
			rest = append(rest, i.Path)
		}
	}
	if len(rest) > 0 {
		lines = append(lines, m.folded(yellow, "  can run ", rest)...)
	}
	return lines
}

// verdictsText returns the decisions on the conflicts, once the statement is typed.
func (m *Model) verdictsText() string {
	if len(m.over.Conflicts) == 0 {
		return "conflicts: none"
	}
	by := map[statement.Verdict][]int{}
	for n := range m.over.Conflicts {
		c := &m.over.Conflicts[n]
		verdict := m.decided(c)
		if slices.Contains(m.draft.Taken, c.Number) {
			verdict = statement.Acknowledged
		}
		by[verdict] = append(by[verdict], c.Number)
	}
	var parts []string
	for _, v := range append(statement.Verdicts(), "") {
		switch ids := statement.FormatConflicts(by[v]); {
		case ids == "":
		case v == "":
			them := "them"
			if len(by[v]) == 1 {
				them = "it"
			}
			parts = append(parts, ids+" not decided, as nothing that is approved touches "+them)
		default:
			parts = append(parts, ids+" "+string(v))
		}
	}
	return "conflicts: " + strings.Join(parts, "; ")
}

// coverHeight is how many lines of a cover are shown.
func (m *Model) coverHeight() int {
	if m.cover == approval {
		return m.height - 3
	}
	return m.height - 1
}

// drawCover draws what covers the panes.
func (m *Model) drawCover() (rows []string) {
	lines, _ := m.coverLines()
	height := m.coverHeight()
	for n := range height {
		l := line{}
		if m.coverTop+n < len(lines) {
			l = lines[m.coverTop+n]
		}
		rows = append(rows, m.draw(l, m.width))
	}
	more := ""
	if m.coverTop+height < len(lines) {
		more = "PgDn: more; "
	}
	if m.cover != approval {
		return append(rows, m.draw(line{dim, more + "any other key goes back"}, m.width))
	}
	asks := line{plain, "type " + firstWord + ", Enter; Esc back"}
	if more != "" {
		asks.text += "; PgDn"
	}
	switch {
	case m.message != "":
		asks = line{red, m.message}
	case !m.seen:
		asks = line{yellow, "PgDn: read this to its end"}
	case !m.drawn:
		asks = line{}
	}
	above := line{}
	if text := wrap(asks.text, m.width); len(text) > 1 {
		above, asks.text = line{asks.style, text[0]}, strings.Join(text[1:], " ")
	}
	return append(rows, m.draw(above, m.width), m.draw(asks, m.width), m.draw(line{bold, "> " + cutStart(escaped(m.input), m.width-4)}, m.width))
}
