package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/statecheck"
	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/view"
	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/words"
	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
	"github.com/spf13/cobra"
)

func newStatus(app *app) *cobra.Command {
	return &cobra.Command{
		Use:   "status [RESTORE_ROOT]",
		Short: "show the state of a restore root, or of all: halts, drift, possible rollbacks",
		Long: `status shows, for a restore root or for all known ones,

    state      clean, unfinished (a command is running, or was killed), halted
               (a person must act), incomplete (a rollback left part of a commit),
               damaged (the record of the newest commit is lost or damaged), or gone
    savepoint  the active one, and how many of its files were changed since
    snapshot   the newest one of the whole root
    previews   those that were not committed or superseded; commit checks
               whether they are stale
    views      those that are mounted for it
    held       its candidates in quarantine
    space      free for this user in the root and in the state directory

Then it lists the layers that "spectrum run" left behind, because it was killed or
could not seal the changes, with the commands that seal and remove them, and the
newest candidates that were not reviewed.

status takes no lock and changes nothing. It reads the files of the active
savepoint, but does not verify snapshots: use "spectrum snapshot verify". The exit status is 0
even if a root is halted: for monitoring, use "spectrum doctor".`,
		Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return app.withSavepoints(func(s *savepointCommand) error { return s.status(cmd.Context(), args) })
		},
	}
}

// rootStatus is the state of one restore root.
type rootStatus struct {
	name, path   string // what its records are of, and where it is now
	stranger     string // the state directory, if it has no record of the root
	state        string // see the constants
	halted       []string
	beside       []string // paths of halted roots that share directories with it
	bar          *barMark // of a rollback that could not be carried out; nil for none
	unfinished   []string // names in the root, and ids of actions
	actions      []*audit.Action
	tip          *savepoint.Savepoint
	tipError     error         // why it is not known which savepoint is active
	lost         *audit.Action // the newest commit, if its savepoint is lost
	files        int           // of the savepoint
	isCompared   bool          // with the files in the root
	drifts       []savepoint.Drift
	isLostUndone bool   // by the restore of a snapshot from before it
	unrecorded   string // the newest commit, if its savepoint is lost or damaged
	undo         string // the command that undoes that one; "" for none
	isUndoable   bool   // the snapshot from before the savepoint's commit exists
	// hasWholeBefore: an emergency rollback would restore a snapshot from before it.
	hasWholeBefore bool
	isLossAccepted bool // of the snapshot from before it
	stays          partlyUndone
	whole          *snapshot.Header
	previews       []string
	removed        []string // those of them whose candidates were removed
	again          []string // the commands that show the newest of these
	views          []string
	silent         []string // views that do not report what they show
	held           []string
	free           int64
	stateFree      int64   // for the state directory
	unknown        []error // what could not be found out
}

// States of a root.
const (
	rootClean      = "clean"
	rootUnfinished = "unfinished"
	rootHalted     = "halted"
	rootIncomplete = "incomplete"
	rootDamaged    = "damaged"
	rootGone       = "gone"
)

func (s *savepointCommand) status(ctx context.Context, args []string) error {
	roots, err := s.rootsOf(args)
	if err != nil {
		return err
	}
	if len(roots) == 0 {
		s.say("no restore root is known in the state directory %s; \"spectrum commit\" and \"spectrum snapshot take\" make one known, and --state-dir names another state directory", shellQuote(s.state.Path()))
	}
	left, err := s.leftLayers(args, roots)
	if err != nil {
		return err
	}
	parts, records := make([]string, 0, len(roots)), make([]any, 0, len(roots))
	for _, st := range roots {
		s.examine(ctx, st)
		if err := ctx.Err(); err != nil {
			return err
		}
		parts = append(parts, st.text())
		records = append(records, st.fields())
	}
	root, candidates := "", []any{}
	if len(args) > 0 && len(roots) > 0 {
		root = roots[0].path
	}
	unseen := s.unreviewed(s.state, root)
	for n, c := range unseen {
		if n < maxUnreviewed {
			parts = append(parts, s.candidateText(c))
		}
		candidates = append(candidates, map[string]any{"over": jsonText(string(c.Over)), "run_dir": jsonText(string(c.RunDir))})
	}
	if len(unseen) > maxUnreviewed {
		parts = append(parts, earlierText(unseen[maxUnreviewed:]))
	}
	layers := []any{}
	for _, layer := range left {
		parts = append(parts, s.layerText(layer))
		layers = append(layers, map[string]any{"over": jsonText(layer.Over), "path": jsonText(layer.Path)})
	}
	return s.result(s.here(strings.Join(parts, "\n\n")), map[string]any{"candidates": candidates, "code": "OK", "layers": layers, "ok": true, "roots": records})
}

// leftLayers returns the layers of runs that are left over: of one root those that are of it.
func (s *savepointCommand) leftLayers(args []string, roots []*rootStatus) ([]statedir.Layer, error) {
	all, err := s.state.LeftLayers()
	if err != nil || len(args) == 0 {
		return all, err
	}
	return slices.DeleteFunc(all, func(l statedir.Layer) bool {
		return !slices.ContainsFunc(roots, func(st *rootStatus) bool { return pathsafe.IsWithin(l.Over, st.path) })
	}), nil
}

// layerText has the commands that seal and remove a layer that is left over.
func (a *app) layerText(l statedir.Layer) string {
	lines := []string{shellQuote(l.Path), "  run        left over: it was killed, or not sealed"}
	if l.Over != "" {
		lines[1] = "  run        over " + shellQuote(l.Over) + ", left over: it was killed, or not sealed"
		lines = append(lines, "  to seal    "+a.commandLine("seal", "--upper", filepath.Join(l.Path, changedName), "--lower", l.Over))
	}
	return strings.Join(append(lines, "  to remove  "+words.RemoveLayer(l.Path)), "\n")
}

// rootsOf returns the requested roots, with their names and paths.
func (s *savepointCommand) rootsOf(args []string) ([]*rootStatus, error) {
	if len(args) == 0 {
		return s.allRoots()
	}
	path, err := rootArg(args[0])
	if err != nil {
		return nil, err
	}
	name, err := nameOfRoot(s.state, path, true)
	if err != nil {
		return nil, err
	}
	root := []*rootStatus{{name: name, path: path}}
	unknown := notKnown(s.state, path, "commit or snapshot")
	if unknown == nil {
		return root, nil
	}
	known, err := s.allRoots()
	if err != nil || slices.ContainsFunc(known, func(st *rootStatus) bool { return st.name == name }) {
		return root, err
	}
	if other := otherID(s.state, args[0]); other != "" && !isThere(args[0]) {
		return nil, refusedHint(fmt.Errorf("%q is an ID, and not a restore root", args[0]), other)
	}
	return nil, unknown
}

// allRoots returns all roots that are known, by their names: what is lost of where they are, the
// log may still have.
func (s *savepointCommand) allRoots() ([]*rootStatus, error) {
	paths, err := s.state.RootPaths()
	if err != nil {
		return nil, err
	}
	at := map[string]string{}
	all, _ := actionsOf(s.state, "") // each root reports its damage
	for _, c := range all {
		at[audit.RootOf(c.Root)] = audit.RootOf(c.Root)
	}
	for _, path := range slices.Backward(paths) { // the newest is where it is
		name, err := nameOfRoot(s.state, path, true)
		if err != nil {
			return nil, err
		}
		at[name] = path
	}
	var roots []*rootStatus
	lost, err := statecheck.UnnamedRoots(s.state)
	if err != nil {
		return nil, err
	}
	for name := range lost {
		if at[name] == "" {
			at[name] = name
		}
	}
	for _, name := range slices.Sorted(maps.Keys(at)) {
		roots = append(roots, &rootStatus{name: name, path: at[name]})
	}
	return roots, nil
}

// examine finds the state of a root. An error in one part is recorded, and does not stop the
// others.
func (s *savepointCommand) examine(ctx context.Context, st *rootStatus) {
	st.stateFree = st.freeAt(s.state.Root())
	st.unended(s.state)
	dir, err := st.open()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		st.state = rootGone
	case st.knows(err):
		defer dir.Close()
		st.look(dir)
	}
	st.findSavepoint(ctx, s, dir != nil)
	hasSnapshots := st.newestWhole(s.state)
	isNamed, err := s.state.Names(st.name)
	if st.knows(err) && !isNamed && (hasSnapshots || st.tip != nil) {
		st.knows(statecheck.UnnamedError(s.state, st.name))
	}
	st.waiting(s.app, s.state)
	st.views, st.silent, err = view.ForRoot(ctx, st.name, st.path)
	st.knows(err)
	st.heldBack(ctx, s)
	if !isNamed && !hasSnapshots && len(st.actions)+len(st.previews)+len(st.held)+len(st.unknown) == 0 {
		st.stranger = s.state.Path()
	}
}

// open opens the restore root for a look.
func (st *rootStatus) open() (*pathsafe.Dir, error) { return pathsafe.OpenRoot(st.path) }

// newestWhole finds the newest snapshot that an emergency rollback may go back to, and what undoes the
// newest commit. It reports whether there is any snapshot.
func (st *rootStatus) newestWhole(state *statedir.Dir) (hasAny bool) {
	store, err := statecheck.Snapshots(state)
	if !st.knows(err) {
		return false
	}
	defer store.Close()
	all, damaged, err := store.Survey(st.name)
	st.knows(err)
	for _, d := range damaged {
		st.knows(d)
	}
	st.whole = snapshot.NewestForEmergency(all)
	st.findUndo(state, store, all)
	return len(all)+len(damaged) > 0
}

// knows records an error, and reports whether there is none.
func (st *rootStatus) knows(err error) bool {
	if err != nil {
		st.unknown = append(st.unknown, err)
	}
	return err == nil
}

// unended finds the actions of the log that have not ended, and those that halt the root.
func (st *rootStatus) unended(state *statedir.Dir) {
	var err error
	st.actions, err = actionsOf(state, st.name)
	st.knows(err)
	for _, c := range st.actions {
		switch c.State {
		case audit.Unresolved:
			st.halted = append(st.halted, c.ID)
		case audit.Open:
			st.unfinished = append(st.unfinished, c.ID)
		}
	}
	halts, err := action.HaltsAt(st.path, state)
	st.knows(err)
	for _, h := range halts {
		if !slices.Contains(st.halted, h.Attempt) {
			st.halted = append(st.halted, h.Attempt)
		}
	}
	if mark, is := state.BarOf(st.name); is {
		st.bar = &barMark{mark}
	}
	for _, overlap := range haltedRelated(state, st.name, st.path) {
		st.beside = append(st.beside, overlap.Other.Path)
	}
	switch {
	case len(st.halted) > 0 || st.bar != nil:
		st.state = rootHalted
	case len(st.unfinished) > 0:
		st.state = rootUnfinished
	default:
		st.state = rootClean
	}
}

// findSavepoint finds the active savepoint and, if the root can be opened, compares its files.
func (st *rootStatus) findSavepoint(ctx context.Context, s *savepointCommand, isOpen bool) {
	tip, ok, err := s.store.Tip(st.name)
	if !st.knows(err) {
		st.tipError = err
		st.becomes(rootDamaged)
		return
	}
	if st.lost, err = lostSavepoint(s.state, s.store, st.actions, tip); st.knows(err) && st.lost != nil {
		st.becomes(rootDamaged)
		return
	}
	if !ok {
		return
	}
	st.tip, st.files = &tip, tip.Listing().Len()
	if !isOpen {
		return
	}
	_, drifts, err := s.compare(ctx, tip, st.path)
	st.isCompared = st.knows(err)
	st.drifts = slices.DeleteFunc(drifts, func(d savepoint.Drift) bool { return d.State == savepoint.Same })
	st.stays = partlyUndoneOf(st.actions, tip.Attempt(), st.isCompared && len(st.drifts) == 0)
	if st.stays.rollback != "" {
		st.becomes(rootIncomplete)
		st.knows(st.stays.find(ctx, s.state, st))
	}
}

// becomes sets the state of a root that would be clean.
func (st *rootStatus) becomes(state string) {
	if st.state == rootClean {
		st.state = state
	}
}

// look looks at the root itself.
func (st *rootStatus) look(dir *pathsafe.Dir) {
	left, err := staging.Leftovers(dir)
	if st.knows(err) && len(left) > 0 {
		st.unfinished = append(st.unfinished, left...)
		st.becomes(rootUnfinished)
	}
	st.free = st.freeAt(dir)
}

// freeAt returns what is free for this user in the file system of a directory, as a rollback counts it.
func (st *rootStatus) freeAt(dir *pathsafe.Dir) int64 {
	room, err := machine.RoomOf(dir)
	if !st.knows(err) {
		return 0
	}
	free, err := room.Free()
	if !st.knows(err) {
		return 0
	}
	return int64(min(free.Bytes, 1<<62)) //nolint:gosec // bounded
}

// maxAgain is how many previews status has a command for.
const maxAgain = 3

// waiting finds the previews that can still be approved.
func (st *rootStatus) waiting(a *app, state *statedir.Dir) {
	ids, err := state.Unused()
	st.knows(err)
	begun, err := state.Attempts(st.name)
	if !st.knows(err) {
		return
	}
	for _, id := range ids {
		record, err := loadRecord(state, id)
		if errors.Is(err, fs.ErrNotExist) || !st.knows(err) {
			continue
		}
		root, err := state.RootName(record.Origin().RestoreRoot)
		if err == nil && root == st.name && record.Attempts() == begun {
			st.previews = append(st.previews, id)
			if missingOf(record.Origin()) != "" {
				st.removed = append(st.removed, id)
				continue
			}
			if again := a.reviewAgain(record.Origin(), record.Asked()); len(st.again) < maxAgain && !slices.Contains(st.again, again) {
				st.again = append(st.again, again)
			}
		}
	}
}

// heldBack finds the candidates for the root that are held.
func (st *rootStatus) heldBack(ctx context.Context, s *savepointCommand) {
	store, err := openQuarantine(s.state)
	if !st.knows(err) {
		return
	}
	defer store.Close()
	records, err := store.List(ctx)
	st.knows(err)
	for _, r := range records {
		if root, err := s.state.RootName(r.RestoreRoot); err == nil && root == st.name && len(r.Held()) > 0 {
			st.held = append(st.held, r.Source)
		}
	}
}
