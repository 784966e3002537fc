package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/quarantine"
	"golang.org/x/term"
)

// screen is the terminal on stderr.
func (a *app) screen() preview.Screen {
	s := preview.Screen{Columns: columnsOf(a.stderr), Lines: preview.MaxLines, Color: onTerminal(a.stderr) && colored()}
	if height := heightOn(a.stderr); height > 0 {
		s.Lines = height
	}
	return s
}

// colored reports whether colors may be written to a terminal.
func colored() bool { return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" }

// showSummary writes the summary of a preview to the terminal, with the commands that go on.
func (a *app) showSummary(ctx context.Context, state *statedir.Dir, shown presented) error {
	p, r, s := shown.preview, shown.restore, a.screen()
	if at, err := machine.RoomOf(r.Root()); err == nil { // it is only shown: a commit counts again
		if free, err := at.Free(); err == nil {
			s.Free = free.Bytes
		}
	}
	if line := a.approveLine(p); line != "" && !shown.opts.asks && len(shown.held) == 0 {
		s.Next = append(s.Next, preview.Row{Name: "approve", Value: line})
	}
	if asked := shown.candidate.asked; p.CouldReplace() {
		asked.Replace = true
		s.Next = append(s.Next, preview.Row{Name: "replace", Value: a.commandLine(previewWords(shown.candidate.origin, asked)...)})
	}
	for n, id := range p.Unknown() {
		name := ""
		if n == 0 {
			name = "trust"
		}
		s.Next = append(s.Next, preview.Row{Name: name, Value: a.commandLine("trust", "add", id)})
	}
	s.More = preview.Row{Name: "see more", Value: a.diffLine(shown.candidate.origin)}
	s.Next = append(s.Next, preview.Row{Name: "report", Value: state.ReportPath(p.ID())})
	a.bar().clear()
	s.After, s.Pager = a.linesAfter(shown, s.Columns), a.pages(shown.opts.paged)
	var out bytes.Buffer
	fits, err := p.WriteSummary(ctx, &out, s)
	if err != nil {
		return err
	}
	return a.onScreen(a.stderr, out.Bytes(), s.Pager && !fits)
}

// linesAfter is how many lines of the terminal follow a summary on the same screen.
func (a *app) linesAfter(shown presented, columns int) (lines int) {
	var after []string
	for _, text := range heldLines(shown.preview.Source(), shown.held) {
		after = append(after, a.here(text))
	}
	if shown.opts.asks {
		return heightOf(strings.Join(after, "\n"), columns) // else a question follows, with the recap above it
	}
	if warning := shown.candidate.warning; warning != "" {
		after = append(after, "spectrum: "+oneLine(warning))
	}
	if onTerminal(a.stdout) && !a.json {
		after = append(after, shown.preview.ID())
	}
	return heightOf(strings.Join(after, "\n"), columns)
}

// heightOf is how many lines of a terminal a text without colors takes.
func heightOf(text string, columns int) (lines int) {
	if text == "" {
		return 0
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		lines += max(1, (utf8.RuneCountInString(line)+columns-1)/max(1, columns))
	}
	return lines
}

// pages reports whether what is longer than the screen goes through a pager: a person is there to
// go on with it, and no script reads what is printed.
func (a *app) pages(p paged) bool {
	return !p.noPager && onTerminal(os.Stdin) && onTerminal(a.stdout) && onTerminal(a.stderr) && heightOn(a.stderr) > 0 && pagerCommand() != ""
}

// onScreen writes a text to a terminal, or shows it there in a pager.
func (a *app) onScreen(terminal io.Writer, text []byte, inPager bool) error {
	write := func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	}
	if !inPager {
		return write(terminal)
	}
	over := *a
	over.stdout = terminal
	return throughPager(pagerCommand(), &over, write)
}

// showReport writes a report, and where that is a terminal in a pager if it is longer than the screen.
func (a *app) showReport(to io.Writer, report []byte, p paged) error {
	a.bar().clear()
	return a.onScreen(to, report, a.pages(p) && heightOf(string(report), columnsOf(to)) >= heightOn(to))
}

// heightOn is how many lines a terminal has; 0 if that is not known.
func heightOn(stream any) int {
	if f, ok := stream.(*os.File); ok {
		if _, height, err := term.GetSize(int(f.Fd())); err == nil {
			return max(0, height)
		}
	}
	return 0
}

// approveLine is the command that approves what a preview recommends; "" where it recommends
// nothing.
func (a *app) approveLine(p *preview.Preview) string {
	if p.Recommended() == "" {
		return ""
	}
	return a.commandLine("commit", "--preview", p.ID()[:shortest], "--approve", p.Recommended())
}

// maxCommand is how many characters of a command are worth their lines on a screen.
const maxCommand = 400

// diffLine is the command that shows the content of what a preview is about; "" for a chain
// whose command would be longer than what it is worth.
func (a *app) diffLine(o preview.Origin) string {
	words := []string{"diff"}
	if derived, err := projectRootOf(o.RunDirs); err != nil || derived != o.ProjectRoot {
		words = append(words, "--project-root", o.ProjectRoot)
	}
	if o.Chain && len(o.RunDirs) == 1 {
		words = append(words, "--chain")
	}
	line := a.commandLine(append(append(words, o.RunDirs...), o.RestoreRoot)...)
	if len(o.RunDirs) == 0 || len(o.RunDirs) > 1 && len(line) > maxCommand {
		return ""
	}
	return line
}

// tellHeld names what holds a candidate in quarantine, and the next steps.
func (a *app) tellHeld(shown shownPreview) {
	for _, line := range heldLines(shown.source, shown.held) {
		a.tell("%s", line)
	}
}

// heldLines name what holds a candidate in quarantine, and the next steps; none where nothing does.
func heldLines(source string, held []quarantine.Mark) []string {
	if len(held) == 0 {
		return nil
	}
	lines := []string{"spectrum: " + oneLine((&quarantine.HeldError{Source: source, Marks: held}).Error())}
	for _, hint := range heldHints(source) {
		lines = append(lines, "hint: "+oneLine(hint))
	}
	return lines
}
