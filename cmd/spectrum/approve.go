package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/preview/report"
	"github.com/spectrumfs/spectrum/restore/quarantine"
	"github.com/spectrumfs/spectrum/restore/statement"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spf13/cobra"
)

// askApproval shows the preview on the terminal and reads the statement. A rejected candidate is
// reported before the question.
func (a *app) askApproval(cmd *cobra.Command, state *statedir.Dir, opts *commitOptions, runDirs []string) error {
	canAsk := a.canAsk()
	opts.silent = !canAsk && (a.quiet || a.json) // what is approved is shown, whatever else is not
	opts.asks = canAsk
	shown, err := a.showPreview(cmd, state, opts.previewOptions, runDirs)
	if err != nil {
		return err
	}
	if len(shown.held) > 0 {
		return &quarantine.HeldError{Source: shown.source, Marks: shown.held}
	}
	if !canAsk {
		return a.approvalRequired(shown.id, shown.recommended)
	}
	opts.preview = shown.id
	opts.approve, err = a.readStatement(cmd.Context(), shown, opts.paged)
	return err
}

// canAsk reports whether the operator can be asked for a statement.
func (a *app) canAsk() bool { return !a.json && onTerminal(os.Stdin) && onTerminal(a.stderr) }

// askAgain shows a preview that was kept on the terminal, and reads the statement.
func (a *app) askAgain(ctx context.Context, state *statedir.Dir, record *preview.Record, opts commitOptions) (string, error) {
	shown, err := a.showAgain(ctx, state, record, opts.previewOptions)
	if err != nil {
		return "", err
	}
	if len(shown.held) > 0 {
		return "", &quarantine.HeldError{Source: shown.source, Marks: shown.held}
	}
	return a.readStatement(ctx, shown, opts.paged)
}

// showAgain makes a preview that was kept again, and shows it. It is an error if it can no longer be
// approved.
func (a *app) showAgain(ctx context.Context, state *statedir.Dir, record *preview.Record, opts previewOptions) (shown shownPreview, _ error) {
	if err := action.CheckUsed(record, state, logOf(state)); err != nil {
		return shown, err
	}
	made, err := a.remake(ctx, state, record, opts.wait, nil)
	if err != nil {
		return shown, err
	}
	defer made.close()
	if err := record.Holds(made.preview); err != nil {
		return shown, err
	}
	made.opts, made.opts.asks = opts, true
	return a.present(ctx, state, made.presented)
}

// heldNow is [action.CheckRecorded] for the candidate of a preview.
func heldNow(ctx context.Context, state *statedir.Dir, record *preview.Record) error {
	store, err := openQuarantine(state)
	if err != nil {
		return err
	}
	defer store.Close()
	return action.CheckRecorded(ctx, store, record.Source())
}

// statementLines is how many lines one question takes.
const statementLines = 3

// readStatement asks for the statement on a shown preview: up to three lines are one approval. A
// refusal is not a vague approval. A line that is not a statement, or that does not fit the
// preview, is explained and asked for again. The third line is always returned, unless it alone is
// vague. A line that differs from a statement in form only is explained too, and is not vague.
func (a *app) readStatement(ctx context.Context, shown shownPreview, paged paged) (string, error) {
	a.tell("")
	if err := report.Of(shown.preview).WriteRecap(a.stderr, a.screen(paged)); err != nil {
		return "", err
	}
	a.tell("")
	if shown.recommended != "" {
		a.tell("to approve what the preview recommends: %s", shown.recommended)
	}
	a.tell("Type or paste the statement that approves this preview; Enter, no or Ctrl-C declines.")
	asking := a.newPrompt("statement: ")
	allVague := true // and no slip of form
	for left := statementLines - 1; ; left-- {
		line, err := asking.read(ctx)
		if errors.Is(err, context.Canceled) {
			err = &keptError{fmt.Sprintf("preview %s was kept, and nothing was written", shown.id[:shortest]), err}
		}
		if err != nil {
			return "", err
		}
		if isRefusal(line) {
			return "", a.notApproved(shown.id, shown.recommended)
		}
		said, vague := statement.Parse(statement.Unindented(line))
		wrong := vague
		if vague == nil {
			wrong, allVague = shown.preview.Fits(said), false
		}
		allVague = allVague && !statement.DiffersInForm(statement.Unindented(line))
		if wrong == nil || left == 0 && (vague == nil || allVague) {
			return line, nil
		}
		a.tell("spectrum: %s", oneLine(wrong.Error()))
		if left == 0 {
			return "", a.notApproved(shown.id, shown.recommended)
		}
		a.tell("hint: %s", oneLine(retypeHint(left, allVague, shown.recommended)))
	}
}

// retypeHint returns the hint for a line that is not a statement, or does not fit.
func retypeHint(left int, allVague bool, recommended string) string {
	hint := "type it again; Enter declines"
	switch {
	case left == 1 && allVague:
		hint += "; one more line that is not a statement puts the candidate in quarantine"
	case left == 1:
		hint += "; the next line is the last one"
	}
	if recommended != "" {
		hint += "; the preview recommends: " + recommended
	}
	return hint
}

// isRefusal reports whether a line declines to approve anything: in a word, or with the key or the
// command of a shell or an editor that leaves or goes back.
func isRefusal(line string) bool {
	switch strings.ToLower(strings.TrimRight(line, ".! ")) {
	case "", "n", "no", "reject", "rejected", "q", ":q", "quit", "exit", "fg", "bg":
		return true
	}
	return false
}

// remake makes a preview that was kept again. A commit keeps the outputs open as sources. The caller closes
// what was made.
func (a *app) remake(ctx context.Context, state *statedir.Dir, record *preview.Record, wait time.Duration, sources *verify.Sources) (made proposal, err error) {
	defer func() {
		if err != nil {
			made.close()
			made = proposal{}
		}
	}()
	if err := checkShown(record.Origin().View); err != nil {
		return made, err
	}
	if made.candidate, err = a.reopen(ctx, record.Origin()); err != nil {
		return made, err
	}
	made.candidate.asked, made.candidate.sources = record.Asked(), sources
	if made.in, err = a.enterFor(ctx, state, record.Origin().RestoreRoot, wait); err != nil {
		return made, err
	}
	if made.restore, made.preview, err = a.makePreview(ctx, state, made.candidate); err != nil {
		err = record.Remade(err)
	}
	return made, err
}
