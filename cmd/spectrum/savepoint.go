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
	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/words"
	"github.com/spectrumfs/spectrum/internal/hexdigits"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/internal/visible"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spf13/cobra"
)

func newSavepoint(app *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "savepoint",
		Short: "list, show and verify savepoints: the signed record of each commit",
		Long: `savepoint reads the savepoints in the state directory. Each commit leaves one: a
signed bundle over the files that it restored, with the Restore Commit Report. It
names the savepoint before it, so the savepoints of a restore root form a chain,
and a savepoint that was changed, moved or removed from the middle is detected.
A user who can write to the state directory can remove the newest one unnoticed:
compare with an ID that "savepoint list" printed earlier.`,
	}
	cmd.AddCommand(newSavepointVerify(app),
		&cobra.Command{
			Use:   "list [RESTORE_ROOT]",
			Short: "list the savepoints of a restore root, or of all, oldest first",
			Args:  atMost(1),
			RunE:  func(_ *cobra.Command, args []string) error { return app.withSavepoints(listSavepoints(args)) },
		},
		newSavepointShow(app))
	return cmd
}

func newSavepointShow(app *app) *cobra.Command {
	var opts paged
	cmd := &cobra.Command{
		Use:   "show ID|latest [RESTORE_ROOT]",
		Short: "print the Restore Commit Report of a savepoint",
		Args:  exactly(1),
		RunE:  func(_ *cobra.Command, args []string) error { return app.withSavepoints(showSavepoint(args[0], opts)) },
	}
	noPagerFlag(cmd, &opts.noPager)
	return cmd
}

func newSavepointVerify(app *app) *cobra.Command {
	var v savepointVerify
	cmd := &cobra.Command{
		Use:   "verify ID|latest [RESTORE_ROOT]",
		Short: "verify a savepoint and its chain, and list what has changed since",
		Long: `verify checks the signatures of the whole chain of a savepoint, and compares each
file of the savepoint with the restore root. "latest" is the newest savepoint of
RESTORE_ROOT, which is optional if there is only one root, or in a directory of it.
With an ID, RESTORE_ROOT (or --restore-root) is another directory to compare with.
The earlier order, RESTORE_ROOT first, is also accepted. The exit status is 0 if
nothing has changed, and 1 otherwise.`,
		Args: between(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := noEmptyArgument(cmd, args); err != nil {
				return err
			}
			v.id = args[0]
			if len(args) > 1 {
				if v.root != "" {
					return rootOnce(cmd)
				}
				var err error
				if v.id, v.root, err = idAndRoot(cmd, args); err != nil {
					return err
				}
			}
			return app.withSavepoints(func(s *savepointCommand) error { return v.run(cmd, s) })
		},
	}
	cmd.Flags().StringVar(&v.root, "restore-root", "", "the `directory` to compare with")
	return cmd
}

// savepointCommand is the store of savepoints with what the commands need.
type savepointCommand struct {
	*app
	state *statedir.Dir
	store *savepoint.Store
}

// withSavepoints runs do with the savepoints of the state directory.
func (a *app) withSavepoints(do func(*savepointCommand) error) error {
	state, err := a.openState()
	if err != nil {
		return err
	}
	defer state.Close()
	store, err := statecheck.Savepoints(state)
	if err != nil {
		return err
	}
	defer store.Close()
	return savepointError(do(&savepointCommand{a, state, store}))
}

// rootArg is a restore root that was named, by the path under which it is known.
func rootArg(path string) (string, error) {
	abs, err := filepath.Abs(path)
	return action.RootPath(abs), err
}

// find finds a savepoint by its ID or by that of its commit.
func (s *savepointCommand) find(id string) (savepoint.Savepoint, error) {
	if id == latest {
		return s.newestCommit(s.state, func() (savepoint.Survey, error) {
			all, err := s.store.List("")
			return savepoint.Survey{Standing: all}, err
		})
	}
	// Where a savepoint is damaged, its ID cannot be read, and may be the one that is meant.
	if _, err := s.store.Find(id); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return savepoint.Savepoint{}, err
	}
	all, err := s.store.Survey("")
	if err != nil {
		return savepoint.Savepoint{}, err
	}
	switch named := action.NamedCommit(id, &all, logOf(s.state)); named.Kind {
	case action.NamesCommit:
		return named.Savepoint, s.checkRoot(s.state, "savepoint "+named.Savepoint.ID(), named.Savepoint.Root())
	case action.NamesSeveral:
		return savepoint.Savepoint{}, refusedHint(fmt.Errorf("%d savepoints, or commits of savepoints, begin with %q", len(named.Several), id), listsSavepoints)
	case action.NamesUndone:
		return savepoint.Savepoint{}, alreadyUndone(s.state, named.Savepoint.Attempt(), named.Rollback)
	}
	hint := listsSavepoints
	if lower := strings.ToLower(id); lower != id && hexdigits.Only(lower) {
		hint = "IDs are in lower case: " + lower
	}
	return savepoint.Savepoint{}, refusedHint(fmt.Errorf("%.100q is neither the ID of a savepoint in %q nor that of its commit, nor the beginning of one with %d digits or more", id, s.state.Path(), least), hint)
}

// findUndone is find for a look: a savepoint whose commit was undone is found too, and named as that.
func (s *savepointCommand) findUndone(id string) (savepoint.Savepoint, error) {
	sp, err := s.find(id)
	if err == nil || id == latest {
		return sp, err
	}
	all, failed := s.store.Survey("")
	if failed != nil || slices.ContainsFunc(all.Standing, func(sp savepoint.Savepoint) bool { return sp.IsNamed(id) }) {
		return sp, err
	}
	found := slices.DeleteFunc(all.Retired, func(sp savepoint.Savepoint) bool { return !sp.IsNamed(id) })
	if len(found) != 1 {
		return sp, err
	}
	if other := s.checkRoot(s.state, "savepoint "+found[0].ID(), found[0].Root()); other != nil {
		return sp, other
	}
	undone := alreadyUndone(s.state, found[0].Attempt(), action.RollbackOf(found[0].Attempt(), logOf(s.state)))
	s.tell("spectrum: %s", oneLine(undone.Error()))
	return found[0], nil
}

// listsSavepoints is the next step for an operator without the ID of a savepoint.
const listsSavepoints = "\"spectrum savepoint list\" lists the IDs of savepoints, and \"spectrum log\" those of commits"

func listSavepoints(args []string) func(*savepointCommand) error {
	return func(s *savepointCommand) (err error) {
		root := ""
		if len(args) > 0 {
			if root, err = rootArg(args[0]); err == nil {
				root, err = nameOfRoot(s.state, root, true)
			}
			if err != nil {
				return err
			}
		}
		found, err := s.store.Survey(root)
		if err != nil {
			return err
		}
		damaged := []any{}
		for i, d := range found.Damaged {
			if i > 0 { // the first is the error
				s.tell("spectrum: %s", oneLine(d.Error()))
			}
			damaged = append(damaged, map[string]any{"attempt": orNull(d.Attempt), "run_dir": jsonText(d.RunDir), "why": jsonText(d.Err.Error())})
		}
		all := found.Standing
		slices.SortStableFunc(all, func(a, b savepoint.Savepoint) int { return strings.Compare(a.Root(), b.Root()) })
		if len(all) == 0 && root != "" {
			if err := notKnown(s.state, root, "savepoint"); err != nil {
				return err
			}
			s.say("no savepoints of %q; every commit there makes one", root)
		}
		lines, records := make([]string, 0, len(all)), make([]any, 0, len(all))
		for _, sp := range all {
			created := sp.Created().Format(time.RFC3339)
			lines = append(lines, oneLine(fmt.Sprintf("%d %s %s %q", sp.Sequence(), sp.ID(), created, sp.Root())))
			records = append(records, map[string]any{
				"attempt": sp.Attempt(), "created_at": sp.Created().Format(time.RFC3339Nano), "files": sp.Listing().Len(), "id": sp.ID(),
				"parent": orNull(sp.Parent()), "restore_root": jsonText(sp.Root()), "run_dir": jsonText(sp.RunDir()),
				"sequence": sp.Sequence(), "validator_id": sp.ValidatorID(),
			})
		}
		if len(found.Damaged) == 0 {
			return s.result(strings.Join(lines, "\n"), map[string]any{"code": "OK", "ok": true, "savepoints": records})
		}
		if !s.json && len(lines) > 0 {
			if err := s.text(strings.Join(lines, "\n")); err != nil {
				return err
			}
		}
		first := found.Damaged[0]
		return damagedSavepoint(first, first, map[string]any{"damaged": damaged, "savepoints": records}, keepSavepoints+"; the others are listed, and can be undone")
	}
}

// showSavepoint prints the report as it was signed, byte for byte.
func showSavepoint(id string, opts paged) func(*savepointCommand) error {
	return func(s *savepointCommand) error {
		sp, err := s.findUndone(id)
		if err != nil {
			return err
		}
		report, err := sp.Report()
		if err != nil {
			return err
		}
		if s.json {
			return s.raw(report.JSON)
		}
		return s.showReport(s.stdout, []byte(visible.Lines(string(report.Markdown))), opts)
	}
}

// savepointVerify is one call of the command.
type savepointVerify struct{ id, root string }

func (v savepointVerify) run(cmd *cobra.Command, s *savepointCommand) error {
	if v.root != "" {
		root, err := rootArg(v.root)
		if err != nil {
			return err
		}
		v.root = root
	}
	sp, err := v.find(cmd, s)
	if err != nil {
		return err
	}
	host, err := hostID(s.state)
	if err != nil {
		return err
	}
	if host == "" {
		s.say("spectrum: this host has no key, so it was not checked that the host made these signatures")
	}
	if err := s.store.VerifyChain(sp.Root(), host); err != nil {
		return err
	}
	if v.root == "" {
		if v.root, err = s.state.RootPath(sp.Root()); err != nil {
			return err
		}
	}
	real, drifts, err := s.compare(cmd.Context(), sp, v.root)
	if err != nil {
		return err
	}
	return s.report(sp, real, drifts)
}

// find finds the savepoint that was named.
func (v savepointVerify) find(cmd *cobra.Command, s *savepointCommand) (savepoint.Savepoint, error) {
	if v.id != latest {
		return s.find(v.id)
	}
	s.latestOf = v.root
	name, err := s.latestRoot(s.state)
	if err != nil {
		return savepoint.Savepoint{}, err
	}
	all, err := s.store.List(name)
	if err != nil {
		return savepoint.Savepoint{}, err
	}
	newest, roots := action.Newest(all, savepoint.Savepoint.Root)
	switch len(roots) {
	case 0:
		return savepoint.Savepoint{}, refusedHint(errors.New("there is no savepoint yet"), "each \"spectrum commit\" leaves one; \"spectrum savepoint list\" lists them")
	case 1:
		return *newest, nil
	}
	return savepoint.Savepoint{}, usage(cmd, "there are savepoints of several restore roots: name one with --restore-root DIR")
}

func (s *savepointCommand) compare(ctx context.Context, sp savepoint.Savepoint, root string) (real string, _ []savepoint.Drift, err error) {
	dir, err := pathsafe.OpenRoot(root)
	if err != nil {
		return "", nil, refusedHint(fmt.Errorf("restore root: %w", err), "name where the files are with --restore-root DIR")
	}
	defer dir.Close()
	if real, err = dir.RealPath(); err != nil {
		return "", nil, err
	}
	bar := s.newBar("comparing")
	defer bar.done()
	bar.begin("comparing", sp.Listing().Len(), unknown)
	drifts, err := sp.Drift(ctx, dir, bar.add)
	return real, drifts, err
}

// report prints what has drifted, or that nothing has.
func (s *savepointCommand) report(sp savepoint.Savepoint, root string, drifts []savepoint.Drift) error {
	total := len(drifts)
	drifts = slices.DeleteFunc(drifts, func(d savepoint.Drift) bool { return d.State == savepoint.Same })
	if len(drifts) == 0 {
		return s.result(fmt.Sprintf("OK %s %s", sp.ID(), numberOf(total, "file")), map[string]any{
			"code": "OK", "details": map[string]any{}, "files": total, "id": sp.ID(), "ok": true, "restore_root": jsonText(root),
		})
	}
	lines := make([]string, 0, len(drifts)+1)
	for _, d := range drifts {
		lines = append(lines, oneLine(fmt.Sprintf("%s %q", d.State, d.Path)))
	}
	lines = append(lines, fmt.Sprintf("DRIFTED %s %s", sp.ID(), words.Of(len(drifts), total, "file")))
	if !s.json {
		if err := s.text(strings.Join(lines, "\n")); err != nil {
			return err
		}
	}
	return drifted(sp.ID(), root, drifts, total)
}

// drifted is the verdict on a restore root in which these files of so many have
// changed.
func drifted(id, root string, drifts []savepoint.Drift, total int) error {
	files := make([]any, 0, len(drifts))
	for _, d := range drifts {
		files = append(files, map[string]any{"path": d.Path, "state": string(d.State)})
	}
	return &codedError{
		code: codeDrifted, details: map[string]any{"files": files, "id": id, "restore_root": jsonText(root), "total": total},
		err:  fmt.Errorf("%s in %q %s not as in the savepoint", words.Of(len(drifts), total, "file"), root, areOf(len(drifts))),
		hint: fmt.Sprintf("\"spectrum savepoint show %s\" shows what was restored, and from where", id[:shortest]),
	}
}
