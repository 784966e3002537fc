package snapshot

import (
	"context"
	"fmt"
	"path/filepath"
)

// Look returns the snapshot that [Store.Take] would take, and keeps nothing: contents are
// read and hashed only, and neither the root nor the store is written to. It has no ID. A
// write through a memory mapping that goes on meanwhile may be missed.
//
// Where the kind is one that a person or a timer takes, what a transaction has left in the
// root is left out; before an action it is an error, as it is for Take.
func (s *Store) Look(ctx context.Context, req Request) (*Snapshot, error) {
	req.Root = filepath.Clean(req.Root)
	snap, err := s.look(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("looking at %q: %w", req.Root, err)
	}
	return snap, nil
}

func (s *Store) look(ctx context.Context, req Request) (*Snapshot, error) {
	h, err := req.header()
	if err != nil {
		return nil, err
	}
	t := &take{Store: s, req: req, root: on(req.Dir, s.sysHook), looks: true}
	defer t.loading.Wait()
	if err := t.compareWith(); err != nil {
		return nil, err
	}
	entries, err := t.settled(ctx)
	if err != nil {
		return nil, err
	}
	link(entries)
	total(&h, entries)
	return t.snapshot(h, entries), nil
}

// Lacks returns a file of each content of a snapshot that the store does not have, in the
// order of their paths. An object is believed by its name and its size, or by its name alone where
// there are many.
func (s *Store) Lacks(snap *Snapshot) ([]Entry, error) {
	known := newObjects(s, dir{})
	defer known.close()
	var all []*Entry
	seen := map[Digest]bool{}
	for i := range snap.entries {
		if e := &snap.entries[i]; e.Type == File && !seen[e.Digest] {
			seen[e.Digest] = true
			all = append(all, e)
		}
	}
	there, err := known.among(len(all))
	if err != nil {
		return nil, err
	}
	var lacks []Entry
	for _, e := range all {
		is, err := there(e)
		if err != nil {
			return nil, err
		}
		if !is {
			lacks = append(lacks, *e)
		}
	}
	return lacks, nil
}
