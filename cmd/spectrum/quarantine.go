package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/quarantine"
	"github.com/spf13/cobra"
)

func newQuarantine(app *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "quarantine",
		Short: "list and release candidates in quarantine",
		Long: `quarantine lists and releases candidates that must not be committed until a
finding is clarified. It never deletes or changes a candidate.

Findings of preview and commit hold a candidate as long as they are found. A vague
approval holds it until an operator releases it. A release applies to the current
findings, as show prints them: a new finding holds the candidate again.

SOURCE_ID is the bundle root or chain root of the candidate, or its first four or
more digits. "latest" is the candidate that was quarantined last, for the restore
root that contains the working directory, or for all; show also takes one that was
released since.`,
	}
	cmd.AddCommand(newQuarantineList(app), newQuarantineShow(app), newQuarantineRelease(app))
	return cmd
}

func newQuarantineList(app *app) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "list the candidates in quarantine, and the rules that hold them",
		Args:  exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return app.withQuarantine(func(store *quarantine.Store) error { return app.listQuarantine(cmd.Context(), store, all) })
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "also list cleared and released candidates")
	return cmd
}

func newQuarantineShow(app *app) *cobra.Command {
	return &cobra.Command{
		Use:   "show SOURCE_ID|latest",
		Short: "show the findings of a candidate, and how they were resolved",
		Args:  exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return app.withQuarantineOf(cmd.Context(), args[0], newestMarked, func(store *quarantine.Store, source string) error {
				return app.showQuarantine(cmd.Context(), store, source)
			})
		},
	}
}

func newQuarantineRelease(app *app) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "release SOURCE_ID|latest --reason TEXT",
		Short: "release a candidate from quarantine",
		Args:  exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if reason == "" {
				return &usageError{
					command: cmd.CommandPath(), err: errors.New("--reason is required: the audit log keeps how the findings were resolved"),
					next: "for example: " + app.commandLine("quarantine", "release", args[0], "--reason", "compared with the original"),
				}
			}
			if reason == placeholder {
				return usage(cmd, "--reason: replace %s by your own words: how the findings were resolved", placeholder)
			}
			err := app.withQuarantineOf(cmd.Context(), args[0], action.NewestHeld, func(store *quarantine.Store, source string) error {
				return app.releaseQuarantine(cmd.Context(), store, source, reason)
			})
			if errors.Is(err, quarantine.ErrReason) {
				return usage(cmd, "--reason: %w", quarantine.ErrReason)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "how the findings were resolved, one line of `text`")
	return cmd
}

// withQuarantine runs do with the quarantine of the state directory.
func (a *app) withQuarantine(do func(*quarantine.Store) error) error {
	state, err := a.openState()
	if err != nil {
		return err
	}
	defer state.Close()
	store, err := openQuarantine(state)
	if err != nil {
		return err
	}
	defer store.Close()
	return do(store)
}

// withQuarantineOf is withQuarantine for one candidate, by its ID or latest, which newest finds.
func (a *app) withQuarantineOf(ctx context.Context, word string, newest func([]quarantine.Record, string) string, do func(*quarantine.Store, string) error) error {
	here := ""
	if word == latest {
		here = a.knownHere()
	}
	return a.withQuarantine(func(store *quarantine.Store) error {
		if word != latest {
			return do(store, word)
		}
		records, err := store.List(ctx)
		if err != nil {
			return err
		}
		source := newest(records, here)
		if source == "" {
			return noneHeld(here, slices.ContainsFunc(records, func(r quarantine.Record) bool { return len(r.Held()) > 0 }))
		}
		return do(store, source)
	})
}

// newestMarked is [action.NewestHeld], or the candidate that was held last if none is held now.
func newestMarked(records []quarantine.Record, root string) string {
	if held := action.NewestHeld(records, root); held != "" {
		return held
	}
	source, since := "", time.Time{}
	for _, r := range records {
		for _, m := range r.Marks {
			if (root == "" || r.RestoreRoot == root) && (source == "" || m.Since.After(since)) {
				source, since = r.Source, m.Since
			}
		}
	}
	return source
}

// noneHeld is the error where latest names no candidate in quarantine, of the known restore root here,
// or "" for all. Others reports whether one is held for another root.
func noneHeld(here string, others bool) error {
	switch {
	case here == "":
		return refusedHint(errors.New("no candidate is in quarantine"), "\"spectrum quarantine list --all\" lists those that were")
	case others:
		return refusedHint(fmt.Errorf("no candidate for %q, the restore root of this directory, is in quarantine; others are", here), "\"spectrum quarantine list\" lists them; outside this directory latest is the newest of all")
	}
	return refusedHint(fmt.Errorf("no candidate for %q, the restore root of this directory, is in quarantine", here), "\"spectrum quarantine list --all\" lists those that were")
}

// openQuarantine opens the quarantine, each change of which is logged before it
// is made. The state directory must stay open as long as the store is used.
func openQuarantine(state *statedir.Dir) (*quarantine.Store, error) {
	place, err := state.Quarantine()
	if err != nil {
		return nil, err
	}
	store, err := quarantine.In(place, action.LogQuarantine(logger(state)))
	if err != nil {
		return nil, refusedHint(errors.Join(err, place.Close()), stateHint)
	}
	return store, nil
}

func (a *app) listQuarantine(ctx context.Context, store *quarantine.Store, all bool) error {
	records, err := store.List(ctx)
	if err != nil {
		return err
	}
	lines, objects := []string{}, []any{}
	for _, r := range records {
		marks := r.Held()
		if all {
			marks = r.Marks
		}
		if len(marks) > 0 {
			lines = append(lines, r.Source+" "+rulesText(marks))
			objects = append(objects, recordFields(r, marks))
		}
	}
	return a.result(strings.Join(lines, "\n"), map[string]any{"candidates": objects, "code": "OK", "ok": true})
}

// rulesText names the rules of marks, and what became of each: "held a, b; cleared c".
func rulesText(marks []quarantine.Mark) string {
	var parts []string
	for _, state := range []string{"held", "released", "cleared"} {
		var words []string
		for _, m := range marks {
			if m.State() == state && !slices.Contains(words, string(m.Rule)) {
				words = append(words, string(m.Rule))
			}
		}
		if len(words) > 0 {
			parts = append(parts, state+" "+strings.Join(words, ", "))
		}
	}
	return strings.Join(parts, "; ")
}

func (a *app) showQuarantine(ctx context.Context, store *quarantine.Store, source string) error {
	r, err := store.Show(ctx, source)
	if err != nil {
		return err
	}
	fields := recordFields(r, r.Marks)
	fields["code"], fields["ok"] = "OK", true
	return a.result(recordText(r), fields)
}

// recordText is a record for people. What came from outside is quoted.
func recordText(r quarantine.Record) string {
	lines := []string{r.Source, fmt.Sprintf("restore root %q", r.RestoreRoot)}
	for _, dir := range r.RunDirs {
		lines = append(lines, fmt.Sprintf("run directory %q", dir))
	}
	for _, m := range r.Marks {
		line := fmt.Sprintf("%s %s since %s %q", m.State(), m.Rule, m.Since.Format(time.RFC3339), m.Detail)
		switch {
		case m.Released != nil:
			line += fmt.Sprintf(", released %s by %s %q", m.Released.Time.Format(time.RFC3339), m.Released.Operator, m.Released.Reason)
		case m.Cleared != nil:
			line += ", cleared " + m.Cleared.Format(time.RFC3339)
		}
		lines = append(lines, line)
	}
	for i, line := range lines {
		lines[i] = oneLine(line)
	}
	return strings.Join(lines, "\n")
}

// recordFields is a record with these marks of it as JSON shows it.
func recordFields(r quarantine.Record, marks []quarantine.Mark) map[string]any {
	objects := []any{}
	for _, m := range marks {
		objects = append(objects, map[string]any{
			"cleared": m.Cleared, "detail": m.Detail, "released": m.Released, "rule": string(m.Rule), "since": m.Since, "state": m.State(),
		})
	}
	return map[string]any{
		"held": len(r.Held()) > 0, "marks": objects, "restore_root": r.RestoreRoot, "run_dirs": r.RunDirs, "source_id": r.Source,
	}
}

func (a *app) releaseQuarantine(ctx context.Context, store *quarantine.Store, source, reason string) error {
	released, err := store.Release(ctx, source, reason)
	if err != nil {
		return err
	}
	fields := recordFields(released, released.Marks)
	fields["code"], fields["ok"] = "OK", true
	return a.result(released.Source+" "+rulesText(released.Marks), fields)
}
