package review

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/words"
	"github.com/spectrumfs/spectrum/restore/preview/report"
	"github.com/spectrumfs/spectrum/restore/statement"
)

// gradeStyles are the colors of verdicts.
var gradeStyles = map[report.Grade]string{report.Bad: red, report.Fair: yellow, report.Good: green}

// head returns the rows above the panes: the verdict, what is written, the signer, the conflicts.
func (m *Model) head() []line {
	v := &m.over
	style := gradeStyles[v.Grade]
	if !m.isTall() {
		about := line{plain, m.standingText() + "; " + m.conflictsText() + "; signed by " + strings.Join(v.Signers, ", ")}
		if w := m.warnings(); len(w) > 0 { // there is no room for them
			about = line{w[0].style, "! key i; " + about.text}
		}
		return []line{{style, v.Word + ": " + v.Counts}, m.rootLine(), about}
	}
	lines := []line{
		{style, v.Word + ": " + v.Verdict},
		{plain, v.Counts},
		m.rootLine(),
		{plain, "signed by " + strings.Join(v.Signers, ", ")},
		{plain, m.conflictsText()},
	}
	for n, w := range m.warnings() {
		if n == m.height/12 {
			lines[len(lines)-1].text = cut(lines[len(lines)-1].text, m.width-12) + " (i: more)"
			break
		}
		lines = append(lines, w)
	}
	return lines
}

// warnings are the facts that an operator must know before an approval.
func (m *Model) warnings() (lines []line) {
	for _, f := range m.over.Facts {
		switch f.Name {
		case "secrets", "can run", "more access", "writable":
			lines = append(lines, line{yellow, f.Name + ": " + f.Value})
		case "quarantine", "warning":
			lines = append(lines, line{red, f.Name + ": " + f.Value})
		}
	}
	return lines
}

// rootLine is how much is written and where. Of a long path the end is shown.
func (m *Model) rootLine() line {
	text := m.over.Size + " to write, in "
	return line{plain, text + cutStart(m.over.Root, m.width-width(text))}
}

// standingText describes in a few words whether the operator trusts the signer.
func (m *Model) standingText() string {
	if m.over.Pinned {
		return "signer pinned"
	}
	return "signer not pinned"
}

// conflictsText counts the conflicts.
func (m *Model) conflictsText() string {
	n := len(m.over.Conflicts)
	switch {
	case n == 0:
		return "no conflicts"
	case len(m.draft.Open) == 0 && len(m.draft.Taken) > 0:
		return fmt.Sprintf("%s, none to decide: the statement acknowledges %s", counted(n, "conflict"), statement.FormatConflicts(m.draft.Taken))
	case len(m.draft.Open) == 0:
		return counted(n, "conflict") + ", none to decide"
	}
	return fmt.Sprintf("%s, %s to decide", counted(n, "conflict"), number(len(m.draft.Open)))
}

func counted(n int, what string) string { return words.Count(n, what) }

func number(n int) string { return words.Number(n) }

// statementLines is how many lines the statement has.
func (m *Model) statementLines() int {
	if m.height > report.LowScreen {
		return 3
	}
	return 2
}

// foot returns the rows below the panes: the statement so far, what it lacks, and keys.
func (m *Model) foot() []line {
	lines := m.statementLines()
	said := m.draft.Statement
	if said == "" {
		said = "no statement yet"
	}
	begin := said[:min(len(said), (lines+1)*m.width)] // which is ASCII
	text := wrap(begin, m.width)
	if len(text) > lines || len(begin) < len(said) {
		text = text[:lines]
		text[lines-1] = cut(text[lines-1]+strings.Repeat(" ", m.width), m.width-9) + " (A: all)"
	}
	var out []line
	if m.isTall() {
		out = append(out, line{dim, strings.Repeat("─", m.width)})
	}
	for n := range lines {
		if n < len(text) {
			out = append(out, line{bold, text[n]})
		} else {
			out = append(out, line{})
		}
	}
	out = append(out, m.lack(), m.lastLine())
	return m.withMessage(out)
}

// withMessage writes a message that is longer than a line over as many of the last lines as it
// takes: none of it is lost.
func (m *Model) withMessage(lines []line) []line {
	text := wrap(m.message, m.width)
	if m.asking || len(text) < 2 {
		return lines
	}
	room := min(len(text), len(lines))
	if m.isTall() {
		room = min(room, len(lines)-1) // the rule stays
	}
	for n, l := range text[:room] {
		lines[len(lines)-room+n] = line{bold, l}
	}
	return lines
}

// lack returns what the statement still lacks, or its effect.
func (m *Model) lack() line {
	switch {
	case m.over.Held:
		return line{yellow, "in quarantine: press q to leave; the release command is printed then"}
	case len(m.draft.Open) > 0:
		const how = "; c, then a"
		return line{yellow, cut("to decide: "+m.openText(), m.width-len(how)) + how}
	case m.draft.Why != nil:
		return line{yellow, escaped(m.draft.Why.Error())}
	}
	if !slices.ContainsFunc(m.over.Items, func(i report.Item) bool { return m.approved[i.Number] && i.Fate != report.Unchanged }) {
		return line{yellow, "nothing to do: " + counted(len(m.draft.Items), "file") + " of the statement, all there already; press q to leave"}
	}
	return line{green, "ready, " + counted(len(m.draft.Items), "file") + "; press A to read it whole and to approve"}
}

// lastLine is a message, a question, or the keys that are used most.
func (m *Model) lastLine() line {
	switch {
	case m.asking:
		return line{plain, "search: " + cutStart(escaped(m.input), m.width-10)}
	case m.message != "":
		return line{bold, m.message}
	case m.width >= 104:
		return line{dim, "? help  Tab side  space leave out  c conflicts  a acknowledge  f filter  / search  A approve  q leave"}
	case m.isWide():
		return line{dim, "? help  space leave out  c conflicts  a acknowledge  A approve  q leave"}
	}
	return line{dim, "? help  J K scroll  A approve  q leave"}
}
