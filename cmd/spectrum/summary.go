package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/internal/visible"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/preview/report"
	"github.com/spectrumfs/spectrum/restore/quarantine"
	"golang.org/x/term"
)

// screen is the terminal on stderr.
func (a *app) screen(p paged) report.Screen {
	s := report.Screen{Columns: columnsOf(a.stderr), Lines: report.MaxLines, Color: p.colored(onTerminal(a.stderr))}
	if height := heightOn(a.stderr); height > 0 {
		s.Lines = height
	}
	return s
}

// showSummary writes the summary of a preview to the terminal, with the commands that go on.
func (a *app) showSummary(ctx context.Context, state *statedir.Dir, shown presented) error {
	p, s := shown.preview, a.screen(shown.opts.paged)
	s.Free = freeFor(shown.restore)
	if line := a.approveLine(p); line != "" && !shown.opts.asks && len(shown.held) == 0 {
		s.Next = append(s.Next, report.Row{Name: approves, Value: line, Short: a.commandLine("commit", "--preview", p.ID()[:shortest])})
	}
	if asked := shown.candidate.asked; p.CouldReplace() {
		asked.Replace = true
		row := report.Row{Name: "replace", Value: a.commandLine(previewWords(shown.candidate.origin, asked)...), Short: "the same, with --replace"}
		s.Next = append(s.Next, unbroken(row, shown.candidate.origin, s))
	}
	for n, id := range report.Of(p).Unknown() {
		name := ""
		if n == 0 {
			name = "trust"
		}
		s.Next = append(s.Next, report.Row{Name: name, Value: a.commandLine("trust", "add", id), Short: a.commandLine("trust", "add", id[:leastSeen])})
	}
	if line := a.diffLine(shown.candidate.origin); line != "" {
		row := report.Row{Name: "see more", Value: line, Short: a.shortDiff(shown.candidate.origin)}
		s.Next = append(s.Next, unbroken(row, shown.candidate.origin, s))
	}
	s.Next = append(s.Next, report.Row{Name: "report", Value: state.ReportPath(p.ID())})
	a.bar().clear()
	s.After = a.linesAfter(shown, s.Columns)
	var out bytes.Buffer
	fits, err := report.Of(p).WriteSummary(ctx, &out, s)
	if err != nil {
		return err
	}
	inPager := !fits && a.pages(shown.opts.paged)
	if err := a.onScreen(a.stderr, out.Bytes(), inPager); err != nil || !inPager || shown.opts.asks {
		return err
	}
	out.Reset()
	if err := report.Of(p).WriteRecap(&out, s); err != nil {
		return err
	}
	a.tell("")
	height := 1 + strings.Count(out.String(), "\n") // no row of it is longer than the screen
	if _, err := out.WriteTo(a.stderr); err != nil {
		return err
	}
	a.tell("%s", goesOn(s, height))
	return nil
}

// unbroken is a row with a command that names the paths of a preview. A path that is not plain is not
// broken by the terminal, since a part of it could be taken for a row: the command has its short form then,
// or is only described.
func unbroken(row report.Row, o preview.Origin, s report.Screen) report.Row {
	odd := func(path string) bool { return report.Name(path) != path }
	if s.Fits(row.Value) || !slices.ContainsFunc(append([]string{o.ProjectRoot, o.RestoreRoot}, o.RunDirs...), odd) {
		return row
	}
	if row.Value, row.Short = row.Short, ""; row.Value == "" || !s.Fits(row.Value) {
		row.Value = "spectrum diff (same paths)"
	}
	return row
}

// goesOn are the rows of a summary that stay on the screen after a pager, which can be left before its
// end: the command that approves, in its short form where the screen has too few lines, and the report.
func goesOn(s report.Screen, recap int) string {
	last := s.Next[len(s.Next)-1]
	text := last.Name + ": " + last.Value
	if first := s.Next[0]; first.Name == approves {
		whole := first.Name + ": " + first.Value + "\n" + text
		if recap+heightOf(whole, s.Columns)+s.After < s.Lines {
			return whole
		}
		return first.Name + ": " + first.Short + "\n" + text
	}
	return text
}

// approves is the name of the row with the command that approves.
const approves = "approve"

// freeFor is how many bytes are free for a restore; 0 if that is not known. It is only shown: a
// commit counts again.
func freeFor(r *restore.Restore) uint64 {
	at, err := machine.RoomOf(r.Root())
	if err != nil {
		return 0
	}
	free, err := at.Free()
	if err != nil {
		return 0
	}
	return free.Bytes
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

// heightOf is how many lines of a terminal a text without colors takes at most.
func heightOf(text string, columns int) (lines int) {
	if text == "" {
		return 0
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		lines += max(1, (visible.Columns(line)+columns-1)/max(1, columns))
	}
	return lines
}

// pages reports whether output that is longer than the screen goes through a pager: the session is
// interactive, and no script reads the output.
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

// shortDiff is diffLine with the name of a candidate in the place of its path; "" where that name is not
// its own. The restore root is left out where the candidate was sealed over it.
func (a *app) shortDiff(o preview.Origin) string {
	if len(o.RunDirs) != 1 || o.Chain {
		return ""
	}
	c, isName, err := a.findCandidate(filepath.Base(o.RunDirs[0]))
	if derived, unknown := projectRootOf(o.RunDirs); err != nil || !isName || string(c.RunDir) != o.RunDirs[0] || unknown != nil || derived != o.ProjectRoot {
		return ""
	}
	words := []string{"diff", filepath.Base(o.RunDirs[0])}
	if string(c.Over) != o.RestoreRoot {
		words = append(words, o.RestoreRoot)
	}
	return a.commandLine(words...)
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
