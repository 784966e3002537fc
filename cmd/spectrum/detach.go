package main

import (
	"errors"
	"path/filepath"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/view"
	"github.com/spectrumfs/spectrum/fusefs/fusemount"
	"github.com/spectrumfs/spectrum/internal/machine"
)

// errRevoked ends the process of a revoked view. The process does not know the reason.
var errRevoked = errors.New("the view was revoked: what it shows was rolled back")

// rollbackMarks returns the directory of the marks for a view with a restore root, or "".
func (a *app) rollbackMarks(restoreRoot string) (m view.Marks, err error) {
	if m.State, err = a.statePath(); err != nil {
		return view.Marks{}, err
	}
	if m.State, err = filepath.Abs(m.State); err != nil { // the background is elsewhere
		return view.Marks{}, err
	}
	if restoreRoot != "" {
		m.Root, err = realPath(restoreRoot)
	}
	if err != nil {
		return view.Marks{}, err
	}
	return m, nil
}

// maxListed is how many views of other users are named in words. The result as JSON has
// all of them.
const maxListed = 20

// tellRevoked prints which views were detached, and what to do about the others.
func (a *app) tellRevoked(r *view.Revocation) {
	for _, path := range r.Detached {
		a.say("detached the view on %q", path)
	}
	for _, left := range r.Left {
		a.tell("spectrum: the view on %q may show what was rolled back, and was not detached: %s", left.Mountpoint, oneLine(left.Err.Error()))
	}
	if len(r.Left) > 0 {
		a.tell("hint: \"spectrum umount MOUNTPOINT\" unmounts a view when no process uses it, or when its server has died")
	}
	for _, f := range r.Foreign[:min(len(r.Foreign), maxListed)] {
		a.tell("spectrum: the view on %q belongs to %s: it may show what was rolled back, and only that user can detach it", f.Mountpoint, machine.UserText(f.UserID))
	}
	if more := len(r.Foreign) - maxListed; more > 0 {
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
