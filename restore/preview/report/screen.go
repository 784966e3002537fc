package report

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/internal/visible"
	"github.com/spectrumfs/spectrum/restore/preview"
)

// A Screen is the terminal on which a preview is summarized.
type Screen struct {
	Columns int    // at least [MinColumns] are used
	Lines   int    // of the terminal; a summary takes fewer, and at most [MaxLines]
	Color   bool   // colors may be written
	Free    uint64 // bytes that are free for the restore; 0 if that is not known
	// Next are the last rows, which say how to go on. Their values are never broken, so that a
	// command can be copied.
	Next  []Row
	After int // lines that follow on the same screen

	squeeze squeeze
}

// squeeze is what a summary does without that has too few lines. Each includes those before it.
type squeeze int

const (
	noGaps     squeeze = iota + 1 // empty lines
	shortHeld                     // what holds a candidate, after a line
	shortKinds                    // resolutions, after a line
	shortNames                    // names of files, but for one line of each fate
	mostSqueeze
)

// A Row is a name and what is said of it. Short is shown, whole, where the value has no room; "" for none.
type Row struct{ Name, Value, Short string }

// Fits reports whether the value of a [Row] has room on one line.
func (s Screen) Fits(value string) bool {
	return visible.Columns(value) <= max(MinColumns, s.Columns)-labelWidth
}

// The size of a summary.
const (
	MinColumns = 40
	MaxLines   = 40
	LowScreen  = 30 // lines of a terminal that has few
)

// WriteSummary writes what an operator must know before an approval, on at most [MaxLines] lines of
// the terminal: what the preview comes to, how much of it, who has signed it, what is in the way, and
// the names of files, first those that replace something or are in conflict. A directory whose files
// do not fit is one line. [Report.WriteMarkdown] has all of it.
//
// It reports whether the screen has room for that and for the lines that follow. If not, the summary
// is as long as on a large screen, and only names and advice are shortened: the verdict, the signers,
// the conflicts, the quarantine and the last rows are there on every screen.
//
// Text files that differ are read, to count the lines that change, so the restore must still
// be open. The errors are those of [Report.WritePage].
func (p *Report) WriteSummary(ctx context.Context, w io.Writer, s Screen) (fits bool, err error) {
	found, err := p.differences(ctx, false)
	if err != nil {
		return false, fmt.Errorf("summarizing preview %s: %w", p.ID, err)
	}
	s.Columns = max(MinColumns, s.Columns)
	text, fits := p.layOut(s, &found)
	_, err = w.Write(text)
	return fits, err
}

// layOut is the summary for a screen, without empty lines if it fits only so, or else for a large one: with
// so much left out that it has at most [MaxLines].
func (p *Report) layOut(s Screen, found *diffs) (text []byte, fits bool) {
	lines := min(MaxLines, s.Lines-1-s.After)
	for _, s.squeeze = range []squeeze{0, noGaps} {
		if text, height, isCut := p.arrange(s, found, lines); !isCut && height <= lines {
			return text, true
		}
	}
	for s.squeeze = 0; s.squeeze < mostSqueeze; s.squeeze++ {
		var height int
		if text, height, _ = p.arrange(s, found, MaxLines); height <= MaxLines {
			break
		}
	}
	return text, false
}

// arrange is the summary on so many lines, if they are enough for what is never left out. The other
// facts have the lines that this, the last rows and some names of each fate leave; then come the advice
// on conflicts and the other names, last those of files that stay as they are.
func (p *Report) arrange(s Screen, found *diffs, lines int) (text []byte, height int, isCut bool) {
	groups, kinds, head := p.byFate(), kindsOfConflicts(p.Block.Conflicts), s.painter()
	head.verdict(p)
	head.facts(p)
	named := s.leastOf(groups)
	least := 1 + head.leastOfKinds(kinds) + named
	foot := head.foot(MaxLines - head.height - min(1, len(p.otherGlances())) - least)
	head.otherFacts(p, lines-foot.height-least)
	head.kinds(kinds, lines-foot.height-head.height-named-1)
	head.gap()
	names := s.painter()
	names.files(groups, found, max(named, lines-foot.height-head.height))
	for _, part := range []*painter{head, names, foot} {
		text = append(text, part.text.Bytes()...)
	}
	return text, head.height + names.height + foot.height, head.isCut || names.isCut
}

// foot are the last rows, on so many lines: where these are not enough, the longest values have their
// short form. Neither is ever cut, since it may be a command to be copied, unless it takes half of a screen.
func (s Screen) foot(lines int) *painter {
	rows, isShort := slices.Clone(s.Next), make([]bool, len(s.Next))
	for {
		out, longest := s.painter(), -1
		out.gap()
		for n, row := range rows {
			out.line("", heading(row.Name), row.Value)
			if !isShort[n] && (row.Short != "" || visible.Columns(row.Value) > maxLastRow*s.Columns) && (longest < 0 || visible.Columns(row.Value) > visible.Columns(rows[longest].Value)) {
				longest = n
			}
		}
		if out.height <= lines || longest < 0 || visible.Columns(rows[longest].Value) <= s.Columns-labelWidth {
			return out
		}
		row := &rows[longest]
		if isShort[longest] = row.Short != ""; isShort[longest] {
			row.Value = row.Short
		} else {
			row.Value = cut(row.Value, maxLastRow*s.Columns-labelWidth)
		}
	}
}

// maxLastRow is how many lines a last row takes at most.
const maxLastRow = MaxLines / 2

// WriteRecap writes what is approved in a few lines, to stand above the question.
func (p *Report) WriteRecap(w io.Writer, s Screen) error {
	out := s.painter()
	word, _, color := p.outcome()
	out.rowOf(bold+";"+color, word+": ", fmt.Sprintf("%s, %s to write, in %s", p.countsText(), visible.Size(p.bytesToWrite()), cut(name(p.Block.Root.Real), maxRowLines*out.Columns)), wholeLines)
	out.rowOf("", "", "signed by "+strings.Join(p.signers(), ", "), wholeLines)
	out.rowOf("", "", "conflicts: "+p.conflictsText(), wholeLines)
	for _, risk := range []struct {
		color, name string
		items       []*preview.Item
	}{
		{yellow, "may hold secrets: ", p.secrets()}, {"", "can run by itself: ", p.running()},
		{yellow, "gives other users more access: ", p.opened()}, {yellow, "every user can write: ", p.writable()},
	} {
		if text := namesOf(risk.items); text != "" {
			out.row(risk.color, risk.name, text)
		}
	}
	if others := p.othersText(); others != "" {
		out.rowOf(red, "", others, wholeLines)
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
	isCut  bool // something that belongs on the first screen is missing
}

func (s Screen) painter() *painter {
	s.Columns = max(MinColumns, s.Columns)
	return &painter{Screen: s}
}

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
	p.height += max(1, (visible.Columns(prefix+text)+p.Columns-1)/p.Columns)
}

// gap writes an empty line, where there is room for one.
func (p *painter) gap() {
	if p.squeeze < noGaps {
		p.line("", "", "")
	}
}

// maxRowLines is how many lines one row takes whose text may be of any length, and wholeLines
// those of a row that is never cut, since its text has a limit.
const (
	maxRowLines = 3
	wholeLines  = MaxLines
)

// row writes a text after a prefix, broken between words. What is too long is cut.
func (p *painter) row(color, prefix, text string) { p.rowOf(color, prefix, text, maxRowLines) }

// rowOf is row with at most so many lines.
func (p *painter) rowOf(color, prefix, text string, most int) {
	indent := visible.Columns(prefix)
	lines := broken(text, p.Columns-indent)
	if len(lines) > most {
		lines = lines[:most]
		lines[most-1] = cutEnd(lines[most-1]+strings.Repeat(" ", p.Columns), p.Columns-indent)
	}
	for n, line := range lines {
		if n > 0 {
			prefix = strings.Repeat(" ", indent)
		}
		p.line(color, prefix, line)
	}
}

// broken breaks a text between words into lines of at most so many columns. A word that is
// longer than a line is broken too.
func broken(text string, width int) []string {
	var lines []string
	line, used := "", 0
	for _, word := range strings.Fields(text) {
		long := visible.Columns(word)
		if used > 0 && used+1+long <= width {
			line, used = line+" "+word, used+1+long
			continue
		}
		if used > 0 {
			lines = append(lines, line)
		}
		for visible.Columns(word) > width {
			at := visible.Within(word, width)
			lines = append(lines, word[:at])
			word = word[at:]
		}
		line, used = word, visible.Columns(word)
	}
	return append(lines, line)
}

// ellipsis marks what is left out of a text.
const ellipsis = "…"

// cutEnd shortens a text to so many columns, at its end.
func cutEnd(text string, width int) string {
	if visible.Columns(text) <= width {
		return text
	}
	return strings.TrimRight(text[:visible.Within(text, width-1-visible.Columns(ellipsis))], " ") + " " + ellipsis
}

// cut shortens a text to so many columns, in the middle: the end of a path says most.
func cut(text string, width int) string {
	if visible.Columns(text) <= width {
		return text
	}
	width -= visible.Columns(ellipsis)
	head := text[:visible.Within(text, width/3)]
	return head + ellipsis + text[visible.EndWithin(text, width-visible.Columns(head)):]
}
