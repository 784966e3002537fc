package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/review"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/preview/report"
	"github.com/spectrumfs/spectrum/restore/quarantine"
	"github.com/spectrumfs/spectrum/restore/statement"
	"github.com/spf13/cobra"
)

func newReview(app *app) *cobra.Command {
	var opts commitOptions
	cmd := &cobra.Command{
		Use:   "review [--chain] RUN_DIR... RESTORE_ROOT | --from-mount MOUNTPOINT [RESTORE_ROOT] | --savepoint ID RESTORE_ROOT",
		Short: "review a restore full-screen, decide, approve and commit it",
		Long: `review makes a preview and shows it full-screen: a tree of the files on the left,
the changes of the selected file on the right, and the verdict, the signer and the
conflicts above. You can leave files out and decide conflicts, and see the
approval statement change as you do. "?" lists the keys.

To approve, press A, read the whole statement, and type its first word, Approved.
Then review carries out the same commit as
"spectrum commit --preview ID --approve STATEMENT", with the same checks. Nothing is
written to the restore root before. q and Ctrl-C leave at any time, and the preview
is kept.

` + rootArgumentHelp + `
For one candidate of "spectrum run" or "seal --base" it is optional: the default is
the directory that the candidate was made from.

The flags are those of commit. The screen must have at least 40 columns and 12
lines; below 80 columns review shows the tree or the changes, one at a time. Set
NO_COLOR for no colours. Without a terminal, use preview and commit.`,
		Args: atLeast(0),
		RunE: func(cmd *cobra.Command, runDirs []string) error {
			if err := checkReason(cmd, opts.reason); err != nil {
				return err
			}
			return runReview(cmd, app, opts, runDirs)
		},
	}
	opts.flags(cmd)
	cmd.Flags().StringVar(&opts.receipt, "receipt", "", "write a receipt to this new `file`, in JSON")
	reasonFlag(cmd, &opts.reason)
	opts.paged.colorFlag(cmd)
	return cmd
}

func runReview(cmd *cobra.Command, app *app, opts commitOptions, args []string) error {
	if err := app.checkScreen(cmd); err != nil {
		return err
	}
	if err := opts.paged.check(cmd); err != nil {
		return err
	}
	runDirs, err := opts.takeRoot(cmd, app, args, true)
	if err != nil {
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
	instead := "without a whole screen, use \"spectrum preview RUN_DIR... RESTORE_ROOT\", then \"spectrum commit --preview ID --approve STATEMENT\""
	if typed := os.Args[1:]; len(typed) > 1 && typed[0] == cmd.Name() && !cmd.Flags().Changed("reason") && !cmd.Flags().Changed("receipt") {
		instead = fmt.Sprintf("without a whole screen: %s; then \"spectrum commit --preview ID --approve STATEMENT\"", shellLine(append([]string{"spectrum", "preview"}, typed[1:]...)))
	}
	why := ""
	switch {
	case a.json:
		why = "review cannot be combined with --json"
	case !onTerminal(os.Stdin):
		why = "review requires a terminal, and stdin is not one"
	case !onTerminal(a.stderr):
		why = "review draws on stderr, which is not a terminal"
	case os.Getenv("TERM") == "dumb", os.Getenv("TERM") == "":
		why = fmt.Sprintf("review cannot draw on a terminal of the type %q (TERM)", os.Getenv("TERM"))
	default:
		return nil
	}
	return &usageError{command: cmd.CommandPath(), err: errors.New(why), next: instead, noRuns: len(cmd.Flags().Args()) == 0}
}

// reviewed makes a preview and shows it until the operator approves something of it, which it
// enters in the options. It is an error to leave. A diverged file that the operator replaces needs
// another preview, of the same candidate.
func (a *app) reviewed(cmd *cobra.Command, state *statedir.Dir, opts *commitOptions, runDirs []string) error {
	opts.silent, opts.reread = true, true
	var roots []string
	for {
		made, err := a.propose(cmd, state, opts.previewOptions, runDirs)
		if err != nil {
			return err
		}
		if now := made.preview.BundleRoots(); roots != nil && !slices.Equal(now, roots) {
			made.close()
			return fmt.Errorf("the candidate changed after the review: its bundle roots are %s, and were %s", strings.Join(now, " "), strings.Join(roots, " "))
		}
		roots = made.preview.BundleRoots()
		replace, err := a.reviewOne(cmd, state, opts, &made)
		made.close()
		if err != nil || replace == "" {
			return err
		}
		opts.decisions = append(opts.decisions, replace+"="+string(preview.Replace))
	}
}

// reviewOne shows one preview on the whole screen. It returns the ID of the item that the
// operator replaces in the next preview, or "" and the options with what was approved.
func (a *app) reviewOne(cmd *cobra.Command, state *statedir.Dir, opts *commitOptions, made *proposal) (replace string, err error) {
	shown, err := a.present(cmd.Context(), state, made.presented)
	if err != nil {
		return "", err
	}
	made.leave() // a commit enters anew
	result, err := a.runScreen(cmd.Context(), made, shown)
	kept := fmt.Sprintf("preview %s was kept, and nothing was written", shown.id[:shortest])
	switch {
	case errors.Is(err, context.Canceled):
		return "", &leftError{a.goOn(made, shown.id, result.Draft), &keptError{kept, err}}
	case err != nil:
		return "", fmt.Errorf("%w; %s", err, kept)
	case result.Replace != "":
		return result.Replace, nil
	case result.Statement == "" && len(shown.held) > 0:
		return "", &quarantine.HeldError{Source: shown.source, Marks: shown.held}
	case result.Statement == "":
		return "", a.leftReview(made, shown, result.Draft)
	}
	a.tell("preview %s, statement: %s", shown.id[:shortest], result.Statement)
	opts.preview, opts.approve, opts.onScreen = shown.id, result.Statement, true
	return "", nil
}

// leftError is a review that was left with Ctrl-C, with the next steps.
type leftError struct {
	hints []string
	err   error
}

func (e *leftError) Error() string { return e.err.Error() }
func (e *leftError) Unwrap() error { return e.err }

// leftReview is the error of a review that was left.
func (a *app) leftReview(made *proposal, shown shownPreview, draft preview.Draft) error {
	left := a.approvalRequired(shown.id, shown.recommended)
	left.words = fmt.Sprintf("not approved: nothing was written, and preview %s was kept", shown.id[:shortest])
	left.next = a.goOn(made, shown.id, draft)
	return left
}

// goOn is the command that goes back into a review, and how to approve what was composed in it, and
// no more than that: what was left out and what was not decided stays so. A statement that is
// incomplete is in no command.
func (a *app) goOn(made *proposal, id string, draft preview.Draft) []string {
	hints := []string{a.reviewAgain(made.candidate.origin, made.candidate.asked)}
	switch {
	case draft.Why == nil && report.Of(made.preview).IsDone():
		hints = append(hints, "there is nothing to approve: every proposed file is there already")
	case draft.Why == nil:
		hints = append(hints, "or approve it: "+a.commandLine("commit", "--preview", id, "--approve", draft.Statement))
	case draft.Statement == "":
		hints = append(hints, oneLine(draft.Why.Error())+"; start the review again to choose")
	default:
		hints = append(hints, fmt.Sprintf("decide %s as well; the statement so far, which is incomplete: %s", statement.FormatConflicts(draft.Open), draft.Statement))
	}
	return hints
}

// runScreen shows a preview on the whole screen.
func (a *app) runScreen(ctx context.Context, made *proposal, shown shownPreview) (review.Result, error) {
	a.bar().clear()
	p := shown.preview
	over := report.Of(p).Overview(freeFor(made.restore))
	ctx, cancel := context.WithCancel(ctx)
	source := newReviewSource(a, made, p, over.Items)
	defer source.end()
	defer cancel()
	return review.Run(ctx, os.Stdin, a.stderr, review.Config{Overview: over, Chosen: p.Chosen(), Recap: recap(p), Source: source, Color: made.opts.paged.colored(true)})
}

// recap is the recap of a preview without what depends on the decisions that a review takes.
func recap(p *preview.Preview) []string {
	return slices.DeleteFunc(report.Of(p).Summary(), func(row string) bool { return strings.HasPrefix(row, "conflicts: ") })
}
