package main

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/spectrumfs/spectrum/restore/preview/report"
	"github.com/spf13/cobra"
)

// helpColumns is the widest line of a help text.
const helpColumns = 80

// layOutHelp has the help of all commands laid out for the terminal, at most 80 columns wide.
func layOutHelp(root *cobra.Command, app *app) {
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		text := strings.TrimRight(cmp.Or(cmd.Long, cmd.Short), " \n")
		if cmd.Runnable() || cmd.HasSubCommands() {
			text += "\n\n" + cmd.UsageString()
		}
		columns := max(report.MinColumns, min(helpColumns, columnsOf(app.stdout)))
		_, _ = fmt.Fprint(cmd.OutOrStdout(), laidOut(text, columns)) // which keeps its first error
	})
}

// laidOut is a text with no line wider than that, unless a word of it is. Paragraphs are filled again;
// a line that is indented keeps its indentation, and what it explains after a gap its column.
func laidOut(text string, columns int) string {
	var out strings.Builder
	var paragraph []string
	flush := func() {
		joined := strings.Join(paragraph, "\n")
		for _, line := range paragraph {
			if utf8.RuneCountInString(line) > columns {
				joined = filled("", joined, 0, columns)
				break
			}
		}
		if len(paragraph) > 0 {
			out.WriteString(joined + "\n")
		}
		paragraph = nil
	}
	for _, line := range entries(strings.Split(strings.TrimSuffix(text, "\n"), "\n")) {
		if line != "" && line[0] != ' ' {
			paragraph = append(paragraph, line)
			continue
		}
		flush()
		if utf8.RuneCountInString(line) <= columns {
			out.WriteString(line + "\n")
			continue
		}
		indent := len(line) - len(strings.TrimLeft(line, " "))
		begin, rest, hanging := line[:indent], line[indent:], indent+4
		if gap := explained.FindStringIndex(line); gap != nil {
			begin, rest, hanging = line[:gap[1]], line[gap[1]:], gap[1]
		}
		if hanging > columns/2 {
			out.WriteString(strings.TrimRight(begin, " ") + "\n")
			hanging = indent + 8
			begin = strings.Repeat(" ", hanging)
		}
		out.WriteString(filled(begin, rest, hanging, columns) + "\n")
	}
	flush()
	return out.String()
}

// entries are the lines with a tab at the beginning as four spaces, and each entry of a list that goes
// on in the column of its explanation in one line.
func entries(lines []string) (joined []string) {
	column := -1
	for _, line := range lines {
		if rest, isTab := strings.CutPrefix(line, "\t"); isTab {
			line = "    " + rest
		}
		if text := strings.TrimLeft(line, " "); text != "" && len(line)-len(text) == column {
			joined[len(joined)-1] += " " + text
			continue
		}
		column = -1
		if gap := explained.FindStringIndex(line); gap != nil {
			column = gap[1]
		}
		joined = append(joined, line)
	}
	return joined
}

// explained is the beginning of a line that has a column of explanations.
var explained = regexp.MustCompile(`^ +\S.*?\S? {2,}`)

// filled breaks a text between words; the lines after the first are indented.
func filled(begin, text string, indent, columns int) string {
	var out strings.Builder
	out.WriteString(begin)
	used, first := utf8.RuneCountInString(begin), true
	for word := range strings.FieldsSeq(text) {
		width := utf8.RuneCountInString(word)
		switch {
		case first:
		case used+1+width <= columns:
			out.WriteByte(' ')
			used++
		default:
			out.WriteString("\n" + strings.Repeat(" ", indent))
			used = indent
		}
		out.WriteString(word)
		used, first = used+width, false
	}
	return out.String()
}
