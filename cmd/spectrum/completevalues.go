package main

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/restore/trust"
	"github.com/spf13/cobra"
)

// completeValues has the shell complete the values of flags and arguments that are neither an ID
// nor only a file: laws, scopes, restore roots, validators and conflicts.
func (a *app) completeValues(root *cobra.Command) {
	for _, cmd := range allCommands(root) {
		switch cmd.CommandPath() {
		case "spectrum verify":
			complete(cmd, "law", cobra.FixedCompletions(laws, cobra.ShellCompDirectiveNoFileComp))
		case "spectrum status", "spectrum log", "spectrum recover":
			cmd.ValidArgsFunction = a.rootsFirst
		case "spectrum trust remove", "spectrum trust revoke":
			cmd.ValidArgsFunction = a.pinnedValidators
		}
		if cmd.Flag("decide") != nil {
			complete(cmd, "decide", a.undecidedConflicts)
			complete(cmd, "scope", scopes)
		}
		if f := cmd.Flag("restore-root"); f != nil {
			f.Annotations = nil // cobra would not ask for values
			complete(cmd, "restore-root", func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
				return a.rootsFirst(cmd, nil, typed)
			})
		}
	}
}

// complete registers a completion. The only error is that the flag is not there, or has one.
func complete(cmd *cobra.Command, flag string, values cobra.CompletionFunc) {
	_ = cmd.RegisterFlagCompletionFunc(flag, values)
}

// rootsFirst completes the restore roots that the state directory knows; where none of them
// begins with what is typed, directories.
func (a *app) rootsFirst(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var roots []cobra.Completion
	a.withState(cmd, func(state *statedir.Dir) {
		paths, _ := state.RootPaths()
		for _, path := range paths {
			if strings.HasPrefix(path, typed) && !slices.Contains(roots, path) {
				roots = append(roots, path)
			}
		}
	})
	if len(roots) == 0 {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	return roots, cobra.ShellCompDirectiveDefault | cobra.ShellCompDirectiveKeepOrder
}

// withState opens the state directory, and makes none. What cannot be read is not completed.
func (a *app) withState(cmd *cobra.Command, list func(state *statedir.Dir)) {
	configLeniently(cmd)
	state, err := a.existingState()
	if err != nil {
		return
	}
	defer state.Close()
	list(state)
}

func scopes(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	before := typed[:strings.LastIndex(typed, ",")+1]
	var all []cobra.Completion
	for _, s := range scope.All() {
		if value := before + string(s); strings.HasPrefix(value, typed) {
			all = append(all, value)
		}
	}
	return all, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// pinnedValidators completes the validators that are pinned and not revoked.
func (a *app) pinnedValidators(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var ids []cobra.Completion
	a.withState(cmd, func(state *statedir.Dir) {
		policy, err := loadTrust(state)
		if err != nil || len(args) > 0 {
			return
		}
		for _, r := range policy.Pinned() {
			if strings.HasPrefix(r.ID, typed) && policy.Of(r.ID) == trust.Pinned {
				ids = append(ids, cobra.CompletionWithDesc(r.ID, oneLine(r.Note)))
			}
		}
	})
	return ids, cobra.ShellCompDirectiveNoFileComp
}

// undecidedConflicts completes the conflicts that the previews of the restore root, which are not
// used yet, have left to decide; after "=" the decisions.
func (a *app) undecidedConflicts(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var all []cobra.Completion
	if id, _, found := strings.Cut(typed, "="); found {
		for _, decision := range []string{"acknowledged", "rejected", "resolved", "replace", "keep"} {
			if value := id + "=" + decision; strings.HasPrefix(value, typed) {
				all = append(all, value)
			}
		}
		return all, cobra.ShellCompDirectiveNoFileComp
	}
	a.withState(cmd, func(state *statedir.Dir) {
		root, _ := cmd.Flags().GetString("restore-root")
		for _, c := range conflictsToDecide(state, root) {
			if strings.HasPrefix(c, typed) {
				all = append(all, c)
			}
		}
	})
	return all, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}

// conflictsToDecide lists "ID=" of each conflict that is pending in an unused preview of a restore
// root, or of any for "", with what it is about.
func conflictsToDecide(state *statedir.Dir, root string) []cobra.Completion {
	about := map[string]string{}
	unused, _ := state.Unused()
	for _, id := range unused {
		record, err := loadRecord(state, id)
		if err != nil || root != "" && filepath.Clean(root) != record.Origin().RestoreRoot {
			continue
		}
		for _, c := range record.Pending() {
			about[c.ID] = shellQuote(c.Path)
		}
	}
	var all []cobra.Completion
	for id, path := range about {
		all = append(all, cobra.CompletionWithDesc(id+"=", path))
	}
	slices.Sort(all)
	return all
}
