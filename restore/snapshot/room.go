package snapshot

import (
	"context"

	"github.com/spectrumfs/spectrum/internal/machine"
)

// Takes is what a file of a snapshot, or another name of it, takes where it is written: at
// least that much. Shared: a copy may share the blocks of what it is copied from.
func Takes(at *machine.Room, shared bool, e *Entry) machine.Need {
	if e.Type == File && !e.Sparse && !(shared && e.Size >= cloneMin) {
		return at.File(e.Size)
	}
	return at.Entry()
}

// Adds is what a take of what [Store.Look] has seen would add to the store, at least: the
// contents that it lacks, and the manifest. Shared is as of [Takes].
func (s *Store) Adds(at *machine.Room, shared bool, seen *Snapshot) (machine.Need, error) {
	lacks, err := s.Lacks(seen)
	if err != nil {
		return machine.Need{}, err
	}
	need := at.File(leastOf(seen.entries))
	if s.division.isDivided(&seen.header, seen.entries) {
		parts, all, err := s.lackedParts(seen.entries[1:])
		if err != nil {
			return machine.Need{}, err
		}
		need = at.File(int64(all * len(partLine)))
		for _, p := range parts {
			need = need.Plus(at.File(p.size))
		}
	}
	for i := range lacks {
		need = need.Plus(Takes(at, shared, &lacks[i]))
	}
	return need, nil
}

// leastOf is what a manifest has at least: the paths, and the digests in hexadecimal digits.
func leastOf(entries []Entry) (bytes int64) {
	for i := range entries {
		bytes += int64(len(entries[i].Path))
		if entries[i].Type == File {
			bytes += 2 * int64(len(Digest{}))
		}
	}
	return bytes
}

// room requires that the store has room for what has to be read, before any of it is. Where
// there is less than if all of it were new, it is read without keeping anything first, to
// know what is new.
func (t *take) room(ctx context.Context, entries []Entry) error {
	if t.looks {
		return nil
	}
	at, err := machine.RoomOf(t.Store.base.H)
	if err != nil {
		return err
	}
	most := machine.Need{Bytes: uint64(leastOf(entries))}
	for e := range only(entries, func(e *Entry) bool { return e.unread }) {
		most = most.Plus(at.File(e.Size))
	}
	if lacks, err := at.MayLack(most); err != nil || !lacks {
		return err
	}
	t.tight = true
	seen, err := t.Store.look(ctx, t.req)
	if err != nil {
		return err
	}
	kind, err := t.root.H.FileSystem()
	if err != nil {
		return err
	}
	need, err := t.Adds(at, at.MayShare(kind), seen)
	if err != nil {
		return err
	}
	return at.Check(need)
}
