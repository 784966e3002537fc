package action

import (
	"errors"

	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/restore/snapshot"
)

// A Space is a file system that is written to: how much is needed there, at least, and how
// much is free, at most.
type Space struct {
	Root, State bool // what of both is in it
	Need, Free  Need
}

// Need is an amount of bytes, and of files where the file system has a fixed number of
// them.
type Need = machine.Need

// roomFor requires that there is room for what changes make in the root, and for what the
// snapshot before them would add to the store.
func roomFor(in *Root, before *snapshot.Snapshot, target comes, changes []Change) ([]Space, error) {
	at, err := machine.RoomOf(in.Dir())
	if err != nil {
		return nil, err
	}
	state := in.State()
	if state == nil {
		return nil, at.Check(rootNeed(at, true, target, changes))
	}
	kept, err := machine.RoomOf(state)
	if err != nil {
		return nil, err
	}
	kind, err := state.FileSystem()
	if err != nil {
		return nil, err
	}
	need := rootNeed(at, at.MayShare(kind), target, changes)
	added, err := stateNeed(in, kept, before)
	if err != nil {
		return nil, err
	}
	return spacesOf(at, need, kept, added)
}

// spacesOf requires room for what is written to two file systems, which may be one: that of
// the root, and that of the state directory.
func spacesOf(at *machine.Room, need Need, kept *machine.Room, added Need) ([]Space, error) {
	same, err := at.SameAs(kept)
	if err != nil {
		return nil, err
	}
	if same {
		s, err := spaceOf(at, Space{Root: true, State: true, Need: need.Plus(added)})
		return []Space{s}, err
	}
	root, rootErr := spaceOf(at, Space{Root: true, Need: need})
	store, storeErr := spaceOf(kept, Space{State: true, Need: added})
	return []Space{root, store}, errors.Join(rootErr, storeErr)
}

func spaceOf(at *machine.Room, s Space) (Space, error) {
	if err := at.Check(s.Need); err != nil {
		return Space{}, err
	}
	var err error
	s.Free, err = at.Free()
	return s, err
}

// rootNeed returns the room that the restored entries need in the root, as far as it is known.
// Shared is set if a file may share the blocks of its object.
func rootNeed(at *machine.Room, shared bool, target comes, changes []Change) (need Need) {
	for _, c := range changes {
		if c.Kind != Created && c.Kind != Replaced {
			continue
		}
		for _, e := range target(c.Path) {
			if e.Type.Kept() && e.Hard == "" && NeedsRoot(e) == "" { // else it is not made
				need = need.Plus(snapshot.Takes(at, shared, &e))
			}
		}
	}
	return need
}

// mayNotFit reports whether there is less room than needed if all of the target had to be
// restored, and everything in the file system of the root had to be kept first. Nothing is
// restored if the target is nil.
func mayNotFit(in *Root, target *snapshot.Snapshot) (bool, error) {
	at, err := machine.RoomOf(in.Dir())
	if err != nil {
		return false, err
	}
	v, err := machine.Describe(in.Dir())
	if err != nil {
		return false, err
	}
	comes, kept := Need{}, Need{Bytes: v.Bytes.Total - v.Bytes.Free}
	if target != nil {
		for e := range target.Entries() {
			comes = comes.Plus(at.File(e.Size))
		}
	}
	state := in.State()
	if state == nil {
		return at.MayLack(comes)
	}
	store, err := machine.RoomOf(state)
	if err != nil {
		return false, err
	}
	same, err := at.SameAs(store)
	if err != nil {
		return false, err
	}
	if same {
		return at.MayLack(comes.Plus(kept))
	}
	less, err := at.MayLack(comes)
	if err != nil || less {
		return less, err
	}
	return store.MayLack(kept)
}

// stateNeed is what the snapshot before an action adds to the store: nothing once it was
// taken.
func stateNeed(in *Root, kept *machine.Room, before *snapshot.Snapshot) (Need, error) {
	if before.ID() != "" {
		return Need{}, nil
	}
	kind, err := in.Dir().FileSystem()
	if err != nil {
		return Need{}, err
	}
	return in.Snapshots().Adds(kept, kept.MayShare(kind), before)
}
