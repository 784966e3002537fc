package main

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/fusefs/fusemount"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/restore/statement"
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
		case "spectrum status", "spectrum recover", "spectrum savepoint list", "spectrum snapshot list",
			"spectrum snapshot take", "spectrum snapshot prune", "spectrum snapshot watch", "spectrum doctor":
			cmd.ValidArgsFunction = a.rootsFirst
		case "spectrum umount":
			cmd.ValidArgsFunction = liveViews
		case "spectrum seal", "spectrum run":
			complete(cmd, "scope", patternScopes)
		case "spectrum log":
			cmd.ValidArgsFunction = a.rootsAndActions
		case "spectrum trust add":
			cmd.ValidArgsFunction = a.seenUnpinned
		case "spectrum trust remove":
			cmd.ValidArgsFunction = a.pinnedValidators
		case "spectrum trust revoke":
			cmd.ValidArgsFunction = a.pinnedAndSeen
		}
		if cmd.Flag("decide") != nil {
			complete(cmd, "decide", a.undecidedConflicts)
			complete(cmd, "scope", scopes)
		}
		for _, flag := range []string{"restore-root", "foreign-root"} {
			f := cmd.Flag(flag)
			if f == nil {
				continue
			}
			f.Annotations = nil // cobra would not complete values
			complete(cmd, flag, func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
				return a.rootsFirst(cmd, nil, typed)
			})
		}
	}
}

// complete registers a completion. The only error is that the flag is not there, or has one.
func complete(cmd *cobra.Command, flag string, values cobra.CompletionFunc) {
	_ = cmd.RegisterFlagCompletionFunc(flag, values)
}

// rootsFirst completes the restore roots of the state directory; if none has the prefix,
// directories.
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

// rootsAndActions completes restore roots and the IDs of commits and rollbacks; after an ID, roots.
func (a *app) rootsAndActions(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 1 && (args[0] == latest || likeAction.MatchString(args[0])) {
		return a.rootsFirst(cmd, nil, typed)
	}
	roots, directive := a.rootsFirst(cmd, args, typed)
	if len(args) > 0 {
		return roots, directive
	}
	if ids := a.listed(cmd, actionIDs, typed); len(ids) > 0 {
		return append(roots, ids...), cobra.ShellCompDirectiveKeepOrder
	}
	return roots, directive
}

// seenUnpinned completes the validators that have signed what is kept here, and are neither pinned
// nor revoked.
func (a *app) seenUnpinned(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var ids []cobra.Completion
	a.withState(cmd, func(state *statedir.Dir) {
		policy, err := loadTrust(state)
		if err != nil || len(args) > 0 {
			return
		}
		host, _ := hostID(state) // its key needs no pin
		seen := seenValidators(state)
		for _, id := range slices.Sorted(maps.Keys(seen)) {
			of := policy.Of(id)
			if strings.HasPrefix(id, typed) && id != host && of != trust.Pinned && of != trust.Revoked {
				ids = append(ids, cobra.CompletionWithDesc(id, oneLine(seen[id][0].text)))
			}
		}
	})
	return ids, cobra.ShellCompDirectiveNoFileComp
}

// pinnedAndSeen completes the validators that are pinned, and then those that have only signed what is
// kept here; none that is revoked.
func (a *app) pinnedAndSeen(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	pinned, _ := a.pinnedValidators(cmd, args, typed)
	seen, _ := a.seenUnpinned(cmd, args, typed)
	return append(pinned, seen...), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
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
	return scopesAfter(typed[:strings.LastIndex(typed, ",")+1], typed)
}

// scopesAfter completes the scope that follows what was typed before it.
func scopesAfter(before, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var all []cobra.Completion
	for _, s := range scope.All() {
		if value := before + string(s); strings.HasPrefix(value, typed) {
			all = append(all, value)
		}
	}
	return all, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// patternScopes completes the scope in PATTERN=SCOPE.
func patternScopes(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	at := strings.LastIndex(typed, "=") + 1
	if at == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return scopesAfter(typed[:at], typed)
}

// liveViews completes the mount points of this user's views; if none has the prefix, directories.
func liveViews(_ *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	own, _, _ := fusemount.Views() // what cannot be read is not known
	var paths []cobra.Completion
	for _, v := range own {
		if path := v.Path(); strings.HasPrefix(path, typed) {
			paths = append(paths, path)
		}
	}
	if len(paths) == 0 {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	return paths, cobra.ShellCompDirectiveNoFileComp
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

// undecidedConflicts completes the conflicts that the newest preview of the restore root and of the
// run directories on the command line, which is not used yet, has left to decide; after "=" the
// decisions.
func (a *app) undecidedConflicts(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var pending []preview.Pending
	a.withState(cmd, func(state *statedir.Dir) {
		runs, root := a.namedOn(cmd, args)
		pending = conflictsToDecide(state, runs, root)
	})
	var all []cobra.Completion
	if id, _, found := strings.Cut(typed, "="); found {
		allowed := decisions
		if n := slices.IndexFunc(pending, func(c preview.Pending) bool { return c.ID == id }); n >= 0 && pending[n].Diverged == "" {
			allowed = statement.Verdicts()
		}
		for _, decision := range allowed {
			if value := id + "=" + string(decision); strings.HasPrefix(value, typed) {
				all = append(all, value)
			}
		}
		return all, cobra.ShellCompDirectiveNoFileComp
	}
	for _, c := range pending {
		if strings.HasPrefix(c.ID+"=", typed) {
			all = append(all, cobra.CompletionWithDesc(c.ID+"=", shellQuote(c.Path)))
		}
	}
	return all, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// namedOn returns the run directories and the restore root that are on a command line, as absolute
// paths; "" for no root.
func (a *app) namedOn(cmd *cobra.Command, args []string) (runs []string, root string) {
	root, _ = cmd.Flags().GetString("restore-root")
	isNamed := cmd.Flags().Changed("savepoint") || cmd.Flags().Changed("from-mount") // what is restored
	if last := len(args) - 1; root == "" && (last > 0 || last == 0 && isNamed) && isRootArgument(args) {
		args, root = args[:last], args[last]
	}
	for _, word := range args {
		c, isName, err := a.findCandidate(word)
		switch {
		case err != nil:
			continue
		case isName:
			word = string(c.RunDir)
		}
		if path, err := filepath.Abs(word); err == nil {
			runs = append(runs, path)
		}
	}
	if path, err := filepath.Abs(root); err == nil && root != "" {
		root = path
	}
	return runs, root
}

// conflictsToDecide lists the pending conflicts of the newest unused preview of exactly these run
// directories, or of any for none, in a restore root, or in any for "". The numbers of another
// preview would name other conflicts.
func conflictsToDecide(state *statedir.Dir, runs []string, root string) []preview.Pending {
	kept, _ := state.Previews()
	unused, _ := state.Unused()
	for _, k := range kept {
		record, err := loadRecord(state, k.ID)
		if err != nil || !slices.Contains(unused, k.ID) || root != "" && root != filepath.Clean(record.Origin().RestoreRoot) {
			continue
		}
		if len(runs) == 0 || slices.Equal(slices.Sorted(slices.Values(runs)), slices.Sorted(slices.Values(record.Origin().RunDirs))) {
			return record.Pending()
		}
	}
	return nil
}
