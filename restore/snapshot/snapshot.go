package snapshot

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// Kind is the reason for a snapshot (rollback and snapshot contract, section 4).
type Kind string

// The kinds of snapshots.
const (
	Manual    Kind = "manual"
	Scheduled Kind = "scheduled"  // section 4.1
	PreAction Kind = "pre_action" // section 4.2
	Emergency Kind = "emergency"  // section 4.3
)

var kinds = []Kind{Manual, Scheduled, PreAction, Emergency}

// Header is the header of a snapshot.
type Header struct {
	ID     string // SHA-256 of the manifest, 64 hex digits
	Root   string // absolute path that the root is known by
	Kind   Kind
	Action string // id of the action that it came before; "" for none
	Reason string
	Texts  map[string]string // texts of the caller
	Time   time.Time         // when taking it began, UTC
	// Sequence is its place among the snapshots of its root, 1 for the first. It decides which
	// one is newer: a clock can go back.
	Sequence int64
	Previous string // ID of the one before it, also of one that was pruned since; "" for the first
	Log      string // where the audit log stood, in the words of the caller; "" where it did not say
	// Signer is the validator that signed it; "" where only the header was read.
	Signer string
	Whole  bool  // the whole root, not only some names
	Names  int   // number of requested names; 0 when Whole
	Files  int64 // regular files, names of hard links each
	Bytes  int64 // their content, hard links once
	Unread int   // how many names could not be read: see [Unread]
	// Synced is when a sync of the root's file system began that ended before content
	// was read; zero where the file system gives no such guarantee.
	Synced  time.Time
	Version int // of the form of its manifest
}

// ForEmergency reports whether an emergency rollback may go back to the snapshot: it is of
// the whole root, all of which could be read, and was taken by a person or a timer. What is
// kept before an action is a state that an operator wanted to leave.
func (h *Header) ForEmergency() bool { return h.IsComplete() && h.Kind != PreAction }

// IsPartial reports whether an emergency rollback skips the snapshot only because some of the root
// could not be read.
func (h *Header) IsPartial() bool { return h.Whole && !h.IsComplete() && h.Kind != PreAction }

// IsComplete reports whether the snapshot is of the whole root, all of which could be read.
func (h *Header) IsComplete() bool { return h.Whole && h.Unread == 0 }

// IsBefore reports whether the snapshot was taken before an action.
func (h *Header) IsBefore(action string) bool { return h.Kind == PreAction && h.Action == action }

// NewestForEmergency returns the newest of the snapshots of a root, the oldest first, that an emergency
// rollback may go back to; nil for none. It verifies none, see [Store.Target].
func NewestForEmergency(all []Header) *Header {
	for _, h := range slices.Backward(all) {
		if h.ForEmergency() {
			return &h
		}
	}
	return nil
}

// Snapshot is one that was read from a store, and hashes to its ID; or one that was just
// taken.
type Snapshot struct {
	header  Header
	entries []Entry
	parts   []part // that its manifest in the store has

	restless, leftOut []string
}

// Restless returns the paths of files that were written to whenever they were read, as a
// take has found: what is kept of such a file may never have been its content at one
// time. A snapshot that is read from a store does not know them.
func (s *Snapshot) Restless() []string { return slices.Clone(s.restless) }

// LeftOut returns the paths of what went away while the snapshot was taken, or became another
// thing whenever it was looked at, as [Snapshot.Restless] does.
func (s *Snapshot) LeftOut() []string { return slices.Clone(s.leftOut) }

// Header returns the header of the snapshot.
func (s *Snapshot) Header() Header {
	h := s.header
	h.Texts = maps.Clone(h.Texts)
	return h
}

// ID is SHA-256 of the manifest, 64 hex digits.
func (s *Snapshot) ID() string { return s.header.ID }

// Scope returns the requested names, sorted; nil for a snapshot of the whole root.
func (s *Snapshot) Scope() []pathsafe.Path {
	var all []pathsafe.Path
	for i := range s.entries {
		if !s.entries[i].Asked {
			continue
		}
		if p, err := pathsafe.Found(s.entries[i].Path); err == nil {
			all = append(all, p)
		}
	}
	return all
}

// Entries returns everything in the snapshot: the root first, a directory
// before what is in it, names in byte order.
func (s *Snapshot) Entries() iter.Seq[Entry] { return slices.Values(s.entries) }

// ErrNotCovered reports a path that a snapshot does not cover, since it is of some names only.
var ErrNotCovered = errors.New("outside the snapshot")

// At returns what stood at p, the root for the zero path: an entry of type
// Absent when nothing did. Links on the way are followed as they were then. The
// error is ErrNotCovered for a path that was not looked at.
func (s *Snapshot) At(p pathsafe.Path) (Entry, error) {
	e, _, err := s.at(p)
	return e, err
}

// at returns the entry of a path, and whether everything below is in the snapshot.
func (s *Snapshot) at(p pathsafe.Path) (e Entry, covered bool, err error) {
	if e, found := s.find(p.String()); found && e.Asked && e.Type == Absent { // also where a link on the way left the root
		return e, true, nil
	}
	w := way{todo: p.Components()}
	covered = s.header.Whole
	for {
		name, ok, err := w.next()
		if err != nil {
			return Entry{}, false, fmt.Errorf("path %q in snapshot %s: %w", p, s.header.ID, err)
		}
		if !ok {
			break
		}
		e, found := s.find(join(w.path(), name))
		covered = covered || s.asked(w.path(), name)
		last := len(w.todo) == 0
		switch {
		case found && e.Type == Mount && !last:
			return Entry{}, false, fmt.Errorf("path %q in snapshot %s: %w", p, s.header.ID, ErrNotCovered)
		case !found && covered, found && e.Type == Absent, found && e.Type != Dir && e.Type != Link && !last:
			return Entry{Path: join(join(w.path(), name), strings.Join(w.todo, "/")), Type: Absent}, covered, nil
		case !found:
			return Entry{}, false, fmt.Errorf("path %q in snapshot %s: %w", p, s.header.ID, ErrNotCovered)
		case e.Type == Link && !last:
			err = w.follow(e.Target)
			covered = s.header.Whole
		default:
			w.enter(name)
		}
		if err != nil {
			return Entry{}, false, fmt.Errorf("path %q in snapshot %s: %w", p, s.header.ID, err)
		}
	}
	e, found := s.find(w.path())
	if !found {
		return Entry{}, false, fmt.Errorf("path %q in snapshot %s: %w", p, s.header.ID, ErrNotCovered)
	}
	return e, covered, nil
}

func (s *Snapshot) asked(dir, name string) bool {
	e, found := s.find(join(dir, name))
	return found && e.Asked
}

// find finds an entry by its very path.
func (s *Snapshot) find(path string) (Entry, bool) {
	i, found := s.index(path)
	if !found {
		return Entry{}, false
	}
	return s.entries[i], true
}

func (s *Snapshot) index(path string) (int, bool) {
	return sort.Find(len(s.entries), func(i int) int { return comparePaths(path, s.entries[i].Path) })
}

// Tree returns what stood at a path, and everything in it; no link on the way is
// followed. It is empty where nothing stood there.
func (s *Snapshot) Tree(path string) []Entry {
	start, found := s.index(path)
	if !found || s.entries[start].Type == Absent {
		return nil
	}
	below := s.entries[start+1:]
	n := sort.Search(len(below), func(i int) bool { return !beneath(below[i].Path, path) })
	return slices.Clip(s.entries[start : start+1+n])
}

// tree returns what stood at p, which must all be there.
func (s *Snapshot) tree(p pathsafe.Path) ([]Entry, error) {
	e, covered, err := s.at(p)
	switch {
	case err != nil:
		return nil, err
	case e.Type == Absent:
		return nil, fmt.Errorf("path %q in snapshot %s: %w", p, s.header.ID, fs.ErrNotExist)
	case !covered:
		return nil, fmt.Errorf("path %q in snapshot %s: %w", p, s.header.ID, ErrNotCovered)
	}
	return s.Tree(e.Path), nil
}
