package main

import (
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
	"github.com/spectrumfs/spectrum/restore/rollback"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
	"github.com/spf13/cobra"
)

func newSnapshot(app *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "snapshot",
		Short: "snapshots of restore roots: take, verify, restore, prune",
		Long: `snapshot keeps the states of restore roots in the state directory. Each content is
kept once, whatever snapshots it is in, and what has not changed since the last
snapshot of a root is not read again. Before every commit, rollback and restore of
a snapshot one is taken of what that can change; nothing skips it.`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newSnapshotTake(app), newSnapshotWatch(app), newSnapshotRestore(app), newSnapshotPrune(app), newSnapshotExport(app),
		&cobra.Command{
			Use:   "list [RESTORE_ROOT]",
			Short: "list the snapshots of a restore root, or of all, the oldest first",
			Args:  asUsage(cobra.MaximumNArgs(1)),
			RunE:  func(_ *cobra.Command, args []string) error { return app.withSnapshots(listSnapshots(args)) },
		},
		&cobra.Command{
			Use:   "verify ID",
			Short: "read everything that a snapshot needs, and check it",
			Args:  exactly(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				return app.withSnapshots(func(s *snapshotShelf) error { return s.verify(cmd.Context(), args[0]) })
			},
		})
	return cmd
}

// snapshotShelf is the store of snapshots with what the commands need.
type snapshotShelf struct {
	*app
	state *statedir.Dir
	store *snapshot.Store
}

// withSnapshots runs do with the snapshots of the state directory.
func (a *app) withSnapshots(do func(*snapshotShelf) error) error {
	state, err := a.openState()
	if err != nil {
		return err
	}
	defer state.Close()
	store, err := openSnapshots(state)
	if err != nil {
		return err
	}
	defer store.Close()
	return snapshotError(do(&snapshotShelf{a, state, store}))
}

func openSnapshots(state *statedir.Dir) (*snapshot.Store, error) {
	place, err := state.Snapshots()
	if err != nil {
		return nil, err
	}
	return snapshot.Open(place)
}

// The codes of a snapshot that is not what was put there, and of a root that none
// can be taken of.
const (
	codeSnapshotDamaged = "SNAPSHOT_DAMAGED"
	codeSnapshotRefused = "SNAPSHOT_REFUSED"
)

// snapshotError gives what package snapshot says its code.
func snapshotError(err error) error {
	var damage *snapshot.DamageError
	var coded *codedError
	var halt *staging.HaltError
	if errors.As(err, &coded) || errors.As(err, &halt) {
		return err
	}
	if isRefused(err) {
		return &codedError{
			code: codeSnapshotRefused, details: map[string]any{}, err: err,
			hint: "nothing was changed; move away what is named, end what writes to it, or run as its owner, and try again",
		}
	}
	if !errors.As(err, &damage) {
		return err
	}
	return &codedError{
		code: codeSnapshotDamaged, details: map[string]any{}, err: err,
		hint: "look into who may write the state directory, and take a new snapshot; \"spectrum snapshot list\" lists the others",
	}
}

// isRefused says whether it is the root that no snapshot can be taken of, or that
// cannot be written: for what is in it, or for whose it is.
func isRefused(err error) bool {
	for _, why := range []error{snapshot.ErrRefused, pathsafe.ErrCrossesMount, pathsafe.ErrTooLong, fs.ErrPermission} {
		if errors.Is(err, why) {
			return true
		}
	}
	return false
}

// find finds a snapshot by its ID.
func (s *snapshotShelf) find(id string) (*snapshot.Snapshot, error) {
	found, err := s.store.Find(id)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, snapshot.ErrAmbiguous) {
		err = refusedHint(err, "\"spectrum snapshot list\" lists the IDs")
	}
	return found, err
}

func listSnapshots(args []string) func(*snapshotShelf) error {
	return func(s *snapshotShelf) (err error) {
		root := ""
		if len(args) > 0 {
			if root, err = rootArg(args[0]); err != nil {
				return err
			}
		}
		all, err := s.store.List(root)
		if err != nil {
			return err
		}
		lines, records := make([]string, 0, len(all)), make([]any, 0, len(all))
		for _, h := range all {
			lines = append(lines, snapshotText(h))
			records = append(records, snapshotFields(h))
		}
		return s.result(strings.Join(lines, "\n"), map[string]any{"code": "OK", "ok": true, "snapshots": records})
	}
}

// snapshotText is a snapshot on one line.
func snapshotText(h snapshot.Header) string {
	line := fmt.Sprintf("%s %s %s %d files %s %q", h.ID, h.Time.Format(time.RFC3339), h.Kind, h.Files, bytesText(h.Bytes), h.Root)
	if !h.Whole {
		line += fmt.Sprintf(" (%d names)", h.Names)
	}
	if h.Reason != "" {
		line += fmt.Sprintf(" %q", h.Reason)
	}
	return oneLine(line)
}

func snapshotFields(h snapshot.Header) map[string]any {
	return map[string]any{
		"action": orNull(h.Action), "bytes": h.Bytes, "files": h.Files, "id": h.ID, "kind": string(h.Kind), "names": h.Names,
		"reason": orNull(jsonText(h.Reason)), "restore_root": jsonText(h.Root), "savepoint": orNull(h.Said[commit.SavepointNow]),
		"time": h.Time.Format(time.RFC3339Nano), "whole": h.Whole,
	}
}

func (s *snapshotShelf) verify(ctx context.Context, id string) error {
	found, err := s.find(id)
	if err != nil {
		return err
	}
	damages, err := s.store.Verify(ctx, found)
	if err != nil {
		return err
	}
	if len(damages) > 0 {
		return s.damaged(found, damages)
	}
	return s.result(fmt.Sprintf("OK %s %d files", found.ID(), found.Header().Files), map[string]any{
		"bytes": found.Header().Bytes, "code": "OK", "details": map[string]any{}, "files": found.Header().Files, "id": found.ID(), "ok": true,
	})
}

func (s *snapshotShelf) damaged(found *snapshot.Snapshot, damages []*snapshot.DamageError) error {
	objects := []any{}
	for _, d := range damages {
		for _, name := range d.Names {
			s.tell("damaged: %s: %s", shellQuote(name), oneLine(d.Err.Error()))
		}
		objects = append(objects, map[string]any{"needed_by": jsonTexts(d.Names), "path": d.Path, "why": jsonText(d.Err.Error())})
	}
	return &codedError{
		code: codeSnapshotDamaged, details: map[string]any{"id": found.ID(), "damaged": objects},
		err:  fmt.Errorf("%d contents of snapshot %s are missing or changed", len(damages), found.ID()[:shortest]),
		hint: "take a new snapshot: what is still in the root is kept again; \"spectrum snapshot list\" lists the others",
	}
}

type takeOptions struct {
	reason    string
	scheduled bool
	wait      time.Duration
}

func newSnapshotTake(app *app) *cobra.Command {
	var opts takeOptions
	cmd := &cobra.Command{
		Use:   "take RESTORE_ROOT",
		Short: "take a snapshot of all of a restore root",
		Long: `take keeps everything beneath RESTORE_ROOT as it is: files, directories, symbolic
and hard links, holes, modes, owners, times and extended attributes. A file that
changes while it is read is read again, and named if it does not come to rest.`,
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return snapshotError(app.takeSnapshot(cmd.Context(), args[0], opts))
		},
	}
	cmd.Flags().StringVar(&opts.reason, "reason", "", "why, in `words`")
	cmd.Flags().BoolVar(&opts.scheduled, "scheduled", false, "say that nobody asked for it: a timer did")
	lockFlag(cmd, &opts.wait)
	return cmd
}

// takeSnapshot takes a snapshot of a whole root, as nobody commits there.
func (a *app) takeSnapshot(ctx context.Context, path string, opts takeOptions) error {
	root, err := rootArg(path)
	if err != nil {
		return err
	}
	state, err := a.openStateApart(root)
	if err != nil {
		return err
	}
	defer state.Close()
	in, ended, err := a.enter(ctx, state, root, commit.Entry{Wait: opts.wait})
	a.tellEnded(ended)
	if err != nil {
		return noRoot(err)
	}
	defer in.Leave()
	kind := snapshot.Manual
	if opts.scheduled {
		kind = snapshot.Scheduled
	}
	bar := a.newBar("keeping", -1)
	taken, err := in.Snapshot(ctx, kind, opts.reason, func(_, bytes int64) { bar.add(bytes) })
	bar.done()
	if err != nil {
		return err
	}
	h := taken.Header()
	a.say("kept %d files, %s, of %q", h.Files, bytesText(h.Bytes), root)
	fields := snapshotFields(h)
	fields["code"], fields["ok"] = "OK", true
	return a.result("OK "+h.ID, fields)
}

func newSnapshotWatch(app *app) *cobra.Command {
	var every time.Duration
	cmd := &cobra.Command{
		Use:   "watch --every DURATION RESTORE_ROOT...",
		Short: "take a snapshot of each restore root every so often, until interrupted",
		Long: `watch takes a snapshot of each RESTORE_ROOT now, and again every 30 minutes or as
--every says. One that cannot be taken is named, and tried again the next time. It
ends with Ctrl-C. On a machine with systemd the timer in contrib/systemd does the
same, also after a restart.`,
		Args: asUsage(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, roots []string) error {
			if app.json {
				return usage(cmd, "watch has no one result; \"snapshot take --json\" has")
			}
			if every <= 0 {
				return usage(cmd, "--every must be more than nothing, like 30m")
			}
			return app.watch(cmd.Context(), roots, every)
		},
	}
	cmd.Flags().DurationVar(&every, "every", 30*time.Minute, "how often, like 30m")
	return cmd
}

// watch goes on until it is interrupted, which is how it is to end.
func (a *app) watch(ctx context.Context, roots []string, every time.Duration) error {
	clock := time.NewTicker(every)
	defer clock.Stop()
	for {
		for _, root := range roots {
			err := snapshotError(a.takeSnapshot(ctx, root, takeOptions{scheduled: true, wait: every / 2}))
			if err != nil && ctx.Err() == nil {
				a.tell("spectrum: %q: %s", root, oneLine(wordsOf(err)))
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-clock.C:
		}
	}
}

func newSnapshotRestore(app *app) *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "restore ID",
		Short: "make a restore root as it was in a snapshot, all of it or nothing",
		Long: `restore makes everything that the snapshot is of as it was: what came since goes,
what went comes back. All of it is made beside the root first, and checked, and
then exchanged with the root in one step. What is there before is kept in a
snapshot, so that this can be undone in the same way.

The commits that were made since are undone with it. What was previewed or
approved for the root before is void, and views that show it are detached.`,
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return app.withSnapshots(func(s *snapshotShelf) error { return s.restore(cmd.Context(), args[0], wait) })
		},
	}
	lockFlag(cmd, &wait)
	return cmd
}

func (s *snapshotShelf) restore(ctx context.Context, id string, wait time.Duration) error {
	target, err := s.find(id)
	if err != nil {
		return err
	}
	in, ended, err := s.enter(ctx, s.state, target.Header().Root, commit.Entry{Wait: wait})
	s.tellEnded(ended)
	if err != nil {
		return noRoot(err)
	}
	defer in.Leave()
	return haltedIn(s.state, in.Path(), s.restoreSnapshot(ctx, in, restoring{target, audit.Session, "snapshot " + target.ID() + " was asked for"}))
}

// restoring is the restore of a snapshot, and why.
type restoring struct {
	target *snapshot.Snapshot
	kind   audit.Rollback
	reason string
}

func (a *app) restoreSnapshot(ctx context.Context, in *commit.Root, r restoring) error {
	done, err := rollback.Restore(ctx, in, r.target, rollback.How{Type: r.kind, Reason: r.reason})
	var later *rollback.LaterError
	if errors.As(err, &later) {
		return laterCommits(err, later, later.Later[len(later.Later)-1])
	}
	if err != nil {
		return rollbackError(err)
	}
	return a.rolledBack(in, rollbackReport{kind: r.kind, done: done.Done, commits: done.Commits})
}

type pruneOptions struct {
	policy snapshot.Policy
	root   string
}

func newSnapshotPrune(app *app) *cobra.Command {
	var opts pruneOptions
	cmd := &cobra.Command{
		Use:   "prune [--keep-last N] [--keep-within DURATION] [--dry-run] [RESTORE_ROOT]",
		Short: "remove old snapshots, and what no other needs",
		Long: `prune keeps, of each restore root, the newest snapshots as --keep-last says, and
those that are younger than --keep-within. It always keeps the newest of a root, and
one that something refers to: that from before a commit that can be undone, or from
before an action that has not ended. It can be killed at any moment: what another
snapshot needs stays.`,
		Args: asUsage(cobra.MaximumNArgs(1)),
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
	flags.IntVar(&opts.policy.KeepLast, "keep-last", 0, "how many of the newest to keep")
	flags.DurationVar(&opts.policy.KeepWithin, "keep-within", 0, "keep what is younger, like 720h")
	flags.BoolVar(&opts.policy.DryRun, "dry-run", false, "say what would go, and remove nothing")
	return cmd
}

func (s *snapshotShelf) prune(ctx context.Context, opts pruneOptions) (err error) {
	if opts.root != "" {
		if opts.policy.Root, err = rootArg(opts.root); err != nil {
			return err
		}
	}
	log, err := openLog(s.state)
	if err != nil {
		return err
	}
	defer log.Close()
	opts.policy.Now = time.Now()
	opts.policy.Goes = func(h snapshot.Header) error {
		return log.Append(audit.Event{Kind: audit.SnapshotPruned, Action: uuid.NewString(), Root: h.Root, Snapshot: h.ID})
	}
	uses := sync.OnceValues(s.uses) // once nobody takes a snapshot
	pruned, err := s.store.Prune(ctx, opts.policy, func(h snapshot.Header) string {
		found, err := uses()
		if err != nil {
			return "it cannot be told what refers to it"
		}
		return found[h.Action]
	})
	if _, unknown := uses(); err == nil {
		err = unknown
	}
	if err != nil {
		return err
	}
	return s.pruned(pruned, opts.policy.DryRun)
}

// uses are the actions whose snapshots must stay, and why: the commits that can be
// undone, or could be once a snapshot brings them back, and what has not ended.
func (s *snapshotShelf) uses() (map[string]string, error) {
	found := map[string]string{}
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
		found[sp.Attempt()] = "commit " + sp.Attempt() + " can be undone"
	}
	retired, err := store.Retired("")
	if err != nil {
		return nil, savepointError(err)
	}
	for _, sp := range retired { // these snapshots are small: they hold names that were not there
		found[sp.Attempt()] = "commit " + sp.Attempt() + " was undone, and can come back"
	}
	log, err := openLog(s.state)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	head, err := log.Read(func(audit.Entry) error { return nil })
	if err != nil {
		return nil, err
	}
	for id := range head.Open {
		found[id] = "action " + id + " has not ended"
	}
	return found, nil
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
	lines = append(lines, fmt.Sprintf("OK %s %d snapshots, %d contents, %s", verb, len(removed), p.Objects, bytesText(p.Bytes)))
	return s.result(strings.Join(lines, "\n"), map[string]any{
		"bytes": p.Bytes, "code": "OK", "dry_run": dry, "kept": kept, "objects": p.Objects, "ok": true, "removed": removed,
	})
}
