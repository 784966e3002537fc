package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/review"
	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/quarantine"
	"github.com/spectrumfs/spectrum/restore/statement"
	"github.com/spf13/cobra"
)

func newReview(app *app) *cobra.Command {
	var opts commitOptions
	cmd := &cobra.Command{
		Use:   "review --restore-root DIR [--chain] RUN_DIR... | --from-mount MOUNTPOINT",
		Short: "go through a restore on the whole screen, decide, approve and commit it",
		Long: `review makes a preview and shows it on the whole screen of the terminal: a tree of
the files on the left, what changes in each on the right, and above them the verdict,
the signer and the conflicts. Files can be left out and conflicts be decided; the
statement that approves the rest is composed in sight. "?" lists the keys.

To approve, press A, read the whole statement, and type its first word, Approved. What
follows is the same commit as "spectrum commit --preview ID --approve STATEMENT" does,
with the same checks. Until then nothing is written in the restore root: q and Ctrl-C
leave at any time, and the preview is kept.

The flags are those of commit. A screen of at least 40 columns and 12 lines is needed;
below 80 columns the tree and the changes are shown one at a time. With NO_COLOR there
are no colours. Without a terminal, use preview and commit.`,
		Args: atLeast(0),
		RunE: func(cmd *cobra.Command, runDirs []string) error {
			if err := checkReason(cmd, opts.reason); err != nil {
				return err
			}
			return runReview(cmd, app, opts, runDirs)
		},
	}
	opts.flags(cmd)
	cmd.Flags().StringVar(&opts.receipt, "receipt", "", "write what was done to this new `file`, in JSON")
	reasonFlag(cmd, &opts.reason)
	return cmd
}

func runReview(cmd *cobra.Command, app *app, opts commitOptions, runDirs []string) error {
	if err := app.checkScreen(cmd); err != nil {
		return err
	}
	if err := opts.check(cmd, runDirs); err != nil {
		return err
	}
	return app.commitAsked(cmd.Context(), opts, func(state *statedir.Dir, opts *commitOptions) error {
		return app.reviewed(cmd, state, opts, runDirs)
	})
}

// checkScreen rejects what no screen can be drawn on.
func (a *app) checkScreen(cmd *cobra.Command) error {
	const instead = "without a whole screen, use \"spectrum preview --restore-root DIR RUN_DIR...\", then \"spectrum commit --preview ID --approve STATEMENT\""
	why := ""
	switch {
	case a.json:
		why = "review is for a person, and --json for a program"
	case !onTerminal(os.Stdin):
		why = "review needs a terminal, and stdin is none"
	case !onTerminal(a.stderr):
		why = "review draws on stderr, which is no terminal"
	case os.Getenv("TERM") == "dumb", os.Getenv("TERM") == "":
		why = fmt.Sprintf("review cannot draw on a terminal of the type %q (TERM)", os.Getenv("TERM"))
	default:
		return nil
	}
	return &usageError{command: cmd.CommandPath(), err: errors.New(why), next: instead}
}

// reviewed makes a preview and shows it until the operator approves something of it, which it
// enters in the options. It is an error to leave.
func (a *app) reviewed(cmd *cobra.Command, state *statedir.Dir, opts *commitOptions, runDirs []string) error {
	opts.silent, opts.reread = true, true
	made, err := a.propose(cmd, state, opts.previewOptions, runDirs)
	if err != nil {
		return err
	}
	defer made.close()
	shown, err := a.present(cmd.Context(), state, made.presented)
	if err != nil {
		return err
	}
	made.leave() // a commit enters anew
	result, err := a.runScreen(cmd.Context(), &made, shown)
	kept := fmt.Sprintf("preview %s was kept, and nothing was written", shown.id[:shortest])
	if errors.Is(err, context.Canceled) {
		return &keptError{kept + "; to go on: " + a.goOn(shown.id, result.Draft), err}
	}
	if err != nil {
		return fmt.Errorf("%w; %s", err, kept)
	}
	if result.Statement == "" && len(shown.held) > 0 {
		return &quarantine.HeldError{Source: shown.source, Marks: shown.held}
	}
	if result.Statement == "" {
		return a.leftReview(shown, result.Draft)
	}
	a.tell("preview %s, statement: %s", shown.id[:shortest], result.Statement)
	opts.preview, opts.approve = shown.id, result.Statement
	return nil
}

// leftReview is the error of a review that was left.
func (a *app) leftReview(shown shownPreview, draft preview.Draft) error {
	left := a.approvalRequired(shown.id, shown.recommended)
	left.words = fmt.Sprintf("not approved: nothing was written, and preview %s was kept", shown.id[:shortest])
	left.command = a.goOn(shown.id, draft)
	return left
}

// goOn is how to go on with what was composed in a review, and with no more than that: what was
// left out and what was not decided stays so.
func (a *app) goOn(id string, draft preview.Draft) string {
	if draft.Why == nil {
		return a.commandLine("commit", "--preview", id, "--approve", draft.Statement)
	}
	if draft.Statement == "" {
		return oneLine(draft.Why.Error()) + "; start the review again to choose"
	}
	return fmt.Sprintf("decide %s as well, then run %s STATEMENT; the statement so far, which is incomplete: %s",
		statement.FormatConflicts(draft.Open), a.commandLine("commit", "--preview", id, "--approve"), draft.Statement)
}

// runScreen shows a preview on the whole screen.
func (a *app) runScreen(ctx context.Context, made *proposal, shown shownPreview) (review.Result, error) {
	free := uint64(0)
	if at, err := machine.RoomOf(made.restore.Root()); err == nil { // it is only shown: a commit counts again
		if room, err := at.Free(); err == nil {
			free = room.Bytes
		}
	}
	a.bar().clear()
	p := shown.preview
	over := p.Overview(free)
	ctx, cancel := context.WithCancel(ctx)
	source := newReviewSource(a, made, p, over.Items)
	defer source.end()
	defer cancel()
	return review.Run(ctx, os.Stdin, a.stderr, review.Config{Overview: over, Chosen: p.Chosen(), Recap: recap(p), Source: source, Color: colored()})
}

// recap is the recap of a preview without what depends on the decisions that a review takes.
func recap(p *preview.Preview) []string {
	return slices.DeleteFunc(p.Summary(), func(row string) bool { return strings.HasPrefix(row, "conflicts: ") })
}
