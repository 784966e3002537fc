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
	left  Budget
	shelf shelf
	seen  map[Digest]bool
	buf   []byte
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
	defer lock.close()
	all, damaged, err := s.Survey(root)
	if err != nil {
		return Inspected{}, err
	}
	in := &inspection{Store: s, left: budget, shelf: shelf{objects: s.objects}, seen: map[Digest]bool{}, buf: make([]byte, chunk)}
	defer in.shelf.close()
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
	defer p.close()
	st, err := p.stat(h.fileName())
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
	snap, err := p.load(h.fileName())
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
	there, err := in.shelf.has(e.Digest, e.Size)
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
	d, err := asDamage(in.verifyObject(ctx, &in.shelf, snap, e, in.buf))
	if err != nil {
		return err
	}
	if d != nil {
		in.Found = append(in.Found, Finding{snap.header, d})
	}
	return nil
}

// Changed returns the damage of those of the manifests whose bytes no longer have the SHA-256 that
// is their ID. It reads at most budget bytes of manifests, the newest of which come last.
func (s *Store) Changed(ctx context.Context, all []Header, budget int64) (changed []*DamageError, err error) {
	for _, h := range slices.Backward(all) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p, ok, err := s.enter(keyOf(h.Root))
		if err != nil || !ok {
			return nil, err
		}
		n, err := p.compareID(h, budget)
		p.close()
		d, err := asDamage(err)
		if err != nil {
			return nil, err
		}
		if d != nil {
			changed = append(changed, d)
		}
		budget -= n
	}
	return changed, nil
}

// compareID compares the SHA-256 of a manifest of at most this many bytes with its ID, and returns
// how many bytes it has read. A manifest that was pruned meanwhile has not changed.
func (p place) compareID(h Header, most int64) (int64, error) {
	f, st, err := p.openFile(h.fileName())
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, damage(p.path(h.fileName()), nil, err)
	}
	defer f.Close()
	if st.Size > most {
		return 0, nil
	}
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	if err == nil && hex.EncodeToString(sum.Sum(nil)) != h.ID {
		err = fmt.Errorf("its SHA-256 is %x", sum.Sum(nil))
	}
	switch {
	case machine.IsUnreadable(err): // a part of the disk, which the other manifests are not in
		return n, &DamageError{p.path(h.fileName()), nil, err}
	case err != nil:
		return n, damage(p.path(h.fileName()), nil, err)
	}
	return n, nil
}
