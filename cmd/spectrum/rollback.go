package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/words"
	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
	"github.com/spf13/cobra"
)

type rollbackOptions struct {
	emergency bool
	later     bool
	dryRun    bool
	reason    string
	foreign   []string
	wait      time.Duration
}

// checkArgs requires one argument, which is a commit or, in an emergency, a restore root; that has a
// flag, too.
func (o *rollbackOptions) checkArgs(cmd *cobra.Command, app *app, args []string) error {
	if o.emergency && app.latestOf != "" {
		return exactly(0)(cmd, args)
	}
	err := exactly(1)(cmd, args)
	var use *usageError
	if errors.As(err, &use) && len(args) == 0 {
		use.next = "\"spectrum rollback latest\" undoes the newest commit; " + strings.Replace(findsCommits, "the ID", "the ID of another", 1)
		if o.emergency {
			use.next = "name the restore root: spectrum rollback --emergency RESTORE_ROOT; \"spectrum status\" lists those that are known"
			app.askRoot(use, allRoots, "rollback", "--emergency")
		}
	}
	return err
}

func newRollback(app *app) *cobra.Command {
	var opts rollbackOptions
	cmd := &cobra.Command{
		Use:   "rollback [--with-later] COMMIT_ID|latest [RESTORE_ROOT] | --emergency RESTORE_ROOT",
		Short: "undo a commit: exactly what it created, replaced or removed",
		Long: `rollback undoes a commit: it removes what the commit created, and brings back what
it replaced or removed. Files that were edited since the commit are removed too,
after their current contents are saved in a snapshot; "spectrum snapshot restore"
brings them back. Files that the commit did not make stay. Files that cannot be
read or moved also stay and are named; the exit status is then 1, and the same
command finishes the rollback later.

COMMIT_ID is the ID that commit printed, or that of its savepoint, or the first
four or more digits of one. "latest" is the newest commit of RESTORE_ROOT, of the
restore root that contains the working directory, or of the only restore root.

Later commits in the same root depend on this one. rollback names them, and undoes
them too if --with-later is given.

--dry-run writes nothing. It lists what would be removed, with sizes, what would
stay and why, what was edited since the commit, and how much space is required.

--emergency first ends whatever a crash or a halt left in RESTORE_ROOT, or releases
the root if foreign files are in the way. Then it restores the whole root to its
newest whole snapshot that a person or a timer took and that verifies, and prints
which one. It names damaged snapshots and skips them. If you run it again, it
restores the same snapshot.

A rollback makes earlier previews and approvals of the root void, and detaches
views that show what it undid. If a valid rollback cannot begin or fails, the root
is halted: preview, commit and prune reject it until a rollback succeeds or
"spectrum recover" ends the halt. Rollbacks still work.`,
		Args: func(cmd *cobra.Command, args []string) error { return opts.checkArgs(cmd, app, args) },
		RunE: func(cmd *cobra.Command, args []string) error {
			if opts.emergency && opts.later {
				return usage(cmd, "--with-later requires a commit, and --emergency a restore root")
			}
			if err := checkReason(cmd, opts.reason); err != nil {
				return err
			}
			app.dryRun = opts.dryRun
			if len(args) == 0 { // --emergency --restore-root DIR
				args = []string{app.latestOf}
			}
			return runRollback(cmd.Context(), app, opts, args[0])
		},
	}
	cmd.Flags().BoolVar(&opts.emergency, "emergency", false, "restore a root to its newest whole snapshot that verifies, whatever its state")
	cmd.Flags().BoolVar(&opts.later, "with-later", false, "also undo the later commits")
	dryRunFlag(cmd, &opts.dryRun)
	reasonFlag(cmd, &opts.reason)
	foreignFlag(cmd, &opts.foreign)
	lockFlag(cmd, &opts.wait)
	return cmd
}

func runRollback(ctx context.Context, app *app, opts rollbackOptions, id string) error {
	if opts.emergency {
		return app.rollBackRoot(ctx, opts, id)
	}
	state, err := app.openState()
	if err != nil {
		return err
	}
	defer state.Close()
	sp, err := app.findCommit(state, id)
	if err != nil {
		app.unreadable(state, id, opts.dryRun, err)
		return app.otherWay(state, err)
	}
	if err := app.checkRoot(state, "commit "+sp.Attempt(), sp.Root()); err != nil {
		return err
	}
	in, err := app.enterKnown(ctx, state, sp.Root(), action.Entry{Wait: opts.wait, Foreign: opts.foreign, DryRun: opts.dryRun})
	if err != nil {
		return app.notBegun(state, opts.dryRun, action.Refusal{Root: sp.Root(), Kind: audit.Session, Commits: []string{sp.Attempt()}, Why: err})
	}
	defer in.Leave()
	if id == latest {
		if err := app.latestHasEnded(sp.Attempt()); err != nil {
			return err
		}
	}
	if in.Path() != sp.Root() {
		return rollbackError(fmt.Errorf("the commit was made in %q, which now leads to %q: %w", sp.Root(), in.Path(), action.ErrElsewhere))
	}
	app.say("restore root: %s", shellQuote(in.Real()))
	bar := app.newBar("looking at the restore root")
	undo := action.Undo
	if opts.dryRun {
		undo = action.ForeseeUndo
	}
	done, err := undo(ctx, in, action.What{Commit: sp.Attempt(), Later: opts.later, Reason: reasonOr(opts.reason, noReason)})
	bar.done()
	if err != nil {
		return app.notDone(state, in, undoError(ctx, state, in, sp.Attempt(), app.otherWay(state, err)))
	}
	return app.rolledBack(in, rollbackReport{
		kind: audit.Session, what: "rollback", done: done.Done, commits: done.Commits, files: done.Files, changed: done.Changed, left: done.Left,
		unread: done.Unread, changes: done.Changes, parted: done.Parted, rights: rights{done.Owners, done.Programs}, spaces: done.Spaces, inPart: done.InPart, open: done.Open, edits: done.Edits,
	})
}

// notBegun records a rollback that could not begin outside of an entered root, and returns why. A dry
// run records nothing.
func (a *app) notBegun(state *statedir.Dir, dry bool, refusal action.Refusal) error {
	if dry {
		return refusal.Why
	}
	for _, err := range refusal.Record(logger(state), state) {
		a.tell("spectrum: %s", oneLine(err.Error()))
	}
	if refusal.Halts() {
		a.tellBarred(state, refusal.Root)
	}
	return refusal.Why
}

// shortest is how many digits of an ID are printed, and least how many are enough to name
// something.
const (
	shortest = words.Shortest
	least    = words.Least
)

// otherWay adds to the error of a rollback whose savepoint cannot be read the alternative: the
// snapshot from before the commit.
func (a *app) otherWay(state *statedir.Dir, err error) error {
	var unread *action.UnreadError
	if !errors.As(err, &unread) {
		return err
	}
	root := "RESTORE_ROOT"
	for name := range strings.SplitSeq(unread.Err.RunDir, "/") {
		if path, unknown := state.RootPath(state.RootOfKey(name)); unknown == nil && path != "" {
			root = foreignOption(path) + shellQuote(path)
		}
	}
	var before []string
	if store, failed := a.openSnapshots(state); failed == nil {
		defer store.Close()
		all, _, _ := store.Survey("") // an unreadable snapshot cannot be restored
		for _, h := range all {
			if h.IsBefore(unread.Commit) {
				before = append(before, h.ID)
			}
		}
	}
	return unreadSavepoint(err, unread, root, before)
}

// rollBackRoot resolves unfinished attempts in a root and restores its newest whole snapshot that
// verifies.
func (a *app) rollBackRoot(ctx context.Context, opts rollbackOptions, path string) error {
	root, state, err := a.openStateOf(path)
	if err != nil {
		return err
	}
	defer state.Close()
	var released []string
	in, err := a.enterNamed(ctx, state, root, action.Entry{Wait: opts.wait, Mode: staging.Person, Foreign: opts.foreign, DryRun: opts.dryRun})
	if halted, is := errors.AsType[*haltedError](err); is && len(halted.attempts) > 0 {
		in, err = a.enterHalted(ctx, state, opts, halted)
		for i := range halted.attempts {
			released = append(released, halted.attempts[i].Staging)
		}
	}
	if err != nil {
		name, unnamed := state.RootName(action.RootPath(root))
		if unnamed != nil || errors.Is(err, action.ErrNoRoot) && !machine.IsFault(err) && !isGone(state, root, err) { // a path may be misspelled
			return err
		}
		return a.notBegun(state, opts.dryRun, action.Refusal{Root: name, Kind: audit.Emergency, Why: err})
	}
	defer in.Leave()
	bar := a.newBar("checking the snapshots")
	to, err := action.Emergency(ctx, in, a.knownHost(state))
	bar.done()
	a.tellPassed(in, to.Passed)
	if err != nil {
		return a.notDone(state, in, rollbackError(lesserWay(ctx, state, in, to, in.Refused(audit.Emergency, nil, err))))
	}
	a.say("going back to snapshot %s", targetText(to.Snapshot, in.Real()))
	reason := "emergency: " + restoreReason(to.Snapshot.ID(), opts.reason)
	return a.notDone(state, in, a.restoreSnapshot(ctx, in, restoreRequest{
		target: to.Snapshot, kind: audit.Emergency, reason: reason, passed: to.Passed, ended: released, dryRun: opts.dryRun,
	}))
}

// targetText describes a snapshot of the root at a path: when and why it was taken, and what it
// has.
func targetText(s *snapshot.Snapshot, path string) string {
	h, unkept, whys := s.Header(), 0, map[string]bool{}
	for e := range s.Entries() {
		if !e.Type.Kept() {
			unkept++
			whys[string(e.Type)] = true
		}
	}
	text := fmt.Sprintf("%s: all of %s, %s, %s", identified(h), rootText(path, h.Root), numberOf(h.Files, "file"), bytesText(h.Bytes))
	if unkept > 0 {
		text += fmt.Sprintf("; %s of which nothing was kept (%s), which stay as they are now", numberOf(unkept, "name"), strings.Join(slices.Sorted(maps.Keys(whys)), ", "))
	}
	return oneLine(text)
}

// identified is a snapshot in a few words: its short ID, and when and why it was taken.
func identified(h snapshot.Header) string {
	return fmt.Sprintf("%s of %s (%s)", h.ID[:shortest], h.Time.Format(time.RFC3339), whyTaken(h))
}

// whyTaken returns the kind of a snapshot, and its reason.
func whyTaken(h snapshot.Header) string {
	if h.Reason == "" {
		return string(h.Kind)
	}
	return fmt.Sprintf("%s, %q", h.Kind, h.Reason)
}

// tellPassed names the snapshots that are skipped, with the reason.
func (a *app) tellPassed(in *action.Root, passed []snapshot.Passed) {
	for _, p := range passed {
		if p.Header.ID == "" {
			a.tell("spectrum: skipped: %s", oneLine(p.Damage[0].Error()))
			continue
		}
		why := ""
		switch {
		case p.Gone:
			why = "is gone: " + p.Damage[0].Err.Error()
		case p.Partial:
			why = fmt.Sprintf("lacks %s that could not be read: %s", numberOf(p.Header.Unread, "name"), words.List(unreadOf(in, p.Header.ID)))
		case p.Foreign:
			why = "is not of this host: " + p.Damage[0].Error()
		default:
			why = "is damaged: " + p.Damage[0].Error()
		}
		if n := len(p.Damage); n > 1 {
			why += fmt.Sprintf(", and %d more", n-1)
		}
		a.tell("spectrum: skipped: snapshot %s of %s %s", p.Header.ID[:shortest], p.Header.Time.Format(time.RFC3339), oneLine(why))
	}
}

// unreadOf returns the names of a snapshot that could not be read when it was taken, as far as
// that is known.
func unreadOf(in *action.Root, id string) (names []string) {
	s, err := in.Snapshots().Find(id)
	if err != nil {
		return nil
	}
	for e := range s.Entries() {
		if e.Type.IsUnread() {
			names = append(names, e.Path)
		}
	}
	return names
}

// passedFields are the snapshots that were passed over, for a program.
func passedFields(in *action.Root, passed []snapshot.Passed) []any {
	all := []any{}
	for _, p := range passed {
		fields := damagesOf(p.Header.ID, p.Damage)
		if p.Partial {
			unread := unreadOf(in, p.Header.ID)
			fields["unread"], fields["unread_count"] = jsonTexts(unread[:min(len(unread), maxFields)]), p.Header.Unread
		}
		all = append(all, fields)
	}
	return all
}
