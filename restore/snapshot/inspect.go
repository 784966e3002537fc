package snapshot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/spectrumfs/spectrum/internal/machine"
)

// Finding is damage in a store, and the newest snapshot that needs what is damaged.
type Finding struct {
	Header Header // the zero one where it is a manifest that cannot be read
	Damage *DamageError
}

// Budget is how many bytes [Store.Inspect] reads at most of manifests, and of the contents of
// objects.
type Budget struct{ Manifests, Contents int64 }

// An inspection is one call of Inspect.
type inspection struct {
	*Store
	left   Budget
	shards shardDirs
	seen   map[Digest]bool
	buf    []byte
	Inspected
}

// Inspected is what [Store.Inspect] has found.
type Inspected struct {
	Found  []Finding
	Unread int64    // bytes that it did not read
	Signed []Header // of the manifests that it has read and whose signatures fit, the newest first
}

// Inspect looks for damage in what is kept of a root, or of all roots when root is "": it
// reads manifests, looks at every object that one of them needs, and reads the contents of
// objects, the newest snapshots first and as far as the budget allows. Of every manifest it
// reads the header.
func (s *Store) Inspect(ctx context.Context, root string, budget Budget) (Inspected, error) {
	lock, err := s.share(ctx)
	if err != nil {
		return Inspected{}, err
	}
	defer lock.Close()
	all, damaged, err := s.Survey(root)
	if err != nil {
		return Inspected{}, err
	}
	in := &inspection{Store: s, left: budget, shards: shardDirs{objects: s.objects}, seen: map[Digest]bool{}, buf: make([]byte, chunk)}
	defer in.shards.close()
	for _, d := range damaged {
		in.Found = append(in.Found, Finding{Damage: d})
	}
	for _, h := range slices.Backward(all) {
		if err := in.snapshot(ctx, h); err != nil {
			return Inspected{}, err
		}
	}
	return in.Inspected, nil
}

// snapshot looks at one snapshot. One that was pruned meanwhile is passed over.
func (in *inspection) snapshot(ctx context.Context, h Header) error {
	p, ok, err := in.enter(keyOf(h.Root))
	if err != nil || !ok {
		return err
	}
	defer p.Close()
	st, err := p.Stat(h.fileName())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if st.Size > in.left.Manifests {
		in.Unread += st.Size
		return nil
	}
	in.left.Manifests -= st.Size
	m, err := p.manifest(h.fileName())
	var snap *Snapshot
	if err == nil {
		if size := m.bytes(); size > in.left.Manifests {
			in.Unread += size
			return nil
		}
		in.left.Manifests -= m.bytes()
		snap, err = p.complete(m)
	}
	d, err := asDamage(err)
	if err != nil {
		return err
	}
	if d != nil {
		in.Found = append(in.Found, Finding{h, d})
		return nil
	}
	in.Signed = append(in.Signed, snap.header)
	for _, e := range neededBy(snap.entries) {
		if err := in.object(ctx, snap, e); err != nil {
			return err
		}
	}
	return nil
}

// object inspects one object. An object that is missing for its entry is read in any case,
// which yields the reason.
func (in *inspection) object(ctx context.Context, snap *Snapshot, e *Entry) error {
	if in.seen[e.Digest] {
		return nil
	}
	in.seen[e.Digest] = true
	there, err := in.shards.has(e.Digest, e.Size)
	if err != nil && isMachine(err) != nil {
		return err
	}
	if there && e.Size > in.left.Contents {
		in.Unread += e.Size
		return nil
	}
	if there {
		in.left.Contents -= e.Size
	}
	d, err := asDamage(in.verifyObject(ctx, &in.shards, snap, e, in.buf))
	if err != nil {
		return err
	}
	if d != nil {
		in.Found = append(in.Found, Finding{snap.header, d})
	}
	return nil
}

// Changed returns the damage of those of the manifests whose bytes no longer have the SHA-256 that
// is their ID, or of which a part is damaged. It reads at most budget bytes of manifests and parts,
// the newest of which come last.
func (s *Store) Changed(ctx context.Context, all []Header, budget int64) (changed []*DamageError, err error) {
	c := comparison{left: budget, parts: map[Digest]error{}, reader: partReader{s: s.sysHook, shards: &shardDirs{objects: s.objects}}}
	defer c.reader.shards.close()
	for _, h := range slices.Backward(all) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p, ok, err := s.enter(keyOf(h.Root))
		if err != nil || !ok {
			return nil, err
		}
		err = c.compareID(p, &h)
		p.Close()
		d, err := asDamage(err)
		if err != nil {
			return nil, err
		}
		if d != nil {
			changed = append(changed, d)
		}
	}
	return changed, nil
}

// A comparison is one call of Changed.
type comparison struct {
	left   int64            // bytes that may still be read
	parts  map[Digest]error // those that were read
	reader partReader
}

// compareID compares the SHA-256 of a manifest with its ID, and those of its parts with theirs, if
// they are not too large. A manifest that was pruned meanwhile has not changed.
func (c *comparison) compareID(p chainDir, h *Header) error {
	f, st, err := p.OpenFile(h.fileName())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return damage(p.path(h.fileName()), nil, err)
	}
	defer f.Close()
	if st.Size > c.left {
		return nil
	}
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	c.left -= n
	if err == nil && hex.EncodeToString(sum.Sum(nil)) != h.ID {
		err = fmt.Errorf("its SHA-256 is %x", sum.Sum(nil))
	}
	switch {
	case machine.IsUnreadable(err): // a part of the disk, which the other manifests are not in
		return &DamageError{Path: p.path(h.fileName()), Err: err}
	case err != nil:
		return damage(p.path(h.fileName()), nil, err)
	case h.Version < withParts:
		return nil
	}
	return c.compareParts(p, h)
}

// compareParts compares the parts of a manifest that none of the others had.
func (c *comparison) compareParts(p chainDir, h *Header) error {
	m, err := p.manifest(h.fileName())
	if err != nil {
		return err
	}
	for _, part := range m.parts {
		bad, seen := c.parts[part.digest]
		if !seen && part.size > c.left {
			continue
		}
		if !seen {
			c.left -= part.size
			if _, err := c.reader.lines(part); err != nil {
				bad = &partError{part.digest.path(), err}
			}
			c.parts[part.digest] = bad
		}
		if bad != nil {
			return p.damagedPart(h, bad)
		}
	}
	return nil
}
