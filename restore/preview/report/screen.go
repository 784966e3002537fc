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
	// Next are the last rows, with the next commands. Their values are never broken, so that a command
	// can be copied.
	Next  []Row
	After int // lines that follow on the same screen

	squeeze squeeze
}

// squeeze is what a summary leaves out if it has too few lines. Each value includes those before it.
type squeeze int

const (
	noGaps     squeeze = iota + 1 // empty lines
	shortHeld                     // rows about quarantine, secrets and other users, after a line
	shortKinds                    // resolutions, after a line
	shortNames                    // names of files, but for one line of each fate
	mostSqueeze
)

// A Row is a name and a value. If the value does not fit, Short is shown; "" for none.
type Row struct{ Name, Value, Short string }

// Fits reports whether the value of a [Row] fits on one line.
func (s Screen) Fits(value string) bool {
	return visible.Columns(value) <= max(MinColumns, s.Columns)-labelWidth
}

// The size of a summary.
const (
	MinColumns = 40
	MaxLines   = 40
	LowScreen  = 30 // lines of a terminal that has few
)

// WriteSummary writes a summary for the operator on at most [MaxLines] lines of the terminal: the result, the
// size, the signers, the conflicts, and the names of files, first those that replace a file or are in
// conflict. A directory whose files do not fit is one line. [Report.WriteMarkdown] writes everything.
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

// layOut returns the summary for a screen, without empty lines if it fits only then. If it does not fit, it
// returns a summary of at most [MaxLines].
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

// arrange returns the summary on the given number of lines, if they are enough for the rows that are never
// left out. The lines that remain beside the last rows and some names of each class are used for the other
// facts, then for resolutions of conflicts, and then for other names, those of unchanged files last.
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

// foot returns the last rows on the given number of lines. If these are not enough, the longest values have
// their short form. A value is cut only if it takes half of a screen, because it may be a command to copy.
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

// maxLastRow is the maximum number of lines of a last row.
const maxLastRow = MaxLines / 2

// WriteRecap writes the approval in a few lines, above the question.
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

// painter writes lines, and counts the lines of the terminal that they take.
type painter struct {
	Screen
	text   bytes.Buffer
	height int
	isCut  bool // a row that belongs on the first screen is missing
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

// heading returns the beginning of a row with a name.
func heading(name string) string { return fmt.Sprintf("  %-*s", labelWidth-2, name) }

// labelWidth is the width of the names of rows.
const labelWidth = 13

// line writes a line with a colored prefix. The terminal breaks it if it is too long.
func (p *painter) line(color, prefix, text string) {
	p.text.WriteString(p.colored(color, prefix) + text + "\n")
	p.height += max(1, (visible.Columns(prefix+text)+p.Columns-1)/p.Columns)
}

// gap writes an empty line, if there is room for one.
func (p *painter) gap() {
	if p.squeeze < noGaps {
		p.line("", "", "")
	}
}

// maxRowLines is the maximum number of lines of a row with a text of any length, and wholeLines that of a row
// that is never cut, because its text has a limit.
const (
	maxRowLines = 3
	wholeLines  = MaxLines
)

// row writes a text after a prefix, broken between words and cut if it is too long.
func (p *painter) row(color, prefix, text string) { p.rowOf(color, prefix, text, maxRowLines) }

// rowOf is row with a maximum number of lines.
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

// broken breaks a text between words into lines of at most width columns. It also breaks a word that is longer
// than a line.
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

// ellipsis replaces the part of a text that is left out.
const ellipsis = "…"

// cutEnd shortens a text to width columns, at its end.
func cutEnd(text string, width int) string {
	if visible.Columns(text) <= width {
		return text
	}
	return strings.TrimRight(text[:visible.Within(text, width-1-visible.Columns(ellipsis))], " ") + " " + ellipsis
}

// cut shortens a text to width columns, in the middle, because the end of a path matters most.
func cut(text string, width int) string {
	if visible.Columns(text) <= width {
		return text
	}
	width -= visible.Columns(ellipsis)
	head := text[:visible.Within(text, width/3)]
	return head + ellipsis + text[visible.EndWithin(text, width-visible.Columns(head)):]
}
