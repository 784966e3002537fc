package snapshot

import (
	"context"
	"fmt"
	"slices"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// A Chosen is a path of a snapshot, without links in its parents, and the name from which on
// it is requested: the path, or its first parent that does not exist any more.
type Chosen struct{ Path, From pathsafe.Path }

// Only returns a snapshot of only these paths, with everything in them, and their parent
// directories: it covers what the chosen paths are requested from. It has the ID of the
// original, and is in no store.
func (s *Snapshot) Only(chosen []Chosen) *Snapshot {
	h := s.Header()
	h.Whole, h.Names, h.Files, h.Bytes = false, 0, 0, 0
	only := &Snapshot{header: h}
	paths, ways, asked := map[string]bool{}, map[string]bool{"": true}, map[string]bool{}
	for _, c := range chosen {
		paths[c.Path.String()], asked[c.From.String()] = true, true
		for up, ok := c.Path.Parent(); ok; up, ok = up.Parent() {
			ways[up.String()] = true
		}
	}
	within := ""                 // the chosen path that the last entry is of
	first := map[string]string{} // of the names of one file
	for _, e := range s.entries {
		if paths[e.Path] && (within == "" || !beneath(e.Path, within)) {
			within = e.Path
		}
		isOf := within != "" && (e.Path == within || beneath(e.Path, within)) // they follow each other
		if !isOf && (e.Type != Dir || !ways[e.Path]) {
			continue
		}
		e.Asked = asked[e.Path]
		if of := e.First(); e.Type != Dir {
			if e.Hard = first[of]; e.Hard == "" {
				first[of] = e.Path
			}
		}
		only.entries = append(only.entries, e)
	}
	total(&only.header, only.entries)
	return only
}

// Known returns what the snapshot covers of a path without links in its parents: the path
// itself if everything in it is covered, otherwise the requested names in it.
func (s *Snapshot) Known(path string) []string {
	isCovered := func(e Entry) bool { return e.Asked && (e.Path == path || beneath(path, e.Path)) }
	if s.header.Whole || slices.ContainsFunc(s.entries, isCovered) {
		return []string{path}
	}
	var known []string
	for _, e := range s.entries {
		if e.Asked && beneath(e.Path, path) {
			known = append(known, e.Path)
		}
	}
	return known
}

// Without returns a snapshot in which files whose contents are damaged are [Lost]. It has the ID of
// the one that it is made of, and is in no store.
func (s *Snapshot) Without(damaged []*DamageError) *Snapshot {
	lost := map[string]bool{}
	for _, d := range damaged {
		for _, name := range d.Names {
			lost[name] = true
		}
	}
	without := &Snapshot{header: s.Header(), entries: slices.Clone(s.entries)}
	for i := range without.entries {
		if e := &without.entries[i]; lost[e.Path] {
			e.Type, e.Size = Lost, 0
		}
	}
	without.header.Names, without.header.Files, without.header.Bytes, without.header.Unread = 0, 0, 0, 0
	total(&without.header, without.entries)
	return without
}

// WriteHeld makes everything that the snapshot has as name in to, as Write does: of a
// snapshot of some names these, and the directories on the way to them.
func (s *Store) WriteHeld(ctx context.Context, snap *Snapshot, to *pathsafe.Dir, name string) error {
	var entries []Entry
	for _, e := range snap.entries {
		if !e.Type.Kept() || e.Type == Absent {
			continue
		}
		if e.Path = join(name, e.Path); e.Hard != "" {
			e.Hard = join(name, e.Hard)
		}
		entries = append(entries, e)
	}
	if err := s.writeEntries(ctx, snap, entries, on(to, s.sysHook)); err != nil {
		return fmt.Errorf("writing snapshot %s: %w", snap.header.ID, err)
	}
	return nil
}
