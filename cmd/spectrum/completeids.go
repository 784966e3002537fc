package main

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/statecheck"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spf13/cobra"
)

// listIDs lists the IDs of one kind that the state directory has, the newest first, each with
// what the shell shows beside it. What cannot be read is not listed.
type listIDs func(ctx context.Context, state *statedir.Dir) []cobra.Completion

// idArguments are the commands whose first argument is an ID.
var idArguments = map[string]listIDs{
	"spectrum rollback":           commitIDs,
	"spectrum savepoint show":     savepointIDs,
	"spectrum savepoint verify":   savepointIDs,
	"spectrum snapshot show":      snapshotIDs,
	"spectrum snapshot verify":    snapshotIDs,
	"spectrum snapshot restore":   snapshotIDs,
	"spectrum snapshot diff":      snapshotIDs,
	"spectrum snapshot export":    snapshotIDs,
	"spectrum quarantine show":    candidateIDs,
	"spectrum quarantine release": candidateIDs,
}

// takesRoot are the usage lines of commands that take a restore root after an ID.
var takesRoot = regexp.MustCompile(`ID(\|latest)? \[(OTHER_ID \| )?RESTORE_ROOT\]`)

// takesRuns are the usage lines of commands that take run directories.
var takesRuns = regexp.MustCompile(`\bRUN_DIR\b`)

// completeIDs has the shell complete the IDs that the state directory has.
func (a *app) completeIDs(root *cobra.Command) {
	for _, cmd := range allCommands(root) {
		if list := idArguments[cmd.CommandPath()]; list != nil {
			others := completionOf(cmd.Use)
			cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
				if emergency := cmd.Flag("emergency"); emergency != nil && emergency.Changed {
					return a.rootsFirst(cmd, args, typed)
				}
				if len(args) == 1 && takesRoot.MatchString(cmd.Use) {
					return a.rootsFirst(cmd, nil, typed)
				}
				if len(args) > 0 {
					return others(cmd, args, typed)
				}
				return a.listed(cmd, list, typed), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
			}
		}
		if takesRuns.MatchString(flagsOfUsage.ReplaceAllString(cmd.Use, "")) {
			others := completionOf(cmd.Use)
			cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
				names := a.candidateNames(cmd, typed)
				if len(args) > 0 && rootAfterRuns.MatchString(cmd.Use) {
					roots, _ := a.rootsFirst(cmd, nil, typed)
					names = append(roots, names...)
				}
				if len(names) > 0 {
					return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
				}
				return others(cmd, args, typed)
			}
		}
		if cmd.Flag("savepoint") != nil {
			complete(cmd, "savepoint", func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
				return a.listed(cmd, savepointIDs, typed), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
			})
		}
		if cmd.CommandPath() == "spectrum seal" {
			_ = cmd.RegisterFlagCompletionFunc("base-run", func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) { // the flag is there
				return a.candidateNames(cmd, typed), cobra.ShellCompDirectiveDefault | cobra.ShellCompDirectiveKeepOrder
			})
		}
		if cmd.CommandPath() == "spectrum commit" {
			_ = cmd.RegisterFlagCompletionFunc("preview", func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) { // the flag is there
				return a.listed(cmd, previewIDs, typed), cobra.ShellCompDirectiveNoFileComp
			})
		}
	}
}

// rootAfterRuns are the usage lines of commands that take a restore root after run directories.
var rootAfterRuns = regexp.MustCompile(`RUN_DIR\.\.\. \[?RESTORE_ROOT`)

func allCommands(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, sub := range cmd.Commands() {
		all = append(all, allCommands(sub)...)
	}
	return all
}

// listed lists IDs as short as they are taken, unless more is typed already. It makes no state
// directory.
func (a *app) listed(cmd *cobra.Command, list listIDs, typed string) []cobra.Completion {
	var all []cobra.Completion
	a.withState(cmd, func(state *statedir.Dir) {
		for _, c := range list(cmd.Context(), state) {
			id, about, _ := strings.Cut(c, "\t")
			if len(typed) <= shortest {
				id = id[:shortest]
			}
			if strings.HasPrefix(id, typed) {
				all = append(all, cobra.CompletionWithDesc(id, oneLine(about)))
			}
		}
	})
	return all
}

// described is an ID with what the shell shows beside it.
func described(id string, at time.Time, root string) cobra.Completion {
	return cobra.CompletionWithDesc(id, at.Local().Format("2006-01-02 15:04")+" "+shellQuote(root))
}

func commitIDs(_ context.Context, state *statedir.Dir) []cobra.Completion {
	all, _ := actionsOf(state, "")
	var ids []cobra.Completion
	for n := len(all) - 1; n >= 0; n-- {
		if c := all[n]; c.IsCommit() && c.State == audit.Done && c.UndoneBy == "" {
			ids = append(ids, described(c.ID, c.Began, audit.RootOf(c.Root)))
		}
	}
	return ids
}

// actionIDs are those of all commits and rollbacks.
func actionIDs(_ context.Context, state *statedir.Dir) []cobra.Completion {
	all, _ := actionsOf(state, "")
	var ids []cobra.Completion
	for _, c := range slices.Backward(all) {
		ids = append(ids, described(c.ID, c.Began, audit.RootOf(c.Root)))
	}
	return ids
}

func savepointIDs(_ context.Context, state *statedir.Dir) []cobra.Completion {
	store, err := statecheck.Savepoints(state)
	if err != nil {
		return nil
	}
	defer store.Close()
	found, err := store.Survey("")
	if err != nil {
		return nil
	}
	var ids []cobra.Completion
	for n := len(found.Standing) - 1; n >= 0; n-- {
		sp := found.Standing[n]
		ids = append(ids, described(sp.ID(), sp.Created(), sp.Root()))
	}
	return ids
}

func snapshotIDs(_ context.Context, state *statedir.Dir) []cobra.Completion {
	store, err := statecheck.Snapshots(state)
	if err != nil {
		return nil
	}
	defer store.Close()
	all, _, err := store.Survey("")
	if err != nil {
		return nil
	}
	var ids []cobra.Completion
	for n := len(all) - 1; n >= 0; n-- {
		ids = append(ids, described(all[n].ID, all[n].Time, all[n].Root))
	}
	return ids
}

func previewIDs(_ context.Context, state *statedir.Dir) []cobra.Completion {
	unused, _ := state.Unused()
	var ids []cobra.Completion
	for _, id := range unused {
		record, err := loadRecord(state, id)
		if err != nil {
			continue
		}
		name, err := state.RootName(record.Origin().RestoreRoot)
		if begun, failed := state.Attempts(name); err == nil && failed == nil && record.Attempts() == begun {
			ids = append(ids, cobra.CompletionWithDesc(id, shellQuote(record.Origin().RestoreRoot)))
		}
	}
	return ids
}

func candidateIDs(ctx context.Context, state *statedir.Dir) []cobra.Completion {
	store, err := openQuarantine(state)
	if err != nil {
		return nil
	}
	defer store.Close()
	records, err := store.List(ctx)
	if err != nil {
		return nil
	}
	var ids []cobra.Completion
	for _, r := range records {
		if len(r.Held()) > 0 {
			ids = append(ids, cobra.CompletionWithDesc(r.Source, shellQuote(r.RestoreRoot)))
		}
	}
	return ids
}
