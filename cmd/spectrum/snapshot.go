package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/statecheck"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spf13/cobra"
)

func newSnapshot(app *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "snapshot",
		Short: "take, list, verify, restore and prune snapshots of restore roots",
		Long: `snapshot saves the state of restore roots in the state directory. Each content is
stored once for all snapshots, and files that have not changed since the last
snapshot of a root are not read again. Every commit, rollback and restore of a
snapshot first takes a snapshot of what it can change; nothing can skip it.`,
	}
	cmd.AddCommand(newSnapshotTake(app), newSnapshotWatch(app), newSnapshotRestore(app), newSnapshotDiff(app), newSnapshotPrune(app), newSnapshotExport(app), newSnapshotList(app), newSnapshotShow(app), newSnapshotVerify(app))
	return cmd
}

func newSnapshotList(app *app) *cobra.Command {
	var foreign []string
	cmd := &cobra.Command{
		Use:   "list [RESTORE_ROOT]",
		Short: "list the snapshots of a restore root, or of all, oldest first",
		Args:  atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return app.withSnapshots(listSnapshots(cmd.Context(), args, foreign))
		},
	}
	foreignFlag(cmd, &foreign)
	return cmd
}

// snapshotCommand is the store of snapshots with what the commands need.
type snapshotCommand struct {
	*app
	state *statedir.Dir
	store *snapshot.Store
}

// withSnapshots runs do with the snapshots of the state directory.
func (a *app) withSnapshots(do func(*snapshotCommand) error) error {
	return a.withSnapshotsOr(func(*statedir.Dir, error) {}, do)
}

// withSnapshotsOr is withSnapshots, and calls unopened with the error where they cannot be opened.
func (a *app) withSnapshotsOr(unopened func(*statedir.Dir, error), do func(*snapshotCommand) error) error {
	state, err := a.openState()
	if err != nil {
		return err
	}
	defer state.Close()
	store, err := a.openSnapshots(state)
	if err != nil {
		unopened(state, err)
		return err
	}
	defer store.Close()
	return snapshotError(do(&snapshotCommand{a, state, store}))
}

// openSnapshots opens the snapshots of the state directory, on which long work shows
// how far it has got.
func (a *app) openSnapshots(state *statedir.Dir) (*snapshot.Store, error) {
	store, err := statecheck.Snapshots(state)
	if err == nil {
		a.watchStore(store)
	}
	return store, err
}

// find finds a snapshot by its ID, or by four or more digits of it; the newest; or the one from
// before a commit, by the ID of the commit or of its savepoint.
func (s *snapshotCommand) find(id string) (*snapshot.Snapshot, error) {
	if id == latest {
		newest, err := s.newest()
		if err != nil {
			return nil, err
		}
		id = newest
	}
	found, err := s.store.Find(id)
	if errors.Is(err, fs.ErrNotExist) {
		before, commit, failed := s.beforeCommit(id)
		switch {
		case failed != nil:
			return nil, failed
		case before != "":
			s.say("spectrum: snapshot %s, from before %s %s", before[:shortest], s.kindOf(commit), commit)
			found, err = s.store.Find(before)
		}
	}
	if errors.Is(err, fs.ErrNotExist) && !likeAction.MatchString(id) {
		return nil, refusedHint(err, listsSnapshots)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, refusedHint(fmt.Errorf("%.100q is neither the ID of a snapshot in %q nor that of a commit with a snapshot from before it", id, s.state.Path()), listsSnapshots)
	}
	if err == nil {
		err = s.checkRoot(s.state, "snapshot "+found.ID(), found.Header().Root)
	}
	if err != nil {
		return nil, err
	}
	return found, nil
}

// listsSnapshots is the next step for an operator without the ID of a snapshot.
const listsSnapshots = "\"spectrum snapshot list\" lists the IDs"

// newest returns the ID of the newest snapshot of the restore root that is meant.
func (s *snapshotCommand) newest() (string, error) {
	root, err := s.latestRoot(s.state)
	if err != nil {
		return "", err
	}
	all, _, err := s.store.Survey(root) // what cannot be read is not the newest
	if err != nil {
		return "", err
	}
	newest, roots := action.Newest(all, func(h snapshot.Header) string { return h.Root })
	switch {
	case newest != nil:
		return newest.ID, nil
	case len(roots) > 0:
		return "", refusedHint(errors.New("there are snapshots of several restore roots, so latest names none"), namesLatest+"; \"spectrum snapshot list\" lists them"+eachRoot(s.state, roots))
	case root != "":
		return "", refusedHint(fmt.Errorf("there is no snapshot of %q", root), "\"spectrum snapshot list\" lists all snapshots with their roots")
	}
	return "", refusedHint(errors.New("there is no snapshot yet"), "\"spectrum snapshot take RESTORE_ROOT\" takes one, and so does each commit")
}

// beforeCommit is [action.SnapshotOf] with the snapshots and the log of the state directory.
func (s *snapshotCommand) beforeCommit(id string) (before, commit string, err error) {
	if len(id) < least {
		return "", "", nil
	}
	all, _, err := s.store.Survey("")
	if err != nil {
		return "", "", err
	}
	before, commit, isSeveral := action.SnapshotOf(id, all, logOf(s.state))
	if isSeveral {
		return "", "", refusedHint(fmt.Errorf("%q is the beginning of several commits", id), findsCommits)
	}
	return before, commit, nil
}

// kindOf is what an action of the log is, in a word.
func (s *snapshotCommand) kindOf(id string) string {
	all, _ := actionsOf(s.state, "") // of a damaged log, the entries before the damage
	for _, c := range all {
		switch {
		case c.ID != id:
		case c.IsCommit():
			return "commit"
		default:
			return "rollback"
		}
	}
	return "action"
}

func listSnapshots(ctx context.Context, args, foreign []string) func(*snapshotCommand) error {
	return func(s *snapshotCommand) (err error) {
		root := ""
		if len(args) > 0 {
			if root, err = namedRoot(args[0], foreign); err == nil {
				root, err = nameOfRoot(s.state, root, true)
			}
			if err != nil {
				return err
			}
		}
		all, damaged, err := s.store.Survey(root)
		if err != nil {
			return err
		}
		all, forged := s.withoutForged(all)
		all, changed, err := s.withoutChanged(ctx, all)
		if err != nil {
			return err
		}
		damaged = slices.Concat(damaged, forged, changed)
		for i, d := range damaged {
			if i > 0 { // the first is the error
				s.tell("spectrum: %s", oneLine(d.Error()))
			}
		}
		if len(all)+len(damaged) == 0 {
			if err := s.noneOf(root); err != nil {
				return err
			}
		}
		lines, records := make([]string, 0, len(all)), make([]any, 0, len(all))
		edits := s.editsIn(all)
		for _, h := range all {
			line := snapshotText(h)
			if onTerminal(s.stdout) {
				line = strings.Replace(line, h.ID, h.ID[:shortest], 1)
			}
			if edits[h.ID] {
				line += ", with contents that no newer snapshot has"
			}
			lines = append(lines, line)
			records = append(records, snapshotFields(h))
		}
		if len(damaged) == 0 {
			return s.result(strings.Join(lines, "\n"), map[string]any{"code": "OK", "ok": true, "snapshots": records})
		}
		if !s.json && len(lines) > 0 {
			if err := s.text(strings.Join(lines, "\n")); err != nil {
				return err
			}
		}
		return s.listedDamage(damaged, records)
	}
}

// listedDamage is the error of a list of snapshots beside which some are damaged.
func (s *snapshotCommand) listedDamage(damaged []*snapshot.DamageError, listed []any) error {
	aside := make([]string, 0, len(damaged))
	hint := "check which users can write there"
	for _, d := range damaged {
		if d.Part != "" {
			hint = statecheck.PartRemedy(d)
		}
		aside = append(aside, statecheck.Aside(s.state, filepath.Join(s.state.Path(), "snapshots", d.Path)))
	}
	return damagedSnapshot(damaged[0], map[string]any{"damaged": damagesOf("", damaged)["damaged"], "snapshots": listed},
		hint+"; then "+strings.Join(aside, "; ")+"; those that are listed can be restored")
}

// noneOf reports that a root, or any root, has no snapshots. A root that is not
// there either is an error: its name may be misspelled.
func (s *snapshotCommand) noneOf(root string) error {
	if root == "" {
		s.say("no snapshots; \"spectrum snapshot take RESTORE_ROOT\" takes one, and so does every commit")
		return nil
	}
	if err := notKnown(s.state, root, "snapshot"); err != nil {
		return err
	}
	s.say("no snapshots of %q; \"spectrum snapshot take %s\" takes one", root, shellQuote(root))
	return nil
}

// snapshotText is a snapshot on one line.
func snapshotText(h snapshot.Header) string {
	line := fmt.Sprintf("%s %s %s %s %s %q", h.ID, h.Time.Format(time.RFC3339), h.Kind, numberOf(h.Files, "file"), bytesText(h.Bytes), h.Root)
	if !h.Whole {
		line += fmt.Sprintf(" (%s)", numberOf(h.Names, "name"))
	}
	if h.Unread > 0 {
		line += fmt.Sprintf(" (without %s)", numberOf(h.Unread, "unreadable name"))
	}
	if h.Reason != "" {
		line += fmt.Sprintf(" %q", h.Reason)
	}
	switch {
	case h.Kind != snapshot.PreAction || len(h.Action) < shortest:
	case action.IsBeforeRollback(h):
		line += " before rollback " + h.Action[:shortest]
	default:
		line += " before commit " + h.Action[:shortest]
	}
	return oneLine(line)
}

// editsIn returns the IDs of those of these snapshots that have contents which a rollback removed, such as
// edits, and no newer snapshot has. Where that cannot be found out, none is.
func (s *snapshotCommand) editsIn(all []snapshot.Header) map[string]bool {
	if !slices.ContainsFunc(all, action.IsBeforeRollback) {
		return nil
	}
	store, err := statecheck.Savepoints(s.state)
	if err != nil {
		return nil
	}
	defer store.Close()
	var done []string
	_, _ = readLog(s.state, func(e audit.Entry) error { // of a damaged log the part before the damage
		if e.Kind == audit.RolledBack {
			done = append(done, e.Action)
		}
		return nil
	})
	keep, err := action.RetentionOf(store, s.store, action.Records{RolledBack: done})
	if err != nil {
		return nil
	}
	found := map[string]bool{}
	for _, h := range all {
		found[h.ID] = keep.HoldsEdits(h)
	}
	return found
}

func snapshotFields(h snapshot.Header) map[string]any {
	return map[string]any{
		"action": orNull(h.Action), "bytes": h.Bytes, "files": h.Files, "id": h.ID, "kind": string(h.Kind), "names": h.Names,
		"reason": orNull(jsonText(h.Reason)), "restore_root": jsonText(h.Root), "savepoint": orNull(h.Texts[action.SavepointNow]),
		"time": h.Time.Format(time.RFC3339Nano), "unread": h.Unread, "whole": h.Whole,
	}
}

// damagesOf are the damages of a snapshot, for a program; the ID is "" where that cannot be
// read.
func damagesOf(id string, damages []*snapshot.DamageError) map[string]any {
	objects := []any{}
	for _, d := range damages {
		objects = append(objects, map[string]any{"needed_by": jsonTexts(d.Names), "path": jsonText(d.Path), "why": jsonText(d.Err.Error())})
	}
	return map[string]any{"id": orNull(id), "damaged": objects}
}
