package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/quarantine"
	"github.com/spectrumfs/spectrum/restore/statement"
	"github.com/spectrumfs/spectrum/staging"
	"github.com/spf13/cobra"
)

type commitOptions struct {
	previewOptions
	preview string
	approve string
	reason  string
	receipt string
	file    newFile // of the receipt
}

func newCommit(app *app) *cobra.Command {
	var opts commitOptions
	cmd := &cobra.Command{
		Use:   "commit --preview ID --approve STATEMENT | --restore-root DIR [--chain] RUN_DIR... | --from-mount MOUNTPOINT",
		Short: "carry an approved restore out: all of it or nothing",
		Long: `commit carries out a preview that the operator approves with one of

    ` + preview.Exactly + `
    Approved: restore items R-001, R-002, and R-004 only.
    Approved: restore project state only. Do not restore identity-layer items.

each of which may end with decisions on conflicts, like "Acknowledge C-001.". A name
on the way to the restore root that another user can rename is a conflict that the
statement has to acknowledge by its number, whatever it approves. A statement in any
other words is refused, and puts the candidate in quarantine.
Each preview is good for one commit, and for none once the candidate, the restore
root or whom you trust has changed, or any commit has begun there.

With run directories, on a terminal, commit shows the preview and asks for the
statement; the flags of preview go with these, and not with --preview: what was
asked is part of that preview. There is no flag that skips either.

With --receipt a file that must not exist yet, outside of the restore root and of the
state directory, gets one canonical JSON value when all is in place: the ids of the
commit, its savepoint, the snapshot before it, the preview and the bundles, what was
created, replaced and found identical, and the command that undoes it.`,
		Args: atLeast(0),
		RunE: func(cmd *cobra.Command, runDirs []string) error {
			if err := checkReason(cmd, opts.reason); err != nil {
				return err
			}
			return runCommit(cmd, app, opts, runDirs)
		},
	}
	opts.flags(cmd)
	cmd.Flags().StringVar(&opts.preview, "preview", "", "`id` of the preview to commit")
	cmd.Flags().StringVar(&opts.approve, "approve", "", "the approval `statement`, word for word")
	cmd.Flags().StringVar(&opts.receipt, "receipt", "", "write what was done to this new `file`, in JSON")
	reasonFlag(cmd, &opts.reason)
	noPagerFlag(cmd, &opts.paged.noPager)
	return cmd
}

func runCommit(cmd *cobra.Command, app *app, opts commitOptions, runDirs []string) error {
	switch byID := opts.preview != ""; {
	case byID && len(runDirs) > 0 && opts.approve == "Approved:":
		return &usageError{command: cmd.CommandPath(), err: errors.New("the statement is not one argument"), next: "put it in quotes: --approve " + shellQuote(strings.Join(append([]string{opts.approve}, runDirs...), " "))}
	case byID && (len(runDirs) > 0 || opts.chain || opts.fromMount != "" || opts.savepoint != "" || opts.restoreRoot != "" || cmd.Flags().Changed("project-root")):
		return usage(cmd, "--preview says already which run directories go where")
	case byID && (opts.agent != "" || opts.html != "" || opts.report != "" || opts.replace || len(opts.scopes)+len(opts.decisions) > 0):
		return usage(cmd, "what is asked with --agent, --scope, --decide, --replace, --html and --report is asked of a preview, and --preview names one that was made")
	case !byID && opts.approve != "":
		return usage(cmd, "--approve goes with --preview: what is approved must have been seen")
	case !byID && len(runDirs) == 0 && !opts.chain && opts.fromMount == "" && opts.savepoint == "":
		return usage(cmd, "give --preview ID, or run directories")
	case !byID:
		if err := opts.check(cmd, runDirs); err != nil {
			return err
		}
	}
	return app.commitAsked(cmd.Context(), opts, func(state *statedir.Dir, opts *commitOptions) error {
		if opts.preview != "" {
			return nil
		}
		return app.askApproval(cmd, state, opts, runDirs)
	})
}

// commitAsked commits what was approved. Ask enters the preview and the statement in the options,
// where they were not given with the command.
func (a *app) commitAsked(ctx context.Context, opts commitOptions, ask func(*statedir.Dir, *commitOptions) error) error {
	if err := opts.takeRoot(); err != nil {
		return err
	}
	state, err := a.openStateApart(opts.restoreRoot)
	if err != nil {
		return err
	}
	defer state.Close()
	if opts.file, err = openReceipt(state, &opts); err != nil {
		return err
	}
	defer opts.file.close()
	if err := ask(state, &opts); err != nil {
		return err
	}
	return a.commitPreview(ctx, state, opts)
}

// askApproval shows the preview on the terminal and reads the statement. A
// candidate that is rejected is reported as such before anybody is asked.
func (a *app) askApproval(cmd *cobra.Command, state *statedir.Dir, opts *commitOptions, runDirs []string) error {
	canAsk := !a.json && onTerminal(os.Stdin) && onTerminal(a.stderr)
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
	opts.approve, err = a.readStatement(cmd.Context(), shown)
	return err
}

// statementLines is how many lines one question takes (decision D24).
const statementLines = 3

// readStatement asks for the statement on a shown preview: up to three lines are one
// approval. To refuse is no vague approval. A line that is no statement, or one that does not
// fit what was shown, is explained and asked for again. The third is returned whatever it is,
// unless it alone is vague. One that differs from a statement in case, white space and the full
// stop only is explained too, and does not count.
func (a *app) readStatement(ctx context.Context, shown shownPreview) (string, error) {
	a.tell("")
	if err := shown.preview.WriteRecap(a.stderr, a.screen()); err != nil {
		return "", err
	}
	a.tell("")
	if shown.recommended != "" {
		a.tell("what is recommended is approved with: %s", shown.recommended)
	}
	a.tell("Type or paste the statement that approves this preview; Enter, no or Ctrl-C refuses.")
	asking := a.newPrompt("statement: ")
	allVague := true
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
		said, vague := statement.Parse(unindented(line))
		wrong := vague
		if vague == nil {
			wrong, allVague = shown.preview.Fits(said), false
		}
		isForm := vague != nil && statement.DiffersInForm(unindented(line))
		if wrong == nil || left == 0 && !isForm && (vague == nil || allVague) {
			return line, nil
		}
		a.tell("spectrum: %s", oneLine(wrong.Error()))
		if isForm {
			left++ // it is no vague answer
			a.tell("hint: %s", oneLine(retypeHint(statementLines, allVague, shown.recommended)))
			continue
		}
		if left == 0 {
			return "", a.notApproved(shown.id, shown.recommended)
		}
		a.tell("hint: %s", oneLine(retypeHint(left, allVague, shown.recommended)))
	}
}

// retypeHint says how to go on after a line that is no statement, or one that does not fit.
func retypeHint(left int, allVague bool, recommended string) string {
	hint := "type it again; Enter refuses"
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

// isRefusal reports whether a line declines to approve anything.
func isRefusal(line string) bool {
	switch strings.ToLower(strings.TrimRight(line, ".! ")) {
	case "", "n", "no", "reject", "rejected":
		return true
	}
	return false
}

// commitPreview commits a preview that was kept. When it counts no longer, the
// error has the command that makes it anew.
func (a *app) commitPreview(ctx context.Context, state *statedir.Dir, opts commitOptions) error {
	record, err := loadRecord(state, opts.preview)
	if err != nil {
		return err
	}
	if opts.approve == "" {
		return a.approvalRequired(record.ID(), record.Recommended())
	}
	err = a.commitRecord(ctx, state, record, opts)
	if c := verdictOf(err).code; c == codeApprovalStale || c == codeApprovalUsed {
		return &againError{a.commandLine(previewWords(record.Origin(), record.Asked())...), err}
	}
	return err
}

// commitRecord verifies and plans again, wants the same preview and the
// statement, and commits: all of it under the lock of the restore root.
func (a *app) commitRecord(ctx context.Context, state *statedir.Dir, record *preview.Record, opts commitOptions) error {
	said, err := statement.Parse(unindented(opts.approve))
	if used := checkUsed(state, record); used != nil { // nothing more can be approved with it
		return used
	}
	if err != nil {
		if used, failed := state.Used(record.ID()); used && failed == nil { // by a commit that is unfinished
			return preview.ErrUsed
		}
		return holdVague(ctx, state, record, opts.approve, err)
	}
	if err := checkShown(record.Origin().View); err != nil {
		return err
	}
	c, err := reopen(ctx, record.Origin())
	if err != nil {
		return err
	}
	defer c.close()
	c.asked = record.Asked()
	in, err := a.enterFor(ctx, state, record.Origin().RestoreRoot, opts.wait)
	if err != nil {
		return err
	}
	defer in.Leave()
	r, again, err := a.makePreview(ctx, state, c)
	if errors.Is(err, preview.ErrUnsettled) {
		return fmt.Errorf("%w: %s", preview.ErrStale, err.Error())
	}
	if errors.Is(err, preview.ErrDecision) {
		return fmt.Errorf("%w: a conflict that was decided on before is no longer there", preview.ErrStale)
	}
	if err != nil {
		return err
	}
	defer r.Close()
	if err := checkShown(record.Origin().View); err != nil { // again: to get here may have taken its time
		return err
	}
	approval, err := record.Approve(again, said)
	if errors.Is(err, preview.ErrUnfit) && again.ChangesAreUnusable() { // no statement fits it
		err = cmp.Or(checkQuarantine(ctx, state, again, c), err)
	}
	if err != nil {
		return err
	}
	if err := checkQuarantine(ctx, state, again, c); err != nil {
		return err
	}
	return a.commitApproved(ctx, state, in, decided{approval, c, r, opts.reason, again.Recommended(), opts.file})
}

// unindented is a statement without what pasting adds to it: white space before and after
// it, and line breaks with indentation in it.
func unindented(text string) string {
	if !strings.ContainsAny(text, "\n\r\t") {
		return strings.Trim(text, " ")
	}
	return strings.Join(strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(" \t\r\n", c) }), " ")
}

// holdVague marks the candidate of a preview that was answered with a vague statement.
func holdVague(ctx context.Context, state *statedir.Dir, record *preview.Record, text string, vague error) error {
	store, err := openQuarantine(state)
	if err != nil {
		return errors.Join(vague, err)
	}
	defer store.Close()
	return action.HoldVague(ctx, store, record, text, vague)
}

// checkQuarantine rejects a candidate that is held.
func checkQuarantine(ctx context.Context, state *statedir.Dir, p *preview.Preview, c *candidate) error {
	store, err := openQuarantine(state)
	if err != nil {
		return err
	}
	defer store.Close()
	return action.CheckQuarantine(ctx, store, c.origin, p)
}

// decided is an approval, with the candidate and the restore that it is about.
type decided struct {
	approval  *preview.Approval
	candidate *candidate
	restore   *restore.Restore
	reason    string // of the operator, for the log
	safest    string // the statement that the preview recommends
	receipt   newFile
}

// commitApproved carries out what was approved: the candidate as it is, or the
// approved part of it, sealed as a candidate of its own.
func (a *app) commitApproved(ctx context.Context, state *statedir.Dir, in *action.Root, d decided) error {
	r := d.restore
	if !d.approval.Whole() {
		part, err := a.derive(ctx, state, d)
		if err != nil {
			return err
		}
		defer part.close()
		r = part.restore
	}
	if err := action.Room(r, state.Root()); err != nil { // it can be retried with the same preview
		return restore.Internal(restore.Execute, err)
	}
	if r.Blocked() == nil { // what is blocked writes nothing
		if err := holdFor(ctx, in, r); err != nil {
			return err
		}
	}
	approved, err := d.approval.Accept(r, state)
	if err != nil && r.Blocked() == nil && verdictOf(err).status != statusApproval { // the lock was the first write of EXECUTE
		return restore.Internal(restore.Execute, err)
	}
	if err != nil {
		return err
	}
	a.hasDone("preview %s is used up", approved.PreviewID()[:shortest])
	plan := r.Plan()
	if err := a.carryOut(ctx, in, approved, d.reason); err != nil {
		return failedIn(state, in.Real(), blockedHint(err, d))
	}
	kinds := kindsOf(r)
	a.say("restored %s, %s, under %q%s", numberOf(plan.Files(), "file"), bytesText(plan.Bytes()), r.Root().Name(), kinds.text())
	if !a.quiet && !onTerminal(a.stderr) {
		_, _ = a.stderr.Write(approved.Outcome().Markdown())
	}
	if in.Savepoint() == "" { // the restore is complete, and stays so
		a.tell("spectrum: the savepoint is prepared, and could not be published; \"spectrum recover %s%s\" does that", foreignOption(in.Real()), shellQuote(r.Root().Name()))
	} else {
		a.say("savepoint %s", in.Savepoint())
		if onTerminal(a.stderr) {
			a.say("\"%s\" shows the full report%s", a.commandLine("savepoint", "show", in.Savepoint()), reportFile(in))
		}
		a.say("\"spectrum rollback %s%s\" undoes it", foreignOption(in.Real()), in.Commit())
	}
	done := fmt.Sprintf("commit %s: the restore under %q is complete", in.Commit(), r.Root().Name())
	if err := writeReceipt(d.receipt, in, approved, kinds); err != nil {
		return &doneError{done, "its receipt could not be written", "commit", err}
	}
	if err := a.commitResult(); err != nil {
		return &doneError{done, "its result could not be printed", "commit", err}
	}
	return nil
}

// reportFile names the file that has the report of a commit; "" where it cannot be found.
func reportFile(in *action.Root) string {
	sp, err := in.Savepoints().Find(in.Savepoint())
	if err != nil {
		return ""
	}
	return ", " + shellQuote(sp.ReportPath())
}

// blockedHint adds to the failure of a restore that replaces and removes what helps against a target
// that it cannot take away: to approve the rest.
func blockedHint(err error, d decided) error {
	failure, is := errors.AsType[*restore.Failure](err)
	if !is || failure.Code != restore.TargetPathExists || !d.restore.Replaces() || d.restore.Blocked() == nil {
		return err
	}
	hint := "what is named can be neither replaced nor removed: move it away, then preview again"
	if rest := d.safest; rest != "" {
		hint += fmt.Sprintf("; or preview again and approve the rest: %q", rest)
	}
	return refusedHint(err, hint)
}

// holdFor takes the lock of the restore root: from here on nobody else is at work there. A
// preview that somebody else's action has overtaken counts no longer.
func holdFor(ctx context.Context, in *action.Root, r *restore.Restore) error {
	err := in.HoldFor(ctx, r)
	var busy *staging.BusyError
	var failure *restore.Failure
	switch {
	case err == nil || errors.As(err, &busy) || errors.As(err, &failure) || ctx.Err() != nil:
		return err
	case errors.Is(err, staging.ErrOvertaken):
		return fmt.Errorf("%w: %s", preview.ErrStale, err.Error())
	}
	return restore.Internal(restore.Execute, err)
}

// phaseWords say what a phase of a commit does.
var phaseWords = map[string]string{
	staging.PhaseStage: "copying", staging.PhaseSync: "syncing", staging.PhaseFinalize: "moving into place", staging.PhaseVerify: "checking",
	staging.PhasePublish: "publishing and syncing",
}

// carryOut runs the commit with a progress bar for each of its phases.
func (a *app) carryOut(ctx context.Context, in *action.Root, approved *preview.Approved, reason string) error {
	plan := approved.Restore().Plan()
	bar := a.newBar("preparing")
	defer bar.done()
	now := ""
	return action.Commit(ctx, in, approved, action.Watch{
		Reason: reason,
		Progress: func(phase string, bytes int64) {
			if bytes > 0 {
				bar.add(bytes)
				return
			}
			if phase == now { // it is an empty file
				return
			}
			if now = phase; phase == staging.PhaseStage || phase == staging.PhaseVerify {
				bar.begin(phaseWords[phase], plan.Files(), plan.Bytes())
			} else {
				bar.begin(phaseWords[phase], 0, 0)
			}
		},
		Leftover: func(name string, err error) {
			a.tell("spectrum: the restore is complete, but %q could not be removed, which the next command does: %s", name, oneLine(err.Error()))
		},
		LeftOut: func(l staging.LeftOut) {
			a.tell("spectrum: %s was not given the %s of the file that it replaced: %s", shellQuote(l.Path.String()), l.What, oneLine(l.Why.Error()))
		},
		Kept: func(k staging.Kept) {
			path, at := shellQuote(k.Path.String()), shellQuote(filepath.Join(in.Real(), k.At))
			switch {
			case k.Old:
				a.tell("spectrum: another process has put a newer file at %s, which stays; the file that was there is kept in %s", path, at)
			case k.Undone:
				a.tell("spectrum: another process writes to the file that was at %s before the commit was undone, so that file is kept in %s", path, at)
			case slices.Contains(plan.Removes(), k.Path):
				a.tell("spectrum: another process writes to the file that was removed from %s, so that file is kept in %s", path, at)
			default:
				a.tell("spectrum: another process writes to the file that %s replaced, so that file is kept in %s", path, at)
			}
		},
	})
}

func (a *app) commitResult() error {
	if !a.json {
		return a.text("OK")
	}
	raw, err := restore.ResultOf(nil).JSON()
	if err != nil {
		return err
	}
	return a.raw(raw)
}
