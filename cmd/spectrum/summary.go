package main

import (
	"bytes"
	"context"
	"os"

	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/preview"
	"golang.org/x/term"
)

// screen is the terminal on stderr.
func (a *app) screen() preview.Screen {
	s := preview.Screen{Columns: columnsOf(a.stderr), Lines: preview.MaxLines, Color: onTerminal(a.stderr) && colored()}
	if f, ok := a.stderr.(*os.File); ok {
		if _, height, err := term.GetSize(int(f.Fd())); err == nil && height > 0 {
			s.Lines = height
		}
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
	if diff := a.diffLine(shown.candidate.origin); diff != "" && s.Lines > preview.LowScreen { // else the verdict scrolls away
		s.Next = append(s.Next, preview.Row{Name: "see more", Value: diff})
	}
	s.Next = append(s.Next, preview.Row{Name: "report", Value: state.ReportPath(p.ID())})
	a.bar().clear()
	var out bytes.Buffer
	if err := p.WriteSummary(ctx, &out, s); err != nil {
		return err
	}
	_, err := a.stderr.Write(out.Bytes())
	return err
}

// approveLine is the command that approves what a preview recommends; "" where it recommends
// nothing.
func (a *app) approveLine(p *preview.Preview) string {
	if p.Recommended() == "" {
		return ""
	}
	return a.commandLine("commit", "--preview", p.ID()[:shortest], "--approve", p.Recommended())
}

// diffLine is the command that shows the content of what a preview is about; "" for a chain,
// whose command would be longer than what it is worth.
func (a *app) diffLine(o preview.Origin) string {
	if len(o.RunDirs) != 1 || o.Chain {
		return ""
	}
	words := []string{"diff"}
	if derived, err := projectRootOf(o.RunDirs); err != nil || derived != o.ProjectRoot {
		words = append(words, "--project-root", o.ProjectRoot)
	}
	return a.commandLine(append(words, o.RunDirs[0], o.RestoreRoot)...)
}
