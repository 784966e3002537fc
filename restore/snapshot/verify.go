package snapshot

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"

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
	return s.damages(ctx, snap)
}

// damages is Verify for a caller that holds the lock.
func (s *Store) damages(ctx context.Context, snap *Snapshot) ([]*DamageError, error) {
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

// Unchanged tells whether what was moved to the directory in, from each of these paths
// under the name strconv.Itoa(i), is still what Take saw there, by the identities that
// the kernel gives: inode, size, times of modification and change. A rename changes the
// time of change of what is moved, so that does not count, for other names of it
// neither; nor does the time of modification of a directory that was moved: XFS sets it.
// What was not there and what was not moved is passed over. The first difference is a
// [*ChangedError].
func (s *Store) Unchanged(ctx context.Context, snap *Snapshot, paths []pathsafe.Path, in *pathsafe.Dir) error {
	c := comparison{store: s, in: dir{in, s.seam}, moved: map[string]bool{}}
	st, err := c.in.statSelf()
	if err != nil {
		return err
	}
	c.mount = st.ID
	trees := make([][]Entry, len(paths))
	for i, p := range paths {
		e, err := snap.At(p)
		if err == nil && e.Type != Absent {
			trees[i], err = snap.tree(p)
			c.moved[e.First()] = e.Type != Dir
		}
		if err != nil {
			return err
		}
	}
	for i, want := range trees {
		if len(want) == 0 {
			continue
		}
		if err := c.tree(ctx, want, strconv.Itoa(i)); err != nil {
			return fmt.Errorf("comparing with %q of snapshot %s: %w", paths[i], snap.header.ID, err)
		}
	}
	return nil
}

// A comparison is one call of Unchanged.
type comparison struct {
	store *Store
	in    dir
	mount pathsafe.ID
	moved map[string]bool // the first names of files of which a name was moved by itself
}

func (c *comparison) tree(ctx context.Context, want []Entry, name string) error {
	look := scanner{mount: c.mount, all: true, own: func(pathsafe.ID) bool { return false }}
	var top Entry
	err := look.look(c.in, name, want[0].Path, &top)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	got := []Entry{top}
	if top.Type == Dir {
		sub, err := c.in.open(name)
		if err != nil {
			return err
		}
		defer sub.close()
		if got, err = look.scan(ctx, sub, top); err != nil {
			return err
		}
		got[0].ModTime = want[0].ModTime
	}
	return c.compare(want, got)
}

// compare returns the first difference.
func (c *comparison) compare(want, got []Entry) error {
	for i := range max(len(want), len(got)) {
		switch {
		case i == len(got) || i < len(want) && comparePaths(want[i].Path, got[i].Path) < 0:
			return &ChangedError{want[i].Path, "it is gone"}
		case i == len(want) || comparePaths(want[i].Path, got[i].Path) > 0:
			return &ChangedError{got[i].Path, "it is new"}
		}
		if what := want[i].difference(&got[i], i > 0 && !c.moved[want[i].First()]); what != "" {
			return &ChangedError{want[i].Path, what}
		}
	}
	return nil
}
