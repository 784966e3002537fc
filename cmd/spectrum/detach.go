package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spectrumfs/spectrum/fusefs/fusemount"
	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/internal/statedir"
)

// This file is the authority reset after a rollback, as far as views go (rollback
// and snapshot contract, sections 7.2 and 8): a view of what was rolled back does
// not outlive it, and a new one says that it happened, never why (section 11).

// rolledBack is what a rollback undid.
type rolledBack struct {
	Root        string   // the path that the restore root is known by
	Path        string   // where it is; "" for the same
	BundleRoots []string // of the candidates whose commits were undone, and of what was derived of them
}

// revocation is what became of the views of what was rolled back.
type revocation struct {
	Detached []string            // mount points, in the order of the mount table
	Left     []leftView          // what may still show it, in that order
	Foreign  []fusemount.Foreign // those of other users, which were not asked
	Err      error               // the marks could not be made, or the mount table not be read
}

// leftView is a view that could not be detached, or not be asked what it shows.
type leftView struct {
	Mountpoint string
	Err        error
}

// How long a view may take to answer what it shows, and to end.
const (
	askPatience    = 5 * time.Second
	revokePatience = 15 * time.Second
)

// revokeViews is to be called when a rollback is complete. It marks, durably, that
// there was one; then it detaches each live view of this user that shows one of the
// bundles or was mounted for the restore root, one after another. A shelf goes whole.
// A view that does not answer is reported, as are those of other users: this process
// holds locks and a journal, so it sends nothing to a server of theirs. Marks that
// could not be made do not keep the views from being detached.
func (a *app) revokeViews(ctx context.Context, state *statedir.Dir, of rolledBack) revocation {
	var r revocation
	marks := state.MarkRolledBack(of.Root, of.BundleRoots)
	views, foreign, err := fusemount.Views()
	for _, view := range views {
		ended, err := of.revoke(ctx, view)
		switch {
		case err != nil:
			r.Left = append(r.Left, leftView{view.Path(), err})
		case ended:
			r.Detached = append(r.Detached, view.Path())
		}
	}
	r.Foreign, r.Err = foreign, errors.Join(marks, err)
	return r
}

// maxTold is how many views of other users are named in words. The result as JSON has
// all of them.
const maxTold = 20

// tell prints which views were detached, and what to do about the others.
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
	for _, f := range r.Foreign[:min(len(r.Foreign), maxTold)] {
		a.tell("spectrum: the view on %q belongs to %s: it was not asked what it shows, and not detached", f.Mountpoint, machine.UserText(f.UserID))
	}
	if more := len(r.Foreign) - maxTold; more > 0 {
		a.tell("spectrum: %s of other users not named here; \"findmnt -t fuse.spectrum\" lists them", numberOf(more, "more view"))
	}
}

// foreignViews are the views of other users in a result.
func foreignViews(all []fusemount.Foreign) []map[string]any {
	views := make([]map[string]any, 0, len(all))
	for _, f := range all {
		view := map[string]any{"mountpoint": jsonText(f.Mountpoint), "user_id": f.UserID}
		if f.UserID < 0 {
			view["user_id"] = nil
		}
		views = append(views, view)
	}
	return views
}

// revoke detaches a view if it shows what was rolled back, and reports whether it
// was.
func (of rolledBack) revoke(ctx context.Context, view *fusemount.Other) (ended bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, revokePatience)
	defer cancel()
	concerned, err := of.concerns(ctx, view)
	switch {
	case errors.Is(err, fusemount.ErrNotMounted): // it has ended
		return false, nil
	case err != nil || !concerned:
		return false, err
	}
	err = view.Revoke(ctx)
	return err == nil, err
}

// maxShown bounds what is read of a view, in bytes. A view with more to say is one of
// about a thousand runs.
const maxShown = 64 << 10

// concerns asks a view what it shows, in one read. A view that shows more than fits, or
// that another mount hides, may show what was rolled back, and counts as if it did: no path
// leads to the hidden one, but those who opened it before read on.
func (of rolledBack) concerns(ctx context.Context, view *fusemount.Other) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	record, err := readShown(ctx, view)
	if errors.Is(err, fusemount.ErrTooLong) || errors.Is(err, fusemount.ErrHidden) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return record.RestoreRoot == jsonText(of.Root) || of.Path != "" && record.RestoreRoot == jsonText(of.Path) || slices.ContainsFunc(record.BundleRoots, func(root string) bool {
		return slices.Contains(of.BundleRoots, root)
	}), nil
}

// readShown reads and parses shown.json; ctx bounds both.
func readShown(ctx context.Context, view *fusemount.Other) (shownRecord, error) {
	type outcome struct {
		record shownRecord
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		raw, err := view.Read(ctx, shownFile, maxShown)
		if err == nil {
			err = json.Unmarshal(raw, &o.record)
		}
		if o.err = err; err != nil {
			o.record = shownRecord{}
		}
		done <- o
	}()
	select {
	case o := <-done:
		return o.record, o.err
	case <-ctx.Done():
		return shownRecord{}, fmt.Errorf("the view on %q does not answer: %w", view.Path(), ctx.Err())
	}
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
