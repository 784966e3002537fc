package review

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/spectrumfs/spectrum/internal/visible"
	"github.com/spectrumfs/spectrum/restore/preview/report"
)

// The styles, as parameters of the escape sequence.
const (
	plain   = ""
	bold    = "1"
	dim     = "2"
	reverse = "7"
	red     = "31"
	green   = "32"
	yellow  = "33"
	cyan    = "36"
)

// A line is one line of a pane: text that can be shown, and its style.
type line struct{ style, text string }

// escaped is a text from outside, as it can be shown on one line.
func escaped(s string) string { return steady(visible.Escape(s)) }

// shown is a name that cannot be taken for anything else: as it is, or quoted where it has what
// cannot be seen, or begins or ends so that its ends would not be seen.
func shown(name string) string {
	if name == "" || strings.HasPrefix(name, `"`) || strings.Trim(name, " ") != name || escaped(name) != name {
		return steady(visible.Quote(name))
	}
	return name
}

// quoted is a name that may be broken over lines, or stands among other words: as it is where it is plain,
// else with quotes, so that its ends can be seen.
func quoted(name string) string { return steady(report.Name(name)) }

// goesOn is the beginning of a line that goes on with the one before it, so that no part of a text that
// others have written is taken for a line of the program.
const goesOn = "  "

// wrapped breaks a text into lines, of which all but the first are indented.
func wrapped(style, text string, columns int) (lines []line) {
	return labeled(style, "", text, columns)
}

// labeled is wrapped with a label before the text. Further lines begin below the text.
func labeled(style, label, text string, columns int) (lines []line) {
	indent := width(label)
	if indent == 0 {
		indent = len(goesOn)
	}
	first, rest := wrapTo(text, columns-width(label), columns-indent)
	lines = append(lines, line{style, label + first})
	for _, l := range rest {
		lines = append(lines, line{style, strings.Repeat(" ", indent) + l})
	}
	return lines
}

// tabWidth is how far apart the stops of tabs are.
const tabWidth = 8

// content is a line of a file, as it can be shown: tabs as spaces.
func content(s string) string {
	if !strings.Contains(s, "\t") {
		return escaped(s)
	}
	var b strings.Builder
	column := 0
	for n, part := range strings.Split(s, "\t") {
		if n > 0 {
			gap := tabWidth - column%tabWidth
			b.WriteString(strings.Repeat(" ", gap))
			column += gap
		}
		part = escaped(part)
		b.WriteString(part)
		column += width(part)
	}
	return b.String()
}

// width is how many columns a text takes.
func width(s string) int { return ansi.StringWidth(steady(s)) }

// cut shortens a text to so many columns, at its end.
func cut(s string, columns int) string {
	if columns <= 0 {
		return ""
	}
	return ansi.Truncate(steady(s), columns, "…")
}

// cutStart shortens a text at its beginning: the end of a path is the most specific.
func cutStart(s string, columns int) string {
	s = steady(s)
	if over := width(s) - columns; over > 0 && columns > 1 {
		for { // half of a wide character cannot be shown
			over++
			if end := ansi.TruncateLeft(s, over, ""); width(end) < columns {
				return "…" + end
			}
		}
	}
	return cut(s, columns)
}

// fill is a text of exactly so many columns.
func fill(s string, columns int) string {
	s = cut(s, columns)
	return s + strings.Repeat(" ", max(0, columns-width(s)))
}

// wrap breaks a text between words into lines of at most so many columns; a word that is longer
// is broken too.
func wrap(s string, columns int) []string {
	if columns <= 0 {
		return nil
	}
	first, rest := wrapTo(s, columns, columns)
	return append([]string{first}, rest...)
}

// wrapTo is wrap with so many columns for the first line, and so many for the others.
func wrapTo(s string, columns, others int) (first string, rest []string) {
	var lines []string
	columns, others = max(1, columns), max(1, others)
	line, used := "", 0
	end := func() { lines, line, used, columns = append(lines, line), "", 0, others }
	for word := range strings.FieldsSeq(steady(s)) {
		w := width(word)
		if used > 0 && used+1+w <= columns {
			line, used = line+" "+word, used+1+w
			continue
		}
		if used > 0 {
			end()
		}
		for width(word) > columns {
			head := broken(word, columns)[0]
			line = head
			word = word[len(head):]
			end()
		}
		line, used = word, width(word)
	}
	lines = append(lines, line)
	return lines[0], lines[1:]
}

// broken breaks a text into lines of at most so many columns, wherever they end.
func broken(s string, columns int) []string {
	if width(s) <= columns {
		return []string{steady(s)}
	}
	return strings.Split(ansi.Hardwrap(steady(s), columns, true), "\n")
}
