package snapshot

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/spectrumfs/spectrum/internal/inorder"
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
	defer lock.Close()
	return s.damages(ctx, snap)
}

// damages is Verify for a caller that holds the lock.
func (s *Store) damages(ctx context.Context, snap *Snapshot) ([]*DamageError, error) {
	damaged, err := asDamage(s.verifyManifest(snap))
	if err != nil {
		return nil, err
	}
	found, err := s.damagedOf(ctx, snap, neededBy(snap.entries))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(append([]*DamageError{damaged}, found...), func(d *DamageError) bool { return d == nil }), nil
}

// damagedOf reads and hashes the objects of entries, and returns the damage of each; nil for none.
func (s *Store) damagedOf(ctx context.Context, snap *Snapshot, needed []*Entry) ([]*DamageError, error) {
	s.sysHook.watch.begin("checking", slices.Values(needed))
	found := make([]*DamageError, len(needed))
	shards := shardDirs{objects: s.objects}
	defer shards.close()
	start := func() []byte { return make([]byte, chunk) }
	err := inorder.Each(ctx, 0, len(needed), start, func(buf []byte, i int) (err error) {
		found[i], err = asDamage(s.verifyObject(ctx, &shards, snap, needed[i], buf))
		return err
	})
	return found, err
}

// CheckParts reads and hashes every object that WriteParts of the same parts needs, and writes
// nothing. The error is a [*DamageError] where one is damaged.
func (s *Store) CheckParts(ctx context.Context, snap *Snapshot, parts []Part) error {
	entries, err := snap.moved(parts)
	if err == nil {
		var lock dir
		if lock, err = s.share(ctx); err == nil {
			defer lock.Close()
			var found []*DamageError
			found, err = s.damagedOf(ctx, snap, neededBy(entries))
			if i := slices.IndexFunc(found, func(d *DamageError) bool { return d != nil }); err == nil && i >= 0 {
				err = found[i]
			}
		}
	}
	if err != nil {
		return fmt.Errorf("reading snapshot %s: %w", snap.header.ID, err)
	}
	return nil
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
		return &DamageError{Path: rootsName, Err: errors.New("the root has no snapshots left")}
	}
	defer p.Close()
	_, err = p.load(snap.header.fileName())
	return err
}

// neededBy returns an entry of each object, by the objects' names.
func neededBy(entries []Entry) []*Entry {
	var all []*Entry
	for i := range entries {
		if entries[i].Type == File {
			all = append(all, &entries[i])
		}
	}
	slices.SortStableFunc(all, func(a, b *Entry) int { return cmp.Compare(string(a.Digest[:]), string(b.Digest[:])) })
	return slices.CompactFunc(all, func(a, b *Entry) bool { return a.Digest == b.Digest })
}

func (s *Store) verifyObject(ctx context.Context, shards *shardDirs, snap *Snapshot, e *Entry, buf []byte) error {
	f, err := shards.object(e)
	if err == nil {
		defer f.Close()
		sum := sha256.New()
		for n := len(buf); n == len(buf) && err == nil; {
			if err := ctx.Err(); err != nil {
				return err
			}
			n, err = s.sysHook.read(f, buf)
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
