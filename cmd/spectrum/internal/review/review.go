package review

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	tea "charm.land/bubbletea/v2"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/preview/report"
	"golang.org/x/sys/unix"
)

// A Source has what is shown of a preview beyond its overview.
type Source interface {
	// Changes returns the lines by which an item differs from what is there, as a patch in text
	// that may hold anything, or why there are none.
	Changes(ctx context.Context, number int) (patch []byte, why string, err error)
	// Page shows the content of an item, checked, in the operator's pager. It runs while this
	// package leaves the terminal alone.
	Page(ctx context.Context, number int) error
	// Draft composes the statement for a choice.
	Draft(c preview.Choice) preview.Draft
}

// Config is what is reviewed, and how it is shown.
type Config struct {
	Overview report.Overview
	Chosen   []int    // items that are chosen from the start
	Recap    []string // further effects of an approval, in a few lines
	Source   Source
	Color    bool
	Pending  func() bool // reports whether the terminal has input that was not read yet; nil: it is not known
}

// Result is how a review ended. The zero Result is that the operator left.
type Result struct {
	// Statement is what the operator gave: the statement that was shown, or, after three lines
	// that are none, the last of them.
	Statement string
	// Replace is the ID of an item that has diverged. If it is not "", the operator asks to review
	// a new preview in which the decision on it is "replace".
	Replace string
	// Draft is the statement as it was composed last.
	Draft preview.Draft
}

// ErrInterrupted is the end of a review by Ctrl-C.
var ErrInterrupted = fmt.Errorf("the review was left: %w", context.Canceled)

// Run shows a preview until the operator has approved something of it or leaves.
func Run(ctx context.Context, in io.Reader, out io.Writer, c Config) (Result, error) {
	if f, ok := in.(*os.File); ok && c.Pending == nil {
		c.Pending = func() bool {
			n, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCINQ)
			return err == nil && n > 0
		}
	}
	m := New(ctx, c)
	last, err := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler()).Run()
	if ended, ok := last.(*Model); ok {
		m = ended
	}
	result := Result{Draft: m.draft}
	switch {
	case ctx.Err() != nil:
		return result, fmt.Errorf("the review was ended: %w", ctx.Err())
	case errors.Is(err, tea.ErrProgramPanic):
		return result, fmt.Errorf("internal error: the review: %w", err)
	case err != nil:
		return result, fmt.Errorf("the terminal of the review: %w", err)
	case m.interrupted:
		return result, ErrInterrupted
	}
	result.Statement, result.Replace = m.given, m.replace
	return result, nil
}
