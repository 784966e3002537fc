package main

import (
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/snapshot"
)

// adopt returns a snapshot as this user can write it elsewhere: entries of other users become
// entries of this user. It returns their paths.
func adopt(found *snapshot.Snapshot) (*snapshot.Snapshot, []string) {
	return found.Adopted(func(e snapshot.Entry) bool { return action.NeedsRoot(e) != "" })
}

// tellAdopted names the entries that changed their owner.
func (a *app) tellAdopted(paths []string) {
	a.tellFew(each(paths, "%s belongs to this user now: only root can keep its owner, group and attributes"))
}
