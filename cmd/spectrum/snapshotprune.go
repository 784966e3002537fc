package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/commit"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
	"github.com/spf13/cobra"
)

type pruneOptions struct {
	policy  snapshot.Policy
	root    string
	foreign []string
}

func newSnapshotPrune(app *app) *cobra.Command {
	var opts pruneOptions
	cmd := &cobra.Command{
		Use:   "prune [--keep-last N] [--keep-within DURATION] [--dry-run] [RESTORE_ROOT]",
		Short: "remove old snapshots, and what no other needs",
		Long: `prune keeps, of each restore root, the newest snapshots as --keep-last says, and
those that are younger than --keep-within. Snapshots of a whole root that a person or a
timer has taken, those that were taken before an action, and those of a part of a root
are counted apart. It always keeps the newest of a root; the one that an emergency
rollback goes back to, which it reads for that; and one that something refers to: that
from before a commit that can be undone, or what an action needs that has not ended.
Of a halted root it removes nothing. It can be killed at any moment: what another
snapshot needs stays.`,
		Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if opts.policy.KeepLast <= 0 && opts.policy.KeepWithin <= 0 {
				return usage(cmd, "say what to keep, with --keep-last N or --keep-within DURATION")
			}
			if len(args) > 0 {
				opts.root = args[0]
			}
			return app.withSnapshots(func(s *snapshotShelf) error { return s.prune(cmd.Context(), opts) })
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&opts.policy.KeepLast, "keep-last", 0, "how many of the newest of each kind to keep")
	flags.DurationVar(&opts.policy.KeepWithin, "keep-within", 0, "keep what is younger, like 720h")
	flags.BoolVar(&opts.policy.DryRun, "dry-run", false, "say what would go, and remove nothing")
	foreignFlag(cmd, &opts.foreign)
	return cmd
}

func (s *snapshotShelf) prune(ctx context.Context, opts pruneOptions) (err error) {
	if opts.root != "" {
		if opts.policy.Root, err = namedRoot(opts.root, opts.foreign); err == nil {
			opts.policy.Root, err = s.state.RootName(opts.policy.Root)
		}
		if err != nil {
			return err
		}
		all, err := s.store.List(opts.policy.Root)
		if err == nil && len(all) == 0 {
			err = s.noneOf(opts.policy.Root)
		}
		if err != nil {
			return err
		}
	}
	log, err := openLog(s.state)
	if err != nil {
		return err
	}
	defer log.Close()
	opts.policy.Now, opts.policy.Host = time.Now(), s.knownHost(s.state)
	opts.policy.Goes = func(h snapshot.Header) error {
		return log.Append(audit.Event{Kind: audit.SnapshotPruned, Action: uuid.NewString(), Root: h.Root, Snapshot: h.ID})
	}
	uses := sync.OnceValues(s.uses) // once nobody takes a snapshot
	pruned, err := s.store.Prune(ctx, opts.policy, func(h snapshot.Header) string {
		found, err := uses()
		if err != nil {
			return "it cannot be told what refers to it"
		}
		return found.of(h)
	})
	if _, unknown := uses(); err == nil {
		err = unknown
	}
	if err != nil {
		return pruneInterrupted(err, pruned, opts.policy.DryRun)
	}
	return s.pruned(pruned, opts.policy.DryRun)
}

// uses are the reasons for which snapshots must stay.
type uses struct {
	state   *statedir.Dir
	actions map[string]string // of those before an action
	ids     map[string]string
	roots   map[string]string
	all     string // "" where only some must
}

// of returns why a snapshot must stay; "" where nothing refers to it.
func (u *uses) of(h snapshot.Header) string {
	why, looked := u.roots[h.Root]
	if !looked {
		why = u.unfinishedIn(h.Root)
		u.roots[h.Root] = why
	}
	return cmp.Or(u.all, why, u.actions[h.Action], u.ids[h.ID])
}

// unfinishedIn says what an attempt has left in a root, whatever the records know of it; ""
// for nothing, also where there is no root any more.
func (u *uses) unfinishedIn(root string) string {
	var left []string
	path, err := u.state.RootPath(root)
	if err == nil {
		var dir *pathsafe.Dir
		if dir, err = pathsafe.OpenRoot(path); err == nil {
			defer dir.Close()
			left, err = staging.Unfinished(dir)
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ""
	case err != nil:
		return fmt.Sprintf("it cannot be told whether its restore root is halted: %v", err)
	case len(left) > 0:
		return fmt.Sprintf("%q is unfinished in its restore root", left[0])
	}
	return ""
}

// uses are the actions whose snapshots must stay, and why: the commits that can be
// undone, or could be once a snapshot brings them back, and what has not ended, with the
// snapshot that it goes back to. Of a halted root all must.
func (s *snapshotShelf) uses() (*uses, error) {
	found := &uses{state: s.state, actions: map[string]string{}, ids: map[string]string{}, roots: map[string]string{}}
	store, err := openSavepoints(s.state)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	standing, err := store.List("")
	if err != nil {
		return nil, savepointError(err)
	}
	for _, sp := range standing {
		found.actions[sp.Attempt()] = "commit " + sp.Attempt() + " can be undone"
	}
	retired, err := store.Retired("")
	if err != nil {
		return nil, savepointError(err)
	}
	for _, sp := range retired { // these snapshots are small: they hold names that were not there
		found.actions[sp.Attempt()] = "commit " + sp.Attempt() + " was undone, and can come back"
	}
	log, err := openLog(s.state)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	said := logged{roots: map[string]string{}}
	head, err := log.Read(func(e audit.Entry) error {
		said.see(&e)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for id := range head.Open {
		found.actions[id] = "action " + id + " has not ended"
	}
	return found, s.addHalts(found, &said)
}

// addHalts adds the halted roots, by the marks of the state directory and by the log, and
// what unfinished actions go back to.
func (s *snapshotShelf) addHalts(found *uses, said *logged) error {
	marked, err := s.state.Halts()
	if err != nil {
		return err
	}
	for _, attempt := range append(marked, said.halts...) {
		if root := said.roots[attempt]; root != "" {
			found.roots[root] = "its restore root is halted: attempt " + attempt + " could not be ended"
		} else {
			found.all = "attempt " + attempt + " is halted, and the audit log does not know in which restore root"
		}
	}
	all, err := s.store.List("")
	for _, h := range all {
		if why := found.actions[h.Action]; strings.HasPrefix(why, "action ") && h.Action != "" {
			found.ids[commit.TargetOf(h)] = why
		}
	}
	return err
}

// pruned says what went, and why the others stayed.
func (s *snapshotShelf) pruned(p snapshot.Pruned, dry bool) error {
	verb := "removed"
	if dry {
		verb = "would remove"
	}
	removed, kept, lines := []string{}, []any{}, []string{}
	for _, h := range p.Gone {
		removed = append(removed, h.ID)
		lines = append(lines, verb+" "+snapshotText(h))
	}
	for _, k := range p.Kept {
		kept = append(kept, map[string]any{"id": k.Header.ID, "why": k.Why})
		s.say("kept %s: %s", k.Header.ID[:shortest], k.Why)
	}
	lines = append(lines, fmt.Sprintf("OK %s %s, %s, %s", verb, numberOf(len(removed), "snapshot"), numberOf(p.Objects, "content"), bytesText(p.Bytes)))
	return s.result(strings.Join(lines, "\n"), map[string]any{
		"bytes": p.Bytes, "code": "OK", "dry_run": dry, "kept": kept, "objects": p.Objects, "ok": true, "removed": removed,
	})
}
