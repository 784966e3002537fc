package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/statecheck"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/records"
	"github.com/spectrumfs/spectrum/staging"
	"github.com/spf13/cobra"
)

type recoverOptions struct {
	acknowledge bool
	statement   string
	reason      string
	foreign     []string
	wait        time.Duration
}

func newRecover(app *app) *cobra.Command {
	var opts recoverOptions
	cmd := &cobra.Command{
		Use:   "recover [--acknowledge [--statement TEXT]] [RESTORE_ROOT]",
		Short: "recover a restore root after a killed or failed commit",
		Long: `recover ends unfinished commits in a restore root. It rolls each one back, or
completes it if all of its files were already in place and checked. The next
preview or commit does this too, except in a halted root: after a rollback has
failed, only this command continues.

recover never changes files that are not of the commit. If such a file is in the
way, the root stays halted until the file is gone, or until an operator accepts
the root as it is: --acknowledge shows what cannot be undone and why, and asks on
the terminal for a statement such as

    I have looked at /srv/restore; what is left of 1a2b3c4d stays.

Without a terminal, pass it with --statement. The statement is written to the
audit log, the root is released, and the files that are left stay.

A root that was halted because a rollback could not be carried out is released if
nothing in it is unfinished or damaged. Otherwise --acknowledge asks for a
statement.

Finally recover checks the snapshots, savepoints and audit log of the root. It reads
at most 256 MiB of the contents of snapshots ("spectrum snapshot verify" reads all). If it finds
damage it names it, prints the commands that continue, and exits with status 1. If
the audit log was deleted or cut, or a snapshot, a savepoint or the host key is
lost, --acknowledge accepts the loss with a statement that is written to the log;
later checks do not report it again.

RESTORE_ROOT is optional in a directory of a known restore root.`,
		Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if opts.statement != "" && !opts.acknowledge {
				return usage(cmd, "--statement requires --acknowledge")
			}
			if err := checkReason(cmd, opts.reason); err != nil {
				return err
			}
			path, err := app.recoverHere(cmd, args)
			if err != nil {
				return err
			}
			return runRecover(cmd.Context(), app, opts, path)
		},
	}
	cmd.Flags().BoolVar(&opts.acknowledge, "acknowledge", false, "release a halted root; what cannot be undone stays as it is")
	cmd.Flags().StringVar(&opts.statement, "statement", "", "the `text` that --acknowledge asks for, exactly")
	reasonFlag(cmd, &opts.reason)
	foreignFlag(cmd, &opts.foreign)
	lockFlag(cmd, &opts.wait)
	return cmd
}

func lockFlag(cmd *cobra.Command, wait *time.Duration) {
	cmd.Flags().DurationVar(wait, "lock-timeout", 0, "how long to wait for another command in this root, such as 90s (default: do not wait)")
}

// recoverHere returns the restore root that was named, or the known one that the working directory
// is in.
func (a *app) recoverHere(cmd *cobra.Command, args []string) (string, error) {
	if len(args) > 0 {
		return args[0], nil
	}
	if here := a.knownHere(); here != "" {
		a.say("restore root: %s", shellQuote(here))
		return here, nil
	}
	use := &usageError{
		command: cmd.CommandPath(), err: errors.New("the working directory is not in a known restore root"),
		next: "name the restore root: spectrum recover RESTORE_ROOT; \"spectrum status\" lists those that are known",
	}
	a.askRoot(use, unfinishedRoots, "recover")
	return "", use
}

// knownHere is rootHere for a command that has not opened the state directory; it makes none.
func (a *app) knownHere() string {
	state, err := a.existingState()
	if err != nil {
		return ""
	}
	defer state.Close()
	return rootHere(state)
}

func runRecover(ctx context.Context, app *app, opts recoverOptions, path string) error {
	root, state, err := app.openStateOf(path)
	if err != nil {
		return err
	}
	defer state.Close()
	hadLock := opts.wait == 0 && isLocked(root) // else a command may be at work and end meanwhile
	settled, ended, err := app.settle(ctx, state, root, &opts)
	var flaws []statecheck.Flaw
	if err == nil {
		flaws, err = app.checkSettled(ctx, state, settled, opts)
	}
	if err != nil {
		app.tellEnded(root, ended)
		return err
	}
	if hadLock && len(ended) == 0 {
		app.say("spectrum: a command was killed here before it changed anything; its lock was removed")
	}
	_, isBarred := state.BarOf(settled.Root())
	undo := ""
	if len(flaws) > 0 {
		undo = unrecordedHint(state, settled.Root(), root)
	}
	return app.recovered(root, ended, flaws, undo, isBarred)
}

// settle ends what is unfinished in the root. With --acknowledge it releases what cannot be undone,
// against the statement of the operator, which is then used up.
func (a *app) settle(ctx context.Context, state *statedir.Dir, root string, opts *recoverOptions) (action.Settled, []staging.Outcome, error) {
	settled, ended, err := a.recoverAs(ctx, state, root, action.Entry{Wait: opts.wait, Mode: staging.Person, Foreign: opts.foreign, Reason: opts.reason})
	if halts := action.UnfinishedOf(err); opts.acknowledge && len(halts) > 0 { // also what only a fault of the machine keeps from its end
		var released []staging.Outcome
		settled, released, err = a.acknowledge(ctx, state, root, *opts, haltedBy(state, root, err, halts))
		opts.statement = ""
		ended = append(ended, released...)
	}
	if halted, is := errors.AsType[*haltedError](err); is {
		halted.inRecover = true
	}
	return settled, ended, err
}

// checkSettled checks the records of a root, and returns the flaws that are left: with --acknowledge the
// operator accepts what is lost. It ends the halt of a rollback.
func (a *app) checkSettled(ctx context.Context, state *statedir.Dir, settled action.Settled, opts recoverOptions) ([]statecheck.Flaw, error) {
	if opts.acknowledge {
		if err := a.makeMarks(state, settled.Root()); err != nil {
			return nil, err
		}
	}
	flaws, err := a.flawsOf(ctx, state, settled.Root())
	if err != nil {
		return nil, err
	}
	a.tellFlaws(flaws)
	checked := settled.Checked(len(flaws) > 0, statecheck.LostOf(flaws))
	if opts.acknowledge && len(checked.Lost()) > 0 {
		if err := a.acceptLoss(ctx, state, checked, opts); err != nil {
			return nil, err
		}
		opts.statement = "" // it accepted the loss; the halt asks for its own
		if flaws, err = a.flawsOf(ctx, state, settled.Root()); err != nil {
			return nil, err
		}
		checked = settled.Checked(len(flaws) > 0, statecheck.LostOf(flaws))
	}
	return flaws, a.endBar(ctx, state, checked, opts)
}

// makeMarks makes the marks of rollbacks again that are missing. Of a damaged log none are known.
func (a *app) makeMarks(state *statedir.Dir, root string) error {
	missing, err := records.MakeMarks(state, root)
	if _, isDamaged := errors.AsType[*audit.DamageError](err); err != nil && !isDamaged {
		return err
	}
	if missing > 0 {
		a.tell("spectrum: made again: %s of rollbacks", numberOf(missing, "missing mark"))
	}
	return nil
}

// isLocked reports whether a command has left nothing in a restore root but its lock.
func isLocked(path string) bool {
	way, err := pathsafe.WayTo(path)
	if err != nil || way.Missing {
		return false
	}
	root, err := way.Open()
	if err != nil {
		return false
	}
	defer root.Close()
	left, err := staging.Leftovers(root)
	return err == nil && len(left) == 1 && left[0] == staging.LockName
}

// recoverAs enters the root, which ends what was left there, and leaves it.
func (a *app) recoverAs(ctx context.Context, state *statedir.Dir, root string, entry action.Entry) (action.Settled, []staging.Outcome, error) {
	in, ended, err := a.enter(ctx, state, root, entry)
	if err != nil {
		return action.Settled{}, ended, hinted(err, rootName{state, root, false}.hint(err))
	}
	defer in.Leave()
	settled, err := in.Settled(logger(state))
	return settled, ended, err
}

// recovered prints the result of each attempt, what is damaged, and how to undo a commit without its
// record. A root in which a rollback could not begin is barred: other actions are halted.
func (a *app) recovered(root string, ended []staging.Outcome, flaws []statecheck.Flaw, undo string, isBarred bool) error {
	attempts := make([]map[string]any, 0, len(ended))
	lines := make([]string, 0, len(ended))
	for _, o := range ended {
		attempt := map[string]any{"attempt": o.Attempt, "result": strings.ReplaceAll(o.Result.String(), " ", "_"), "left": nil}
		if o.Cause != nil {
			attempt["cause"] = jsonText(o.Cause.Error())
			a.tell("spectrum: it was complete, but its files changed afterwards: %s", oneLine(o.Cause.Error()))
		}
		if o.Left != nil {
			attempt["left"] = jsonText(o.Left.Error())
			a.tell("spectrum: left as it is: %s", oneLine(o.Left.Error()))
		}
		if len(o.Kept) > 0 {
			attempt["kept"] = keptFields(root, o.Kept)
		}
		if len(o.Stayed) > 0 {
			attempt["stayed"] = leftFields(stayedOf(&o))
		}
		a.tellStanding(root, &o)
		if isBackUndone(o) {
			a.tell("spectrum: %s %s was undone: the root is as before it; to continue, run the command that was killed again", kindText(o.Kind), o.Attempt)
		} else if o.Kind == staging.KindCommit && o.Left == nil {
			a.sayEndOf(o, root)
		}
		attempts = append(attempts, attempt)
		lines = append(lines, o.Result.String()+" "+o.Attempt)
	}
	damaged := []any{}
	for _, f := range flaws {
		damaged = append(damaged, f.Fields())
		if line := oneLine(fmt.Sprintf("damaged %q", f.Path)); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	found := map[string]any{"attempts": attempts, "damaged": damaged, "other_views": foreignViews(a.foreign), "restore_root": jsonText(root)}
	if len(flaws) > 0 {
		if !a.json {
			if err := a.text(strings.Join(lines, "\n")); err != nil {
				return err
			}
		}
		return stateDamaged(root, flaws, found, undo, isBarred)
	}
	if len(lines) == 0 {
		lines = append(lines, "clean")
	}
	found["code"], found["ok"] = "OK", true
	return a.result(strings.Join(lines, "\n"), found)
}

// sayEndOf prints what a recovered commit came to, and the next step.
func (a *app) sayEndOf(o staging.Outcome, root string) {
	switch o.Result {
	case staging.RolledBack:
		a.say("spectrum: commit %s was undone: the root is as before it; to commit again, make a new preview", o.Attempt)
	case staging.Completed:
		a.say("spectrum: commit %s is complete; \"spectrum rollback %s%[1]s\" undoes it", o.Attempt, foreignOption(root))
	case staging.Cleared:
		a.say("spectrum: commit %s had left only an empty directory, which was removed; \"spectrum status %s\" shows the root", o.Attempt, shellQuote(root))
	}
}

// stateDamaged is the verdict on what is kept of a root in which nothing is left to be ended. Its
// hints are undo, unless "", the remedies, each once, and last what accepts that which no remedy brings back.
func stateDamaged(root string, flaws []statecheck.Flaw, details map[string]any, undo string, isBarred bool) error {
	hints := known(undo)
	for _, f := range statecheck.Fold(flaws) {
		if !slices.Contains(hints, f.Remedy) {
			hints = append(hints, f.Remedy)
		}
	}
	path := foreignOption(root) + shellQuote(root)
	switch {
	case len(statecheck.LostOf(flaws)) > 0:
		hints = append(hints, fmt.Sprintf("if no backup has it, \"spectrum recover --acknowledge %s\" asks for a statement that accepts the loss, and logs it", path))
	case isBarred:
		hints = append(hints, acknowledgeHint(path))
	}
	return &codedError{
		code: codeStateDamaged, details: details, hint: hints[0], hints: hints[1:],
		err: fmt.Errorf("nothing unfinished is left in %q, but its records are damaged: %s", root, numberOf(len(flaws), "finding")),
	}
}

// tellEnded reports the result of an earlier commit in a root, also with --quiet.
func (a *app) tellEnded(root string, ended []staging.Outcome) {
	for _, o := range ended {
		why := ""
		if o.Cause != nil {
			why = ": it was complete, but its files changed afterwards: " + oneLine(o.Cause.Error())
		}
		if o.Left != nil {
			why += "; " + oneLine(o.Left.Error())
		}
		a.tell("spectrum: %s%s", endedText(o), why)
		a.tellStanding(root, &o)
	}
}

// kindText is the kind of an attempt in words.
func kindText(kind string) string { return strings.ReplaceAll(kind, "_", " ") }
