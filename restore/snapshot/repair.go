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
// the entries of a root: at the names that the snapshot has for them, or else anywhere in the
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
	defer lock.Close()
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

// Repairable returns what of the damage of a snapshot [Store.Repair] would bring again from a root
// as it is now. It writes nothing.
func (s *Store) Repairable(ctx context.Context, snap *Snapshot, root *pathsafe.Dir, damaged []*DamageError) ([]*DamageError, error) {
	t := &take{Store: s, root: on(root, s.sysHook), req: Request{Root: snap.header.Root, Dir: root, Scope: []pathsafe.Path{}}, looks: true}
	defer t.loading.Wait()
	err := t.compareWith()
	lost := map[Digest]bool{}
	if err == nil {
		lost, err = t.findAgain(ctx, snap, damaged)
	}
	if err != nil {
		return nil, fmt.Errorf("looking in %q for the contents of snapshot %s: %w", root.Name(), snap.header.ID, err)
	}
	return slices.DeleteFunc(slices.Clone(damaged), func(d *DamageError) bool {
		digest, err := hexDigest(filepath.Base(d.Path))
		return err != nil || lost[digest]
	}), nil
}

// bringAgain brings the objects that are found in the root.
func (s *Store) bringAgain(ctx context.Context, snap *Snapshot, root *pathsafe.Dir, damaged []*DamageError) (err error) {
	t := &take{Store: s, root: on(root, s.sysHook), req: Request{Root: snap.header.Root, Dir: root, Scope: []pathsafe.Path{}}}
	defer func() { err = errors.Join(err, t.close()) }()
	if err := t.begin(); err != nil {
		return err
	}
	if _, err := t.findAgain(ctx, snap, damaged); err != nil {
		return err
	}
	return t.objects.persist()
}

// findAgain looks for damaged contents in the root, and unless it only looks makes objects of
// them. It returns those that are still lost.
func (t *take) findAgain(ctx context.Context, snap *Snapshot, damaged []*DamageError) (lost map[Digest]bool, err error) {
	lost = map[Digest]bool{}
	for _, d := range damaged {
		if digest, err := hexDigest(filepath.Base(d.Path)); err == nil {
			lost[digest] = true
		}
	}
	var wanted []*Entry
	for _, e := range neededBy(snap.entries) {
		if lost[e.Digest] {
			wanted = append(wanted, e)
		}
	}
	r := &reader{take: t, at: descent{base: t.root}, name: "0", buf: make([]byte, chunk)}
	defer r.close()
	if !t.looks {
		if err := r.enterOwn(); err != nil {
			return nil, err
		}
	}
	for i := range snap.entries {
		if e := &snap.entries[i]; e.Type == File && lost[e.Digest] {
			found, err := r.mend(ctx, e.Path, e)
			if err != nil {
				return nil, err
			}
			lost[e.Digest] = !found
		}
	}
	wanted = slices.DeleteFunc(wanted, func(e *Entry) bool { return !lost[e.Digest] })
	clear(lost)
	if len(wanted) > 0 {
		if err := r.search(ctx, wanted); err != nil {
			return nil, err
		}
	}
	for _, e := range wanted {
		if e != nil {
			lost[e.Digest] = true
		}
	}
	return lost, nil
}

// search looks for contents anywhere in the root, by their sizes.
func (r *reader) search(ctx context.Context, wanted []*Entry) error {
	st, err := r.root.StatSelf()
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

// mend copies the file at a path of the root into the reader's own directory, as the object of
// want, and reports whether it matches. An unreadable file does not.
func (r *reader) mend(ctx context.Context, path string, want *Entry) (bool, error) {
	in, name := split(path)
	d, err := r.at.open(in)
	if err != nil {
		return false, isMachine(err)
	}
	f, st, err := d.OpenFile(name)
	if err != nil {
		return false, isMachine(err)
	}
	defer f.Close()
	if st.Size != want.Size || !st.IsOn(r.mount) {
		return false, nil
	}
	e := Entry{Path: path, Size: want.Size, Sparse: want.Sparse}
	if r.looks {
		err := r.copy(ctx, nil, f, &e)
		if errors.Is(err, errUnsettled) {
			err = nil
		}
		return err == nil && e.Digest == want.Digest, err
	}
	const temp = "large"
	dst, err := r.own.Create(temp, objectPerm)
	if err != nil {
		return false, err
	}
	err = r.copy(ctx, dst, f, &e)
	if err := errors.Join(err, r.sysHook.CloseFile(dst)); err != nil && !errors.Is(err, errUnsettled) {
		return false, errors.Join(err, r.own.Unlink(temp))
	}
	if err != nil || e.Digest != want.Digest || !r.objects.claim(want.Digest, want.Size, r.own) {
		return false, r.own.Unlink(temp)
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
