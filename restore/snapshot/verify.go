package snapshot

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/internal/inorder"
	"github.com/spectrumfs/spectrum/pathsafe"
)

// Verify reads and hashes the manifest and every object that the snapshot needs,
// and returns what is damaged: the manifest first, then objects by their names.
// The error is that of something else.
func (s *Store) Verify(ctx context.Context, snap *Snapshot) ([]*DamageError, error) {
	found, err := s.verify(ctx, snap)
	if err != nil {
		return nil, fmt.Errorf("verifying snapshot %s: %w", snap.header.ID, err)
	}
	return found, nil
}

func (s *Store) verify(ctx context.Context, snap *Snapshot) ([]*DamageError, error) {
	lock, err := s.share(ctx)
	if err != nil {
		return nil, err
	}
	defer lock.close()
	damaged, err := asDamage(s.verifyManifest(snap))
	if err != nil {
		return nil, err
	}
	needed := neededBy(snap)
	s.seam.watch.begin("checking", slices.Values(needed))
	found := make([]*DamageError, len(needed))
	shelf := shelf{objects: s.objects}
	defer shelf.close()
	start := func() []byte { return make([]byte, chunk) }
	err = inorder.Each(ctx, 0, len(needed), start, func(buf []byte, i int) (err error) {
		found[i], err = asDamage(s.verifyObject(ctx, &shelf, snap, needed[i], buf))
		return err
	})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(append([]*DamageError{damaged}, found...), func(d *DamageError) bool { return d == nil }), nil
}

// asDamage sorts out what is the store's fault.
func asDamage(err error) (*DamageError, error) {
	var d *DamageError
	if errors.As(err, &d) {
		return d, nil
	}
	return nil, err
}

func (s *Store) verifyManifest(snap *Snapshot) error {
	p, ok, err := s.enter(keyOf(snap.header.Root))
	if err != nil {
		return err
	}
	if !ok {
		return &DamageError{rootsName, nil, errors.New("the root has no snapshot any more")}
	}
	defer p.close()
	_, err = p.load(snap.header.fileName())
	return err
}

// neededBy returns an entry of each object, by the objects' names.
func neededBy(snap *Snapshot) []*Entry {
	var all []*Entry
	for i := range snap.entries {
		if snap.entries[i].Type == File {
			all = append(all, &snap.entries[i])
		}
	}
	slices.SortStableFunc(all, func(a, b *Entry) int { return cmp.Compare(string(a.Digest[:]), string(b.Digest[:])) })
	return slices.CompactFunc(all, func(a, b *Entry) bool { return a.Digest == b.Digest })
}

func (s *Store) verifyObject(ctx context.Context, shelf *shelf, snap *Snapshot, e *Entry, buf []byte) error {
	f, err := shelf.object(e)
	if err == nil {
		defer f.Close()
		sum := sha256.New()
		for n := len(buf); n == len(buf) && err == nil; {
			if err := ctx.Err(); err != nil {
				return err
			}
			n, err = s.seam.read(f, buf)
			sum.Write(buf[:n])
		}
		if err == nil && Digest(sum.Sum(nil)) != e.Digest {
			err = errContent
		}
	}
	if err != nil {
		return damage(e.Digest.path(), needing(snap, e.Digest), err)
	}
	return nil
}

// Unchanged tells whether what stands at name in the directory in is still what
// Take saw at p, by the identities that the kernel gives: inode, size, times of
// modification and change. For the top itself the time of change does not count,
// nor for another name of what is a name of the scope, or a top-level name of a whole
// root: a rename changes it. The first difference is a [*ChangedError].
func (s *Store) Unchanged(ctx context.Context, snap *Snapshot, p pathsafe.Path, in *pathsafe.Dir, name string) error {
	return s.comparing(p, snap, s.unchanged(ctx, snap, p, dir{in, s.seam}, name, false))
}

// UnchangedAside is Unchanged for what was moved to another directory since. Of a top that
// is a directory the time of modification does not count then: XFS sets it when a rename
// moves a directory to another parent. What is in it is compared all the same.
func (s *Store) UnchangedAside(ctx context.Context, snap *Snapshot, p pathsafe.Path, in *pathsafe.Dir, name string) error {
	return s.comparing(p, snap, s.unchanged(ctx, snap, p, dir{in, s.seam}, name, true))
}

func (s *Store) comparing(p pathsafe.Path, snap *Snapshot, err error) error {
	if err != nil {
		return fmt.Errorf("comparing with %q of snapshot %s: %w", p, snap.header.ID, err)
	}
	return nil
}

func (s *Store) unchanged(ctx context.Context, snap *Snapshot, p pathsafe.Path, in dir, name string, moved bool) error {
	want, err := snap.tree(p)
	if err != nil {
		return err
	}
	mount, err := in.statSelf()
	if err != nil {
		return err
	}
	look := scanner{mount: mount.ID, own: func(pathsafe.ID) bool { return false }}
	var top Entry
	if err := look.look(in, name, want[0].Path, &top); err != nil {
		return err
	}
	got := []Entry{top}
	if top.Type == Dir {
		sub, err := in.open(name)
		if err != nil {
			return err
		}
		defer sub.close()
		if got, err = look.scan(ctx, sub, top); err != nil {
			return err
		}
	}
	if moved && top.Type == Dir && len(want) > 0 {
		got[0].ModTime = want[0].ModTime
	}
	return snap.compare(want, got)
}

// compare returns the first difference.
func (s *Snapshot) compare(want, got []Entry) error {
	for i := range max(len(want), len(got)) {
		switch {
		case i == len(got) || i < len(want) && comparePaths(want[i].Path, got[i].Path) < 0:
			return &ChangedError{want[i].Path, "it is gone"}
		case i == len(want) || comparePaths(want[i].Path, got[i].Path) > 0:
			return &ChangedError{got[i].Path, "it is new"}
		}
		if what := want[i].difference(&got[i], i > 0 && !s.moves(&want[i], &got[i])); what != "" {
			return &ChangedError{want[i].Path, what}
		}
	}
	return nil
}

// moves tells whether another name of what has changed is one that a restore moves
// by itself: then its time of change has changed too.
func (s *Snapshot) moves(e, now *Entry) bool {
	if e.Type == Dir || e.ChangeTime.Equal(now.ChangeTime) {
		return false
	}
	first := e.first()
	for i := range s.entries {
		other := &s.entries[i]
		top := other.Asked || s.header.Whole && other.Path != "" && !strings.Contains(other.Path, "/")
		if top && other.Path != e.Path && other.Type == e.Type && other.first() == first {
			return true
		}
	}
	return false
}

// first is the first name of an inode.
func (e *Entry) first() string {
	if e.Hard != "" {
		return e.Hard
	}
	return e.Path
}
