package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/kept"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/action"
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
		Use:   "recover [--acknowledge [--statement TEXT]] RESTORE_ROOT",
		Short: "end what a killed or failed commit left in a restore root",
		Long: `recover looks for unfinished commits in a restore root. Each is rolled back,
or completed when all of its files were in place and checked already. The next
preview or commit does the same by itself, but for a root that is halted: one
whose rollback has failed waits for this command.

What is not of the commit is never touched. Where something foreign is in the
way, the root stays halted until it is gone, or until somebody takes it as it is:
--acknowledge shows what cannot be undone and why, and asks on the terminal for a
statement that names it, like

    I have looked at /srv/restore; what is left of 1a2b3c4d stays.

Elsewhere that comes with --statement. Then the root is released: what is left
stays, and is nobody's. The statement is in the audit log before.

A root that is halted since a rollback could not be carried out is released when nothing
is unfinished there and nothing is damaged; else --acknowledge asks for a statement.

At last it looks for damage among what is kept of the root: snapshots, savepoints and
the audit log. It names each, ends with the commands that go on, and its exit status is 1 then.
Where the audit log was deleted or cut, or a snapshot, a savepoint or the host's key is lost,
--acknowledge accepts that against a statement, which the log has then; no check reports that
loss any more. Of contents it reads at most 256 MiB; "spectrum snapshot verify" reads all.`,
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if opts.statement != "" && !opts.acknowledge {
				return usage(cmd, "--statement goes with --acknowledge")
			}
			if err := checkReason(cmd, opts.reason); err != nil {
				return err
			}
			return runRecover(cmd.Context(), app, opts, args[0])
		},
	}
	cmd.Flags().BoolVar(&opts.acknowledge, "acknowledge", false, "release a halted root: what cannot be undone stays as it is")
	cmd.Flags().StringVar(&opts.statement, "statement", "", "the `text` that --acknowledge asks for, word for word")
	reasonFlag(cmd, &opts.reason)
	foreignFlag(cmd, &opts.foreign)
	lockFlag(cmd, &opts.wait)
	return cmd
}

func lockFlag(cmd *cobra.Command, wait *time.Duration) {
	cmd.Flags().DurationVar(wait, "lock-timeout", 0, "how long to wait for another commit in this root, like 90s (default: not at all)")
}

func runRecover(ctx context.Context, app *app, opts recoverOptions, path string) error {
	root, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	state, err := app.openStateApart(root)
	if err != nil {
		return err
	}
	defer state.Close()
	ended, err := app.recoverAs(ctx, state, root, action.Entry{Wait: opts.wait, Mode: staging.Person, Foreign: opts.foreign, Reason: opts.reason})
	if halts := action.UnfinishedOf(err); opts.acknowledge && len(halts) > 0 { // also what only a fault of the machine keeps from its end
		var released []staging.Outcome
		released, err = app.acknowledge(ctx, state, root, opts, haltedBy(state, root, err, halts))
		ended = append(ended, released...)
	}
	if err != nil {
		if halted, is := errors.AsType[*haltedError](err); is {
			halted.inRecover = true
		}
		app.tellEnded(ended)
		return err
	}
	name, err := state.RootName(action.RootPath(root))
	if err != nil {
		return err
	}
	flaws, err := app.flawsOf(ctx, state, name)
	if err != nil {
		app.tellEnded(ended)
		return err
	}
	app.tellFlaws(flaws)
	if flaws, err = app.acceptLoss(ctx, state, name, opts, flaws); err != nil {
		app.tellEnded(ended)
		return err
	}
	if err := app.endBar(ctx, state, name, opts, flaws); err != nil {
		app.tellEnded(ended)
		return err
	}
	_, isBarred := state.BarOf(name)
	return app.recovered(root, ended, flaws, isBarred)
}

// recoverAs enters the root, which ends what was left there, and leaves it.
func (a *app) recoverAs(ctx context.Context, state *statedir.Dir, root string, entry action.Entry) ([]staging.Outcome, error) {
	in, ended, err := a.enter(ctx, state, root, entry)
	if errors.Is(err, action.ErrNoRoot) {
		return ended, noRoot(state, root, err)
	}
	in.Leave()
	return ended, err
}

// recovered prints what became of what was found, and what is damaged. A root is barred in which a
// rollback that could not be carried out halts what goes on.
func (a *app) recovered(root string, ended []staging.Outcome, flaws []kept.Flaw, isBarred bool) error {
	attempts := make([]map[string]any, 0, len(ended))
	lines := make([]string, 0, len(ended))
	for _, o := range ended {
		attempt := map[string]any{"attempt": o.Attempt, "result": strings.ReplaceAll(o.Result.String(), " ", "_"), "left": nil}
		if o.Cause != nil {
			attempt["cause"] = jsonText(o.Cause.Error())
			a.tell("spectrum: all of it was in place, and is not as it was left: %s", oneLine(o.Cause.Error()))
		}
		if o.Left != nil {
			attempt["left"] = jsonText(o.Left.Error())
			a.tell("spectrum: left as it is: %s", oneLine(o.Left.Error()))
		}
		if again := againText(o); again != "" {
			a.tell("spectrum: %s %s was taken back%s", kindText(o.Kind), o.Attempt, again)
		}
		attempts = append(attempts, attempt)
		lines = append(lines, o.Result.String()+" "+o.Attempt)
	}
	damaged := []any{}
	for _, f := range flaws {
		damaged = append(damaged, f.Fields())
		lines = append(lines, oneLine(fmt.Sprintf("damaged %q", f.Path)))
	}
	found := map[string]any{"attempts": attempts, "damaged": damaged, "other_views": foreignViews(a.foreign), "restore_root": jsonText(root)}
	if len(flaws) > 0 {
		if !a.json {
			if err := a.text(strings.Join(lines, "\n")); err != nil {
				return err
			}
		}
		return stateDamaged(root, flaws, found, isBarred)
	}
	if len(lines) == 0 {
		lines = append(lines, "clean")
	}
	found["code"], found["ok"] = "OK", true
	return a.result(strings.Join(lines, "\n"), found)
}

// stateDamaged is the verdict on what is kept of a root in which nothing is left to be ended. Its
// hints are the remedies, each once, and last what accepts that which no remedy brings back.
func stateDamaged(root string, flaws []kept.Flaw, details map[string]any, isBarred bool) error {
	var hints []string
	for _, f := range kept.Fold(flaws) {
		if !slices.Contains(hints, f.Remedy) {
			hints = append(hints, f.Remedy)
		}
	}
	path := foreignOption(root) + shellQuote(root)
	switch {
	case len(lostOf(flaws)) > 0:
		hints = append(hints, fmt.Sprintf("if it is in no backup, \"spectrum recover --acknowledge %s\" accepts the loss, against a statement, and logs it", path))
	case isBarred:
		hints = append(hints, acknowledgeHint(path))
	}
	return &codedError{
		code: codeStateDamaged, details: details, hint: hints[0], hints: hints[1:],
		err: fmt.Errorf("nothing unfinished is left in %q, but what is kept of it is damaged: %s", root, numberOf(len(flaws), "finding")),
	}
}

// tellEnded says what an earlier commit had left. It is news even to those who
// want quiet.
func (a *app) tellEnded(ended []staging.Outcome) {
	for _, o := range ended {
		why := ""
		if o.Cause != nil {
			why = ": all of it was in place, and is not as it was left: " + oneLine(o.Cause.Error())
		}
		if o.Left != nil {
			why += "; " + oneLine(o.Left.Error())
		}
		a.tell("spectrum: %s%s", endedText(o), why)
	}
}

// kindText is the kind of an attempt in words.
func kindText(kind string) string { return strings.ReplaceAll(kind, "_", " ") }
