package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/kept"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
	"github.com/spf13/cobra"
)

type pruneOptions struct {
	policy  snapshot.Policy
	root    string
	reason  string
	foreign []string
}

func newSnapshotPrune(app *app) *cobra.Command {
	var opts pruneOptions
	cmd := &cobra.Command{
		Use:   "prune [--keep-last N] [--keep-within DURATION] [--dry-run] [RESTORE_ROOT]",
		Short: "remove old snapshots, and what no other needs",
		Long: `prune keeps, of each restore root, the newest snapshots as --keep-last says, and
those that are younger than --keep-within. Snapshots of a whole root that a person or a
timer has taken, those of them that lack what could not be read, those that were taken
before an action, and those of a part of a root are counted apart. It always keeps the newest of a root; the one that an emergency
rollback goes back to, which it reads for that; and one that something refers to: that
from before a commit that can be undone, or what an action needs that has not ended.
Of a halted root it removes nothing, and if that is named its exit status is 3. It can be killed at any moment: what another
snapshot needs stays.`,
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
			return app.withSnapshots(func(s *snapshotShelf) error { return s.prune(cmd.Context(), opts) })
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&opts.policy.KeepLast, "keep-last", 0, "how many of the newest of each kind to keep")
	flags.DurationVar(&opts.policy.KeepWithin, "keep-within", 0, "keep what is younger, like 720h")
	flags.BoolVar(&opts.policy.DryRun, "dry-run", false, "say what would go, and remove nothing")
	reasonFlag(cmd, &opts.reason)
	foreignFlag(cmd, &opts.foreign)
	return cmd
}

func (s *snapshotShelf) prune(ctx context.Context, opts pruneOptions) (err error) {
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
	log, err := openLog(s.state)
	if err != nil {
		return err
	}
	defer log.Close()
	opts.policy.Now, opts.policy.Host = time.Now(), s.knownHost(s.state)
	opts.policy.Goes = func(h snapshot.Header) error {
		return log.Append(audit.Event{Kind: audit.SnapshotPruned, Action: uuid.NewString(), Root: h.Root, Snapshot: h.ID, Reason: opts.reason})
	}
	retention := sync.OnceValues(s.retention) // once nobody takes a snapshot
	pruned, err := s.store.Prune(ctx, opts.policy, func(h snapshot.Header) string {
		keep, err := retention()
		if err != nil {
			return "it cannot be told what refers to it"
		}
		return keep.Of(h)
	})
	if _, unknown := retention(); err == nil {
		err = unknown
	}
	if err != nil {
		return pruneInterrupted(err, pruned, opts.policy.DryRun)
	}
	return s.pruned(pruned, opts.policy.DryRun)
}

// notHalted returns the halt of a root that is known by a name.
func (s *snapshotShelf) notHalted(name string) error {
	path, err := s.state.RootPath(name)
	if err != nil {
		return err
	}
	halts, err := action.HaltsAt(path, s.state)
	if err != nil {
		return err
	}
	if len(halts) > 0 {
		return haltedBy(s.state, path, halts[0], halts)
	}
	if is, err := s.state.Barred(name); is {
		return haltedIn(s.state, path, &action.BarredError{Root: name, Err: err})
	}
	log, err := openLog(s.state)
	if err != nil {
		return err
	}
	defer log.Close()
	if halt, is := errors.AsType[*staging.HaltError](action.HaltOf(action.Kin{Name: name, Path: path}, nil, s.state, log)); is { // what had stood in the root was taken away
		return haltedBy(s.state, path, halt, []*staging.HaltError{halt})
	}
	if beside := haltedKin(s.state, name, path); len(beside) > 0 {
		return haltedIn(s.state, path, beside[0])
	}
	return nil
}

// retention returns why snapshots must stay.
func (s *snapshotShelf) retention() (*action.Retention, error) {
	store, err := kept.Savepoints(s.state)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	log, err := openLog(s.state)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	var said audit.Attempts
	head, err := log.Read(func(e audit.Entry) error {
		said.See(&e)
		return nil
	})
	if err != nil {
		return nil, err
	}
	marked, err := s.state.Halts()
	if err != nil {
		return nil, err
	}
	keep, err := action.RetentionOf(store, s.store, action.Records{
		Open: slices.Collect(maps.Keys(head.Open)), Halted: append(marked, said.Halted...), Roots: said.Roots, Path: s.state.RootPath, Bars: s.state,
	})
	return keep, savepointError(err)
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
