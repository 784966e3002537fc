package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/preview/report"
	"github.com/spectrumfs/spectrum/restore/quarantine"
	"github.com/spectrumfs/spectrum/restore/statement"
	"github.com/spectrumfs/spectrum/staging"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spf13/cobra"
)

type commitOptions struct {
	previewOptions
	preview string
	approve string
	reason  string
	receipt string
	file    newFile // of the receipt

	onScreen bool // it was approved in a review
}

func newCommit(app *app) *cobra.Command {
	var opts commitOptions
	cmd := &cobra.Command{
		Use:   "commit --preview ID --approve STATEMENT | [--chain] RUN_DIR... RESTORE_ROOT | --from-mount MOUNTPOINT [RESTORE_ROOT] | --savepoint ID RESTORE_ROOT",
		Short: "commit an approved restore: all of it or nothing",
		Long: `commit carries out a preview. The operator approves it with one of

    ` + preview.Exactly + `
    Approved: restore items R-001, R-002, and R-004 only.
    Approved: restore project state only. Do not restore identity-layer items.

A statement can end with decisions on conflicts, such as "Acknowledge C-001.". If
another user can rename a directory on the path of the restore root, that is a
conflict which every statement must acknowledge. A vague statement is rejected and
puts the candidate in quarantine. If only case, white space, the full stop or
quotes are wrong, or the statement does not fit the preview, commit only says so.

A preview can be committed once. It becomes void if the candidate, its targets or
the trusted validators change, or if another commit begins in the restore root.

On a terminal, without --approve, commit shows the preview and asks for the
statement. With run directories it accepts the flags of preview, but not with
--preview. No flag skips the preview or the statement. ` + rootArgumentHelp + `

--receipt writes one canonical JSON value to a new file outside the restore root and
the state directory when the commit is done: the IDs of the commit, its savepoint,
the snapshot before it, the preview and the bundles; what was created, replaced and
identical; and the command that undoes it.`,
		Args: atLeast(0),
		RunE: func(cmd *cobra.Command, runDirs []string) error {
			if err := checkReason(cmd, opts.reason); err != nil {
				return err
			}
			return runCommit(cmd, app, opts, runDirs)
		},
	}
	opts.flags(cmd)
	cmd.Flags().StringVar(&opts.preview, "preview", "", "`ID` of the preview to commit")
	cmd.Flags().StringVar(&opts.approve, "approve", "", "the approval `statement`, word for word")
	cmd.Flags().StringVar(&opts.receipt, "receipt", "", "write a receipt to this new `file`, in JSON")
	reasonFlag(cmd, &opts.reason)
	opts.paged.addFlags(cmd)
	return cmd
}

func runCommit(cmd *cobra.Command, app *app, opts commitOptions, args []string) error {
	if err := opts.paged.check(cmd); err != nil {
		return err
	}
	if opts.preview == "" && len(args) == 1 && !isThere(args[0]) {
		if id := app.previewNamed(args[0]); id != "" {
			return &usageError{command: cmd.CommandPath(), err: fmt.Errorf("%q is a preview, not a run directory", args[0]), meant: []string{"--preview " + id[:shortest]}}
		}
	}
	runDirs := args
	if opts.preview == "" && opts.approve == "" {
		var err error
		if runDirs, err = opts.takeRoot(cmd, app, args, false); err != nil { // the root must be named
			return err
		}
	}
	switch byID := opts.preview != ""; {
	case byID && len(runDirs) > 0 && opts.approve == "Approved:":
		return &usageError{command: cmd.CommandPath(), err: errors.New("the statement is not one argument"), next: "put it in quotes: --approve " + shellQuote(strings.Join(append([]string{opts.approve}, runDirs...), " "))}
	case byID && (len(runDirs) > 0 || opts.chain || opts.fromMount != "" || opts.savepoint != "" || opts.restoreRoot != "" || cmd.Flags().Changed("project-root")):
		return usage(cmd, "--preview already determines the run directories and the restore root")
	case byID && (opts.agent != "" || opts.html != "" || opts.report != "" || opts.replace || len(opts.scopes)+len(opts.decisions) > 0):
		return usage(cmd, "--agent, --scope, --decide, --replace, --html and --report make a new preview, and --preview names an existing one")
	case !byID && opts.approve != "":
		return usage(cmd, "--approve requires --preview: a statement approves a preview that was shown")
	case !byID && len(runDirs) == 0 && !opts.chain && opts.fromMount == "" && opts.savepoint == "":
		return withoutRuns(usage(cmd, "give --preview ID, or run directories"))
	case !byID:
		if err := opts.check(cmd, runDirs); err != nil {
			return err
		}
	}
	err := app.commitAsked(cmd.Context(), opts, func(state *statedir.Dir, opts *commitOptions) error {
		if opts.preview != "" {
			return nil
		}
		return app.askApproval(cmd, state, opts, runDirs)
	})
	if len(runDirs) != 1 {
		return err
	}
	return hinted(err, noTargetHint(err, func() (over, command string) { return app.sealedOver(runDirs[0]) }))
}

// commitAsked commits the approved preview. Ask sets the preview and the statement in the options
// if the command does not have them.
func (a *app) commitAsked(ctx context.Context, opts commitOptions, ask func(*statedir.Dir, *commitOptions) error) error {
	if err := opts.rootOfView(); err != nil {
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

// commitPreview commits a preview that was kept. When it counts no longer, the
// error has the command that makes it anew.
func (a *app) commitPreview(ctx context.Context, state *statedir.Dir, opts commitOptions) error {
	record, err := loadRecord(state, opts.preview)
	if err != nil {
		return err
	}
	if opts.approve == "" {
		if err := heldNow(ctx, state, record); err != nil {
			return err
		}
	}
	if opts.approve == "" && a.canAsk() {
		opts.approve, err = a.askAgain(ctx, state, record, opts)
	} else if opts.approve == "" {
		required := a.approvalRequired(record.ID(), record.Recommended())
		required.next = []string{required.command, fmt.Sprintf("to look at it again: %s; the report is %s", a.reviewAgain(record.Origin(), record.Asked()), shellQuote(state.ReportPath(record.ID())))}
		return required
	}
	if err == nil {
		err = a.commitRecord(ctx, state, record, opts)
	}
	c := verdictOf(err).code
	isVoid := c == codeApprovalStale || c == codeApprovalUsed
	if gone := removedHint(err, isVoid, record.Origin()); gone != "" {
		return refusedHint(err, gone)
	}
	if isVoid {
		words := previewWords(record.Origin(), record.Asked())
		if opts.onScreen {
			words[0] = "review"
		}
		return &againError{a.commandLine(words...), err}
	}
	return hinted(err, divergedHint(err, func() string { return a.decidesDiverged(record) }))
}

// maxDecided is how many decisions a printed command has.
const maxDecided = 5

// decidesDiverged is the command that previews again, and decides on conflicts with files that have diverged.
func (a *app) decidesDiverged(record *preview.Record) string {
	asked := record.Asked()
	decisions := map[string]statement.Verdict{}
	for _, c := range record.Pending() {
		if c.Diverged != "" && len(decisions) < maxDecided {
			decisions[c.Diverged] = preview.Replace
		}
	}
	maps.Copy(decisions, asked.Decisions)
	asked.Decisions = decisions
	return a.commandLine(previewWords(record.Origin(), asked)...)
}

// commitRecord verifies and plans again, requires the same preview and the statement, and commits,
// all under the lock of the restore root.
func (a *app) commitRecord(ctx context.Context, state *statedir.Dir, record *preview.Record, opts commitOptions) error {
	answer := &action.Answer{
		Record: record, Text: opts.approve, Used: state, Log: logOf(state),
		Quarantine: func() (*quarantine.Store, error) { return openQuarantine(state) },
	}
	said, err := answer.Statement(ctx)
	if slip, is := errors.AsType[*action.SlipError](err); is {
		return a.slipOfForm(record.ID(), opts.approve, heldNow(ctx, state, record), slip.Err)
	}
	if err != nil {
		return err
	}
	made, err := a.remake(ctx, state, record, opts.wait, new(verify.Sources))
	if err != nil {
		return err
	}
	defer made.close()
	if err := checkShown(record.Origin().View); err != nil { // again: to get here may have taken its time
		return err
	}
	approval, err := answer.Approve(ctx, said, made.preview, made.candidate.origin)
	if err != nil {
		return err
	}
	return a.commitApproved(ctx, state, made.in, decided{approval, made.candidate, made.restore, opts.reason, made.preview.Recommended(), opts.file})
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
		d.candidate.sources.Close() // they are verified and kept again, as those of the part
		part, err := a.derive(ctx, state, d)
		if err != nil {
			return err
		}
		defer part.close()
		r = part.restore
	}
	approved, err := in.Accept(ctx, d.approval, r, state)
	if err != nil {
		return err
	}
	a.hasDone("preview %s is used up", approved.PreviewID()[:shortest])
	plan := r.Plan()
	if err := a.carryOut(ctx, in, approved, d.reason); err != nil {
		return failedIn(state, in.Real(), blocked(err, d))
	}
	kinds := kindsOf(r)
	a.say("restored %s, %s, under %q%s", numberOf(plan.Files(), "file"), bytesText(plan.Bytes()), r.Root().Name(), kinds.text())
	if !a.quiet && !onTerminal(a.stderr) {
		_, _ = a.stderr.Write(report.Commit(approved.Outcome()))
	}
	if in.Savepoint() == "" { // the restore is complete, and stays so
		a.tell("spectrum: the savepoint was prepared, but could not be published; to publish it, run \"spectrum recover %s%s\"", foreignOption(in.Real()), shellQuote(r.Root().Name()))
	} else {
		a.say("savepoint %s", in.Savepoint())
		if onTerminal(a.stderr) {
			a.say("\"%s\" shows the full report%s", a.commandLine("savepoint", "show", in.Savepoint()[:shortest]), reportFile(in))
		}
		a.say("\"spectrum rollback %s%s\" undoes it", foreignOption(in.Real()), in.Commit())
	}
	done := fmt.Sprintf("commit %s: the restore under %q is complete", in.Commit(), r.Root().Name())
	if err := writeReceipt(d.receipt, a.commandLine("rollback", in.Commit()), in, approved, kinds); err != nil {
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

// blocked is the failure of a restore that cannot take a target away, with the statement that approves the
// rest.
func blocked(err error, d decided) error {
	if err == nil || !d.restore.Replaces() || d.restore.Blocked() == nil {
		return err
	}
	return hinted(err, blockedHint(err, d.safest))
}

// phaseWords are the texts for the phases of a commit.
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
			a.tell("spectrum: the restore is complete, but %q could not be removed; the next command removes it: %s", name, oneLine(err.Error()))
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
