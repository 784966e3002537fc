package snapshot

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify"
)

// Repair brings the objects again that a snapshot needs and that are missing or damaged, from
// what stands in a root: at the names that the snapshot has for them, or else anywhere in the
// root. Nothing is believed but what hashes to the name of the object; it is durable before
// it takes the place of the damaged one, in one step. Repair returns what was damaged and is
// not any more, and what still is; of that the root has the content no more, or it is the
// manifest.
func (s *Store) Repair(ctx context.Context, snap *Snapshot, root *pathsafe.Dir) (repaired, left []*DamageError, err error) {
	repaired, left, err = s.repair(ctx, snap, root)
	if err != nil {
		return nil, nil, fmt.Errorf("repairing snapshot %s: %w", snap.header.ID, err)
	}
	return repaired, left, nil
}

func (s *Store) repair(ctx context.Context, snap *Snapshot, root *pathsafe.Dir) (repaired, left []*DamageError, err error) {
	lock, err := s.enterTake(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer lock.close()
	damaged, err := s.damages(ctx, snap)
	if err != nil || len(damaged) == 0 {
		return nil, damaged, err
	}
	if err := s.bringAgain(ctx, snap, root, damaged); err != nil {
		return nil, nil, err
	}
	if left, err = s.damages(ctx, snap); err != nil {
		return nil, nil, err
	}
	for _, d := range damaged {
		if !slices.ContainsFunc(left, func(l *DamageError) bool { return l.Path == d.Path }) {
			repaired = append(repaired, d)
		}
	}
	return repaired, left, nil
}

// bringAgain brings the objects that are found in the root.
func (s *Store) bringAgain(ctx context.Context, snap *Snapshot, root *pathsafe.Dir, damaged []*DamageError) (err error) {
	t := &take{Store: s, root: dir{root, s.seam}, req: Request{Root: snap.header.Root, Dir: root, Scope: []pathsafe.Path{}}}
	defer func() { err = errors.Join(err, t.close()) }()
	if err := t.begin(); err != nil {
		return err
	}
	lost := map[Digest]bool{}
	for _, d := range damaged {
		if digest, err := hexDigest(filepath.Base(d.Path)); err == nil {
			lost[digest] = true
		}
	}
	var wanted []*Entry
	for _, e := range neededBy(snap) {
		if lost[e.Digest] {
			wanted = append(wanted, e)
		}
	}
	r := &reader{take: t, at: descent{base: t.root}, name: "0", buf: make([]byte, chunk)}
	defer r.close()
	if err := r.enterOwn(); err != nil {
		return err
	}
	for i := range snap.entries {
		if e := &snap.entries[i]; e.Type == File && lost[e.Digest] {
			found, err := r.mend(ctx, e.Path, e)
			if err != nil {
				return err
			}
			lost[e.Digest] = !found
		}
	}
	if wanted = slices.DeleteFunc(wanted, func(e *Entry) bool { return !lost[e.Digest] }); len(wanted) > 0 {
		if err := r.search(ctx, wanted); err != nil {
			return err
		}
	}
	return t.objects.persist()
}

// search looks for contents anywhere in the root, by their sizes.
func (r *reader) search(ctx context.Context, wanted []*Entry) error {
	st, err := r.root.statSelf()
	if err != nil {
		return err
	}
	look := scanner{mount: r.mount, all: true, own: r.isOwn, gone: func(string) {}}
	all, err := look.scan(ctx, r.root, makeEntry("", st))
	if err != nil {
		return err
	}
	for i := range all {
		for j, want := range wanted {
			if want == nil || all[i].Type != File || all[i].Size != want.Size {
				continue
			}
			found, err := r.mend(ctx, all[i].Path, want)
			if err != nil {
				return err
			}
			if found {
				wanted[j] = nil
			}
		}
	}
	return nil
}

// mend copies the file at a path of the root into the reader's own directory, as the object
// of want, and reports whether it is that. What cannot be read there is not.
func (r *reader) mend(ctx context.Context, path string, want *Entry) (bool, error) {
	in, name := split(path)
	d, err := r.at.open(in)
	if err != nil {
		return false, isMachine(err)
	}
	f, st, err := d.openFile(name)
	if err != nil {
		return false, isMachine(err)
	}
	defer f.Close()
	if st.Size != want.Size || !st.IsOn(r.mount) {
		return false, nil
	}
	const temp = "large"
	dst, err := r.own.create(temp, objectPerm)
	if err != nil {
		return false, err
	}
	e := Entry{Path: path, Size: want.Size, Sparse: want.Sparse}
	err = r.copy(ctx, dst, f, &e)
	if err := errors.Join(err, r.seam.closeFile(dst)); err != nil && !errors.Is(err, errUnsettled) {
		return false, errors.Join(err, r.own.unlink(temp))
	}
	if err != nil || e.Digest != want.Digest || !r.objects.claim(want.Digest, want.Size, r.own) {
		return false, r.own.unlink(temp)
	}
	return true, r.own.rename(temp, r.own, want.Digest.name())
}

// isMachine is the error if it is a fault of the machine, and not of what was to be read.
func isMachine(err error) error {
	if verify.IsMachineFault(err) {
		return err
	}
	return nil
}
