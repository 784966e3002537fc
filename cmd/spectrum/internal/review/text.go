package review

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/spectrumfs/spectrum/internal/visible"
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
	var lines []string
	line, used := "", 0
	for word := range strings.FieldsSeq(steady(s)) {
		w := width(word)
		if used > 0 && used+1+w <= columns {
			line, used = line+" "+word, used+1+w
			continue
		}
		if used > 0 {
			lines = append(lines, line)
		}
		parts := broken(word, columns)
		lines = append(lines, parts[:len(parts)-1]...)
		line = parts[len(parts)-1]
		used = width(line)
	}
	return append(lines, line)
}

// broken breaks a text into lines of at most so many columns, wherever they end.
func broken(s string, columns int) []string {
	if width(s) <= columns {
		return []string{steady(s)}
	}
	return strings.Split(ansi.Hardwrap(steady(s), columns, true), "\n")
}
