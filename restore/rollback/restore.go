package rollback

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/commit"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
	"golang.org/x/sys/unix"
)

// How says why a snapshot is restored.
type How struct {
	Type   audit.Rollback // Session or Emergency
	Reason string
}

// Restored says what the restore of a snapshot has done.
type Restored struct {
	Done    commit.Done
	Commits []savepoint.Savepoint // that were undone with it, the newest first
	Whole   bool                  // the root was exchanged in one step
}

// Restore makes everything that a snapshot is of as it was, in a root that was
// entered. The savepoint that was active then is active again.
func Restore(ctx context.Context, in *commit.Root, t *snapshot.Snapshot, how How) (*Restored, error) {
	if root := t.Header().Root; root != in.Path() {
		return nil, fmt.Errorf("the snapshot is of %q, and that leads to %q now: %w", root, in.Path(), ErrElsewhere)
	}
	active := t.Header().Said[commit.SavepointNow]
	gone, err := in.Savepoints().Behind(in.Path(), active)
	if err != nil {
		return nil, err
	}
	back, err := in.Savepoints().Ahead(in.Path(), active)
	if err != nil {
		return nil, err
	}
	if err := onlyOf(t.Header(), gone); err != nil {
		return nil, err
	}
	r := &restoring{in: in, target: t, back: commit.Back{
		Type: how.Type, Reason: how.Reason, Target: t.ID(), Affected: attemptsOf(gone), Brings: attemptsOf(back), Savepoint: active,
		Exchange: staging.Exchange{Kind: "snapshot_restore"},
	}}
	done, err := r.run(ctx)
	if err != nil {
		return nil, err
	}
	return &Restored{done, gone, r.back.WholeRoot}, nil
}

// ErrElsewhere says that the path of a root leads somewhere else than it did.
var ErrElsewhere = machine.Disturbed("it is another directory")

// onlyOf refuses the snapshot of a part of a root when commits were made since that
// are not of the action that it comes before: their files would stay, and nobody could
// undo them any more.
func onlyOf(h snapshot.Header, gone []savepoint.Savepoint) error {
	if h.Whole {
		return nil
	}
	own := append(commit.Brings(h), h.Action)
	later := slices.DeleteFunc(attemptsOf(gone), func(id string) bool { return slices.Contains(own, id) })
	if len(later) > 0 {
		return &LaterError{h.Action, later}
	}
	return nil
}

// restoring is the restore of one snapshot.
type restoring struct {
	in     *commit.Root
	target *snapshot.Snapshot
	back   commit.Back
	paths  []pathsafe.Path // of the swaps, as the snapshots know them
}

func (r *restoring) run(ctx context.Context) (commit.Done, error) {
	if !r.target.Header().Whole {
		return r.part(ctx)
	}
	same, err := r.same(ctx)
	if err != nil {
		return commit.Done{}, err
	}
	if same {
		return r.nothing(ctx)
	}
	done, err := r.wholeAtOnce(ctx)
	var failed *staging.Error
	if errors.Is(err, staging.ErrNoExchange) && !(errors.As(err, &failed) && failed.Rollback != nil) {
		r.back.WholeRoot = false
		return r.wholeByName(ctx)
	}
	return done, err
}

// same says whether the root is what the snapshot saw. Where that cannot be told from
// above, as of a mount point, it counts as changed.
func (r *restoring) same(ctx context.Context) (bool, error) {
	above, err := r.in.Above()
	if err != nil {
		return false, ctx.Err()
	}
	defer above.Close()
	err = r.in.Snapshots().Unchanged(ctx, r.target, pathsafe.Path{}, above, filepath.Base(r.in.Path()))
	return err == nil, ctx.Err()
}

// nothing leaves the root as it is: what is allowed and recorded changes all the same.
func (r *restoring) nothing(ctx context.Context) (done commit.Done, err error) {
	if r.back.Exchange.Dirs, err = asItIs(r.in.Dir()); err != nil {
		return commit.Done{}, err
	}
	return r.goBack(ctx)
}

// wholeAtOnce exchanges the root with one that is made beside it.
func (r *restoring) wholeAtOnce(ctx context.Context) (commit.Done, error) {
	st, err := r.in.Dir().Stat()
	if err != nil {
		return commit.Done{}, err
	}
	name, err := pathsafe.Parse(filepath.Base(r.in.Path()))
	if err != nil {
		return commit.Done{}, fmt.Errorf("%w: %w", staging.ErrNoExchange, err)
	}
	r.back.WholeRoot = true
	r.paths = []pathsafe.Path{{}}
	r.back.Exchange.Swaps = []staging.Swap{{Path: name, Old: &st, New: true}}
	r.back.Exchange.Stage = func(ctx context.Context, dir *pathsafe.Dir) error {
		return r.in.Snapshots().Write(ctx, r.target, pathsafe.Path{}, dir, "0")
	}
	return r.goBack(ctx)
}

// wholeByName exchanges every name in the root.
func (r *restoring) wholeByName(ctx context.Context) (commit.Done, error) {
	names, err := r.in.Dir().Names()
	if err != nil {
		return commit.Done{}, err
	}
	names = append(names, topNames(r.target)...)
	slices.Sort(names)
	r.paths, r.back.Exchange.Swaps = nil, nil
	for _, name := range slices.Compact(names) {
		path, err := pathsafe.Parse(name)
		if err == nil {
			err = r.add(path)
		}
		if err != nil {
			return commit.Done{}, err
		}
	}
	top, err := r.target.At(pathsafe.Path{})
	if err != nil {
		return commit.Done{}, err
	}
	r.back.Exchange.Dirs = []staging.DirMeta{{Mode: top.Mode, ModTime: top.ModTime}}
	r.back.Exchange.Stage = r.stageNames
	return r.goBack(ctx)
}

// topNames are the names in the root of a snapshot.
func topNames(s *snapshot.Snapshot) []string {
	var names []string
	for e := range s.Entries() {
		if e.Path != "" && !strings.Contains(e.Path, "/") {
			names = append(names, e.Path)
		}
	}
	return names
}

// stageNames makes the whole tree, so that hard links between its names are kept,
// and then takes the names out of it.
func (r *restoring) stageNames(ctx context.Context, dir *pathsafe.Dir) error {
	const tree = "tree"
	if err := r.in.Snapshots().WriteContents(ctx, r.target, pathsafe.Path{}, dir, tree); err != nil {
		return err
	}
	all, err := dir.OpenDir(tree)
	if err != nil {
		return err
	}
	defer all.Close()
	for i, swap := range r.back.Exchange.Swaps {
		if !swap.New {
			continue
		}
		if err := all.RenameNoReplace(swap.Path.String(), dir, strconv.Itoa(i)); err != nil {
			return err
		}
	}
	return dir.Rmdir(tree)
}

// part makes the names of the snapshot as they were.
func (r *restoring) part(ctx context.Context) (commit.Done, error) {
	for _, path := range r.target.Scope() {
		if err := r.add(path); err != nil {
			return commit.Done{}, err
		}
	}
	if len(r.paths) == 0 {
		var err error
		if r.back.Exchange.Dirs, err = asItIs(r.in.Dir()); err != nil {
			return commit.Done{}, err
		}
	}
	r.back.Scope = r.target.Scope()
	r.back.Exchange.Stage = func(ctx context.Context, dir *pathsafe.Dir) error {
		for i, swap := range r.back.Exchange.Swaps {
			if !swap.New {
				continue
			}
			if err := r.in.Snapshots().Write(ctx, r.target, r.paths[i], dir, strconv.Itoa(i)); err != nil {
				return err
			}
		}
		return r.joinLinks(dir)
	}
	return r.goBack(ctx)
}

// add plans that a name becomes what it was.
func (r *restoring) add(path pathsafe.Path) error {
	e, err := r.target.At(path)
	if err != nil {
		return err
	}
	wanted := e.Type != snapshot.Absent
	st, err := standing(r.in.Dir(), path)
	swap := staging.Swap{Path: path, New: wanted}
	switch {
	case err == nil:
		swap.Old = &st
	case wanted && !errors.Is(err, fs.ErrNotExist) || !notThere(err):
		return err
	}
	if swap.Old != nil || swap.New {
		r.paths = append(r.paths, path)
		r.back.Exchange.Swaps = append(r.back.Exchange.Swaps, swap)
	}
	return nil
}

// standing is what stands at a path that has no links on its way.
func standing(root *pathsafe.Dir, path pathsafe.Path) (pathsafe.Stat, error) {
	names := path.Components()
	last := len(names) - 1
	dir, err := root.Reopen()
	for _, name := range names[:last] {
		if err != nil {
			return pathsafe.Stat{}, err
		}
		above := dir
		dir, err = above.OpenDir(name)
		above.Close()
	}
	if err != nil {
		return pathsafe.Stat{}, err
	}
	defer dir.Close()
	return dir.Lstat(names[last])
}

// notThere tells whether an error says that nothing can stand at a path.
func notThere(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, pathsafe.ErrSymlink)
}

// goBack carries it out. What went must be what the snapshot before it has.
func (r *restoring) goBack(ctx context.Context) (commit.Done, error) {
	r.back.Settled = func(ctx context.Context, before *snapshot.Snapshot, old *pathsafe.Dir) error {
		return unchanged(ctx, r.in.Snapshots(), before, old, r.paths)
	}
	if err := r.room(); err != nil {
		return commit.Done{}, err
	}
	return r.in.GoBack(ctx, r.back)
}

// unchanged wants what went to be what a snapshot has seen.
func unchanged(ctx context.Context, store *snapshot.Store, before *snapshot.Snapshot, old *pathsafe.Dir, paths []pathsafe.Path) error {
	for i, path := range paths {
		e, err := before.At(path)
		if err == nil && e.Type != snapshot.Absent {
			err = store.UnchangedAside(ctx, before, path, old, strconv.Itoa(i))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ErrNoWayBack says that a root has no snapshot to go back to.
var ErrNoWayBack = errors.New("there is no snapshot of it to go back to")

// Last is the snapshot that an emergency rollback goes back to: the newest of those
// that somebody has taken and of those before a commit that still stands. Another
// emergency rollback, with nothing in between, goes back to the same one.
func Last(in *commit.Root) (*snapshot.Snapshot, error) {
	chain, err := in.Savepoints().List(in.Path())
	if err != nil {
		return nil, err
	}
	all, err := in.Snapshots().List(in.Path())
	if err != nil {
		return nil, err
	}
	if again, err := lastAgain(in, chain, all); err != nil || again != nil {
		return again, err
	}
	standing := attemptsOf(chain)
	for _, h := range slices.Backward(all) {
		if h.Kind != snapshot.PreAction || slices.Contains(standing, h.Action) {
			return in.Snapshots().Find(h.ID)
		}
	}
	return nil, fmt.Errorf("%q: %w", in.Path(), ErrNoWayBack)
}

// lastAgain is the snapshot that the last action in a root went back to, if that was
// an emergency rollback; nil if not.
func lastAgain(in *commit.Root, chain []savepoint.Savepoint, all []snapshot.Header) (*snapshot.Snapshot, error) {
	if len(all) == 0 {
		return nil, nil
	}
	target, active := commit.TargetOf(all[len(all)-1])
	tip := ""
	if len(chain) > 0 {
		tip = chain[len(chain)-1].ID()
	}
	if target == "" || active != tip {
		return nil, nil
	}
	return in.Snapshots().Find(target)
}
