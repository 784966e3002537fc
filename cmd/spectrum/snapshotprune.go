package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/statecheck"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spf13/cobra"
)

type pruneOptions struct {
	policy  snapshot.Policy
	root    string
	reason  string
	foreign []string
	edits   bool // go too
	asks    bool // before it removes those of several roots
}

// errNotPruned is the answer of an operator who was asked whether snapshots are to be removed.
var errNotPruned = errors.New("not confirmed: no snapshot was removed")

func newSnapshotPrune(app *app) *cobra.Command {
	var opts pruneOptions
	cmd := &cobra.Command{
		Use:   "prune [--keep-last N] [--keep-within DURATION] [--with-edits] [--dry-run] [RESTORE_ROOT]",
		Short: "remove old snapshots",
		Long: `prune removes old snapshots. Of each restore root it keeps the newest ones
(--keep-last) and those younger than --keep-within. It counts these kinds
separately: whole snapshots that a person or a timer took, incomplete ones of
these, snapshots from before an action, and snapshots of a part of a root.

It always keeps
  - the newest snapshot of a root
  - the one that an emergency rollback would restore, which it reads to check
  - the one from before a commit that can still be undone
  - those that an unfinished action requires
  - the one from before the newest rollback of a root
  - those with contents that a rollback removed and that no newer snapshot has;
    --with-edits removes these too

On a terminal, prune lists what it would remove from several restore roots and
asks. It removes nothing of a halted root; if you name one, the exit status is 3.
You can kill prune at any time: it never removes contents that another snapshot
requires.`,
		Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if opts.policy.KeepLast <= 0 && opts.policy.KeepWithin <= 0 {
				return usage(cmd, "say what to keep, with --keep-last N or --keep-within DURATION")
			}
			if err := checkReason(cmd, opts.reason); err != nil {
				return err
			}
			if len(args) > 0 {
				opts.root = args[0]
			}
			if opts.root == "" && !opts.policy.DryRun {
				var err error
				if opts.asks, err = app.asksFirst(cmd); err != nil {
					return err
				}
			}
			return app.withSnapshots(func(s *snapshotCommand) error { return s.prune(cmd.Context(), opts) })
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&opts.policy.KeepLast, "keep-last", 0, "how many of the newest snapshots of each kind to keep")
	flags.DurationVar(&opts.policy.KeepWithin, "keep-within", 0, "keep snapshots that are younger, such as 720h")
	flags.BoolVar(&opts.edits, "with-edits", false, "also remove snapshots with edits that a rollback removed")
	flags.BoolVar(&opts.policy.DryRun, "dry-run", false, "list what would be removed, but remove nothing")
	reasonFlag(cmd, &opts.reason)
	foreignFlag(cmd, &opts.foreign)
	return cmd
}

func (s *snapshotCommand) prune(ctx context.Context, opts pruneOptions) (err error) {
	if opts.root != "" {
		if opts.policy.Root, err = namedRoot(opts.root, opts.foreign); err == nil {
			opts.policy.Root, err = nameOfRoot(s.state, opts.policy.Root, opts.policy.DryRun)
		}
		if err != nil {
			return err
		}
		all, err := s.store.List(opts.policy.Root)
		if err == nil && len(all) == 0 {
			err = s.noneOf(opts.policy.Root)
		}
		if err == nil {
			err = s.notHalted(opts.policy.Root)
		}
		if err != nil {
			return err
		}
	}
	opts.policy.Now, opts.policy.Host = time.Now(), s.knownHost(s.state)
	pruning := &action.Pruning{
		Snapshots: s.store, Savepoints: func() (*savepoint.Store, error) { return statecheck.Savepoints(s.state) },
		Log: logger(s.state), State: s.state, WithEdits: opts.edits, Reason: opts.reason,
	}
	if opts.asks {
		if err := s.confirmPrune(ctx, pruning, opts.policy); err != nil {
			return err
		}
	}
	pruned, err := pruning.Prune(ctx, opts.policy)
	if err != nil {
		return pruneInterrupted(savepointError(err), pruned, opts.policy.DryRun)
	}
	return s.pruned(pruned, opts.policy.DryRun)
}

// confirmPrune lists the snapshots of several restore roots that would be removed, and asks.
func (s *snapshotCommand) confirmPrune(ctx context.Context, pruning *action.Pruning, policy snapshot.Policy) error {
	policy.DryRun = true
	would, err := pruning.Prune(ctx, policy)
	if err != nil {
		return pruneInterrupted(savepointError(err), would, true)
	}
	roots := map[string]bool{}
	for _, h := range would.Gone {
		roots[h.Root] = true
	}
	if len(roots) < 2 {
		return nil
	}
	for _, h := range would.Gone {
		s.tell("would remove %s", snapshotText(h))
	}
	line, err := s.newPrompt(fmt.Sprintf("remove %s of %s? [y/N] ", numberOf(len(would.Gone), "snapshot"), numberOf(len(roots), "restore root"))).read(ctx)
	if err != nil {
		return err
	}
	if answer := strings.ToLower(line); answer != "y" && answer != "yes" {
		return errNotPruned
	}
	return nil
}

// notHalted returns the halt of a root that is known by a name.
func (s *snapshotCommand) notHalted(name string) error {
	path, err := s.state.RootPath(name)
	if err != nil {
		return err
	}
	log, err := openLog(s.state)
	if err != nil {
		return err
	}
	defer log.Close()
	return haltedIn(s.state, path, action.FindHalt(action.RootRef{Name: name, Path: path}, knownRoots(s.state), s.state, s.state, log))
}

// pruned prints which snapshots were removed, and why the others stayed.
func (s *snapshotCommand) pruned(p snapshot.Pruned, dry bool) error {
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
