package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spectrumfs/spectrum/fusefs"
	"github.com/spectrumfs/spectrum/internal/statedir"
)

// This file is the authority reset after a rollback, as far as views go (rollback
// and snapshot contract, sections 7.2 and 8): a view of what was rolled back does
// not outlive it, and a new one says that it happened, never why (section 11).

// rolledBack is what a rollback undid.
type rolledBack struct {
	Root        string   // the restore root, its real path
	BundleRoots []string // of the candidates whose commits were undone, and of what was derived of them
}

// revocation is what became of the views of what was rolled back.
type revocation struct {
	Detached []string   // mount points, in the order of the mount table
	Left     []leftView // what may still show it, in that order
	Err      error      // the marks could not be made, or the mount table not be read
}

// leftView is a view that could not be detached, or not be asked what it shows.
type leftView struct {
	Mountpoint string
	Err        error
}

// How long a view may take to say what it shows, and to end. All views are asked
// at once, so this bounds the whole.
const (
	askPatience    = 5 * time.Second
	revokePatience = 15 * time.Second
)

// revokeViews is to be called when a rollback is complete. It marks, durably, that
// there was one; then it detaches each live view, which this user may reach, that
// shows one of the bundles or was mounted for the restore root. A shelf goes whole.
// A view that does not answer holds up nobody: it is told of. Marks that could not
// be made do not keep the views from being detached.
func (a *app) revokeViews(ctx context.Context, state *statedir.Dir, of rolledBack) revocation {
	var r revocation
	marks := state.MarkRolledBack(of.Root, of.BundleRoots)
	views, err := fusefs.Views()
	ended, errs := make([]bool, len(views)), make([]error, len(views))
	var all sync.WaitGroup
	for i, view := range views {
		all.Go(func() { ended[i], errs[i] = of.revoke(ctx, view) })
	}
	all.Wait()
	for i, view := range views {
		switch {
		case errs[i] != nil:
			r.Left = append(r.Left, leftView{view.Path(), errs[i]})
		case ended[i]:
			r.Detached = append(r.Detached, view.Path())
		}
	}
	r.Err = errors.Join(marks, err)
	return r
}

// tell says which views were detached, and what to do about the others.
func (r *revocation) tell(a *app) {
	for _, path := range r.Detached {
		a.say("detached the view on %q", path)
	}
	for _, left := range r.Left {
		a.tell("spectrum: the view on %q may show what was rolled back, and was not detached: %s", left.Mountpoint, oneLine(left.Err.Error()))
	}
	if len(r.Left) > 0 {
		a.tell("hint: \"spectrum umount MOUNTPOINT\" ends a view, when nobody holds it or its server has gone")
	}
}

// revoke ends a view if it is one of what was rolled back, and says whether it
// was.
func (of rolledBack) revoke(ctx context.Context, view *fusefs.Other) (ended bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, revokePatience)
	defer cancel()
	concerned, err := of.concerns(ctx, view)
	switch {
	case errors.Is(err, fusefs.ErrNotMounted), errors.Is(err, fs.ErrPermission): // it has ended, or is not this user's
		return false, nil
	case err != nil || !concerned:
		return false, err
	}
	err = view.Revoke(ctx)
	return err == nil, err
}

// concerns asks a view what it shows.
func (of rolledBack) concerns(ctx context.Context, view *fusefs.Other) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	var record candidateRecord
	err := readOther(ctx, view, candidateFile, &record)
	if errors.Is(err, fs.ErrNotExist) {
		return of.concernsShelf(ctx, view)
	}
	if err != nil {
		return false, err
	}
	for _, run := range record.Runs {
		if slices.Contains(of.BundleRoots, run.BundleRoot) {
			return true, nil
		}
	}
	return of.isRoot(ctx, record.RestoreRoot)
}

// isRoot says whether a path leads to the restore root. It is another's word, and
// the way may lead through a disk that does not answer.
func (of rolledBack) isRoot(ctx context.Context, path *string) (bool, error) {
	if path == nil || *path == of.Root {
		return path != nil, nil
	}
	real, err := unlessStuck(ctx, func() (string, error) { return realPath(*path) })
	if errors.Is(err, errStuck) {
		return false, err
	}
	return err == nil && real == of.Root, nil
}

// concernsShelf is concerns for a view of many runs. Those that nobody has entered
// show nothing yet.
func (of rolledBack) concernsShelf(ctx context.Context, view *fusefs.Other) (bool, error) {
	var status struct {
		Runs map[string]struct {
			BundleRoot string `json:"bundle_root"`
		} `json:"runs"`
	}
	if err := readOther(ctx, view, statusFile, &status); err != nil {
		return false, err
	}
	for _, run := range status.Runs {
		if slices.Contains(of.BundleRoots, run.BundleRoot) {
			return true, nil
		}
	}
	return false, nil
}

// maxControl bounds what is read of a view's control files, in bytes.
const maxControl = 256 << 20

func readOther(ctx context.Context, view *fusefs.Other, name string, v any) error {
	raw, err := view.Read(ctx, name, maxControl)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("%s of the view: %w", name, err)
	}
	return nil
}

// errRevoked ends the process of a view that was taken back. Why, it does not
// know.
var errRevoked = errors.New("the view was revoked: what it shows was rolled back")

// rollbackMarks finds out whether what a view shows was rolled back.
type rollbackMarks struct {
	state string // path of the state directory
	root  string // real path of the restore root; "" for none
}

// rollbackMarks are the marks for a view that knows a restore root, or "".
func (a *app) rollbackMarks(restoreRoot string) (m rollbackMarks, err error) {
	if m.state, err = a.statePath(); err != nil {
		return rollbackMarks{}, err
	}
	if m.state, err = filepath.Abs(m.state); err != nil { // the background is elsewhere
		return rollbackMarks{}, err
	}
	if restoreRoot != "" {
		m.root, err = realPath(restoreRoot)
	}
	if err != nil {
		return rollbackMarks{}, err
	}
	return m, nil
}

// have says whether there is a mark, now. Where the marks cannot be looked up there
// may be one: nobody is told that nothing has happened when that is not known.
func (m rollbackMarks) have(bundleRoots ...string) bool {
	was, err := statedir.WasRolledBack(m.state, m.root, bundleRoots)
	return was || err != nil
}
