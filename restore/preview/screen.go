package preview

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// A Screen is the terminal on which a preview is summarized.
type Screen struct {
	Columns int    // at least [MinColumns] are used
	Lines   int    // of the terminal; a summary takes fewer, and at most [MaxLines]
	Color   bool   // colors may be written
	Free    uint64 // bytes that are free for the restore; 0 if that is not known
	// Next are the last rows, which say how to go on. Their values are never broken, so that a
	// command can be copied. More is one of them before the last, which a low screen goes without.
	Next []Row
	More Row
	// After is how many lines follow on the same screen, and Pager is set where what is longer than
	// the screen is shown in a pager.
	After int
	Pager bool
}

// nextRows are the last rows.
func (s Screen) nextRows() []Row {
	last := len(s.Next) - 1
	if s.More.Value == "" || s.isLow() || last < 0 {
		return s.Next
	}
	return slices.Insert(slices.Clone(s.Next), last, s.More)
}

// A Row is a name and what is said of it.
type Row struct{ Name, Value string }

// The size of a summary.
const (
	MinColumns = 40
	MaxLines   = 40
	minNames   = 3  // lines for the names of files, on the smallest screen,
	minFacts   = 10 // and for what is before them, however long the last rows are
	LowScreen  = 30 // lines of a terminal on which a row before the names takes one line
)

// WriteSummary writes what an operator must know before an approval, on one screen: what the
// preview comes to, how much of it, who has signed it, what is in the way, and the names of
// files, first those that replace something or are in conflict. A directory whose files do not
// fit is one line. [Preview.WriteReport] has all of it.
//
// It reports whether the screen has room for that and for the lines that follow. If not, a
// summary for a pager has as many lines as a large screen; any other takes more than there are.
//
// Text files that differ are read, to count the lines that change, so the restore must still
// be open. The errors are those of [Preview.WritePage].
func (p *Preview) WriteSummary(ctx context.Context, w io.Writer, s Screen) (fits bool, err error) {
	found, err := p.differences(ctx, false)
	if err != nil {
		return false, fmt.Errorf("summarizing preview %s: %w", p.id, err)
	}
	text, fits := p.layOut(s, &found)
	if !fits && s.Pager {
		s.Lines, s.After = MaxLines+1, 0
		text, _ = p.layOut(s, &found)
	}
	_, err = w.Write(text)
	return fits, err
}

// layOut is the summary for a screen. The last rows come first, then what goes before the names;
// the conflicts have the lines that the names of changed files leave.
func (p *Preview) layOut(s Screen, found *diffs) (text []byte, fits bool) {
	lines := max(0, min(MaxLines, s.Lines-1-s.After))
	foot := s.painter(lines)
	foot.line("", "", "")
	for _, row := range s.nextRows() {
		foot.line("", heading(row.Name), row.Value)
	}
	groups := p.byFate()
	wanted := groups.least()
	head := s.painter(max(minFacts, lines-foot.height-minNames))
	head.verdict(p)
	head.facts(p)
	room := lines - foot.height - head.height - wanted - 1
	head.most = max(head.most, lines)
	head.kinds(kindsOfConflicts(p.block.Conflicts), room)
	head.line("", "", "")
	names := s.painter(lines)
	names.files(groups, found, max(minNames, lines-foot.height-head.height))
	for _, part := range []*painter{head, names, foot} {
		text = append(text, part.text.Bytes()...)
	}
	return text, !head.isCut && !names.isCut && head.height+names.height+foot.height <= lines
}

// WriteRecap writes what is approved in a few lines, to stand above the question.
func (p *Preview) WriteRecap(w io.Writer, s Screen) error {
	s.Lines = 0 // all of it is shown
	out := s.painter(MaxLines)
	word, _, color := p.outcome()
	out.row(bold+";"+color, word+": ", fmt.Sprintf("%s, %s to write, in %s", p.countsText(), sizeText(p.bytesToWrite()), name(p.block.Root.Real)))
	out.row("", "", "signed by "+strings.Join(p.signers(), ", "))
	out.row("", "", "conflicts: "+p.conflictsText())
	if runs := p.runsText(); runs != "" {
		out.row("", "", "can run by itself: "+runs)
	}
	if opened := p.openedTo(); opened != "" {
		out.row(yellow, "gives other users more access: ", opened)
	}
	out.row("", "", "\"spectrum rollback\" can undo the commit, which prints the command")
	_, err := out.text.WriteTo(w)
	return err
}

// painter writes lines, up to a limit, and counts how many lines of the terminal they take.
type painter struct {
	Screen
	text   bytes.Buffer
	height int
	most   int
	isCut  bool // something that belongs on the first screen is missing
}

func (s Screen) painter(most int) *painter {
	s.Columns = max(MinColumns, s.Columns)
	return &painter{Screen: s, most: most}
}

// isLow reports whether the screen has few lines.
func (s Screen) isLow() bool { return s.Lines > 0 && s.Lines <= LowScreen }

// The colors of a summary, as parameters of the escape sequence.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
)

func (p *painter) colored(color, text string) string {
	if !p.Color || color == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// heading is the beginning of a row with a name.
func heading(name string) string { return fmt.Sprintf("  %-*s", labelWidth-2, name) }

// labelWidth is the width of the names of rows.
const labelWidth = 13

// line writes a line, which the terminal breaks where it is too long. The color is of the
// prefix.
func (p *painter) line(color, prefix, text string) {
	p.text.WriteString(p.colored(color, prefix) + text + "\n")
	p.height += max(1, (utf8.RuneCountInString(prefix+text)+p.Columns-1)/p.Columns)
}

// maxRowLines is how many lines one row takes, where the terminal is not low.
const maxRowLines = 3

// row writes a text after a prefix, broken between words. What is too long is cut, and
// a row for which there is no room is left out.
func (p *painter) row(color, prefix, text string) {
	most := maxRowLines
	if p.isLow() && p.Columns >= usualColumns {
		most = 1
	}
	p.rowOf(color, prefix, text, most)
}

// rowOf is row with at most so many lines.
func (p *painter) rowOf(color, prefix, text string, most int) {
	indent := utf8.RuneCountInString(prefix)
	lines := broken(text, p.Columns-indent)
	if len(lines) > most {
		lines = lines[:most]
		lines[most-1] = cutEnd(lines[most-1]+strings.Repeat(" ", p.Columns), p.Columns-indent)
	}
	switch {
	case p.height >= p.most:
		p.isCut = true
		return
	case p.height+len(lines) >= p.most:
		p.isCut = true
		p.line("", "", "  … more in the full report")
		p.height = p.most
		return
	}
	for n, line := range lines {
		if n > 0 {
			prefix = strings.Repeat(" ", indent)
		}
		p.line(color, prefix, line)
	}
}

// broken breaks a text between words into lines of at most so many characters. A word that is
// longer than a line is broken too.
func broken(text string, width int) []string {
	var lines []string
	line, used := "", 0
	for _, word := range strings.Fields(text) {
		runes := []rune(word)
		if used > 0 && used+1+len(runes) <= width {
			line, used = line+" "+word, used+1+len(runes)
			continue
		}
		if used > 0 {
			lines = append(lines, line)
		}
		for ; len(runes) > width; runes = runes[width:] {
			lines = append(lines, string(runes[:width]))
		}
		line, used = string(runes), len(runes)
	}
	return append(lines, line)
}

// usualColumns is the width of a terminal on which one line says enough.
const usualColumns = 80

// cutEnd shortens a text to so many characters, at its end.
func cutEnd(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	return strings.TrimRight(string(runes[:width-2]), " ") + " …"
}

// cut shortens a text to so many characters, in the middle: the end of a path says most.
func cut(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	head := (width - 1) / 3
	return string(runes[:head]) + "…" + string(runes[len(runes)-(width-1-head):])
}
