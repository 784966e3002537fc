package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spf13/cobra"
)

type takeOptions struct {
	reason    string
	scheduled bool
	foreign   []string
	wait      time.Duration
}

func newSnapshotTake(app *app) *cobra.Command {
	var opts takeOptions
	cmd := &cobra.Command{
		Use:   "take RESTORE_ROOT",
		Short: "take a snapshot of a restore root",
		Long: `take saves everything in RESTORE_ROOT: files, directories, symbolic and hard links,
holes, modes, owners, times and extended attributes. It reads a file again if it
changes meanwhile, and names it if it does not stop changing.

take leaves out and names: entries that disappear or change their type while it
reads, sockets, devices, mounts, names that this program reserves, directories with
paths longer than 4,096 bytes, and what this user may not read. The snapshot is
then incomplete, and "rollback --emergency" does not restore it.

take rejects a root in which the files to read have more than 256 GiB of holes,
because hashing the zeros would take hours, and names the file.`,
		Args: func(cmd *cobra.Command, args []string) error {
			err := exactly(1)(cmd, args)
			if use, is := errors.AsType[*usageError](err); is && len(args) == 0 {
				app.askRoot(use, allRoots, "snapshot", "take")
			}
			return err
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkReason(cmd, opts.reason); err != nil {
				return err
			}
			return snapshotError(app.takeSnapshot(cmd.Context(), args[0], opts))
		},
	}
	reasonFlag(cmd, &opts.reason)
	cmd.Flags().BoolVar(&opts.scheduled, "scheduled", false, "record that a timer, not a person, took the snapshot")
	foreignFlag(cmd, &opts.foreign)
	lockFlag(cmd, &opts.wait)
	return cmd
}

// takeSnapshot takes a snapshot of a whole root under its lock, so that no commit runs.
func (a *app) takeSnapshot(ctx context.Context, path string, opts takeOptions) error {
	root, state, err := a.openStateOf(path)
	if err != nil {
		return err
	}
	defer state.Close()
	in, err := a.enterNamed(ctx, state, root, action.Entry{Wait: opts.wait, Foreign: opts.foreign})
	if err != nil {
		return err
	}
	defer in.Leave()
	kind := snapshot.Manual
	if opts.scheduled {
		kind = snapshot.Scheduled
	}
	bar := a.newBar("looking at the restore root")
	taken, err := in.Snapshot(ctx, kind, opts.reason)
	bar.done()
	if err != nil {
		return err
	}
	h := taken.Header()
	a.say("kept %s, %s, of %s", numberOf(h.Files, "file"), bytesText(h.Bytes), rootText(in.Real(), in.Path()))
	fields := snapshotFields(h)
	fields["code"], fields["ok"] = "OK", true
	notOwn := beyond(taken)
	if n := len(notOwn); n > 0 {
		a.tell("spectrum: kept, but only root can restore their owners, groups or attributes: %s, the first %s", numberOf(n, "name"), shortPath(notOwn[0]))
	}
	notKept := a.tellNotKept(taken)
	fields["left_out"], fields["restless"], fields["not_kept"] = jsonTexts(taken.LeftOut()), jsonTexts(taken.Restless()), jsonTexts(notKept)
	fields["needs_root"] = jsonTexts(notOwn)
	a.tellFew(each(taken.LeftOut(), "left out, because it was removed or replaced meanwhile: %s"))
	a.tellFew(each(taken.Restless(), "kept, but written to while it was read, so the copy may be inconsistent: %s"))
	return a.result("OK "+h.ID, fields)
}

// tellNotKept names what of a root a snapshot does not keep, and what makes it one that an emergency
// rollback does not go back to.
func (a *app) tellNotKept(taken *snapshot.Snapshot) (paths []string) {
	var lines []string
	broken := 0
	for e := range taken.Entries() {
		if !e.Type.Kept() {
			if e.Type == snapshot.Broken {
				broken++
			}
			paths = append(paths, e.Path)
			lines = append(lines, fmt.Sprintf("not kept, %s: %s", e.Unkept(), shortPath(e.Path)))
		}
	}
	a.tellFew(lines)
	unread := taken.Header().Unread
	if unread == 0 {
		return paths
	}
	remedy := "take it as root, or make them readable"
	switch broken {
	case 0:
	case unread:
		remedy = "restore them from a backup, and check the disk (\"dmesg\")"
	default:
		remedy += "; restore unreadable files from a backup"
	}
	a.tell("spectrum: %s could not be kept, so \"spectrum rollback --emergency\" does not restore this snapshot; %s", numberOf(unread, "name"), remedy)
	return paths
}

// beyond returns what of a snapshot this user cannot make as it is; nothing for root.
func beyond(taken *snapshot.Snapshot) (paths []string) {
	for e := range taken.Entries() {
		if action.NeedsRoot(e) != "" {
			paths = append(paths, cmp.Or(e.Path, "."))
		}
	}
	return paths
}

func newSnapshotWatch(app *app) *cobra.Command {
	var every time.Duration
	var foreign []string
	cmd := &cobra.Command{
		Use:   "watch --every DURATION RESTORE_ROOT...",
		Short: "take snapshots of restore roots at intervals, until interrupted",
		Long: `watch takes a snapshot of each RESTORE_ROOT now, and again every 30 minutes or as
--every says, until Ctrl-C. If a snapshot fails, it prints why and tries again the
next time. With systemd, use the timer in contrib/systemd, which also works after a
restart.`,
		Args: atLeast(1),
		RunE: func(cmd *cobra.Command, roots []string) error {
			if app.json {
				return usage(cmd, "watch has no --json, because it does not end; use \"spectrum snapshot take --json\"")
			}
			if every <= 0 {
				return usage(cmd, "--every must be more than 0, such as 30m")
			}
			own := map[string][]string{} // what was named, by the root that it is
			for _, root := range roots {
				if way, err := pathsafe.WayFrom(root); err == nil && slices.Contains(foreign, way.Real) {
					own[root] = []string{way.Real}
				}
			}
			for _, named := range foreign {
				if !slices.ContainsFunc(roots, func(root string) bool { return slices.Contains(own[root], named) }) {
					return usage(cmd, "--foreign-root %q is the real path of none of the restore roots %q", named, roots)
				}
			}
			return app.watch(cmd.Context(), roots, every, own)
		},
	}
	cmd.Flags().DurationVar(&every, "every", 30*time.Minute, "interval, such as 30m")
	foreignFlag(cmd, &foreign)
	return cmd
}

// watch runs until it is interrupted, which is its normal end.
func (a *app) watch(ctx context.Context, roots []string, every time.Duration, foreign map[string][]string) error {
	clock := time.NewTicker(every)
	defer clock.Stop()
	for {
		for _, root := range roots {
			err := snapshotError(a.takeSnapshot(ctx, root, takeOptions{scheduled: true, wait: every / 2, foreign: foreign[root]}))
			if err != nil && ctx.Err() == nil {
				a.tell("spectrum: %q: %s", root, oneLine(wordsOf(err)))
				for _, hint := range verdictOf(err).hints {
					a.tell("hint: %s", oneLine(a.truly(hint)))
				}
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-clock.C:
		}
	}
}
