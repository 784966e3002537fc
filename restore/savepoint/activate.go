package savepoint

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// Activate makes a savepoint the tip of its chain, durably: one of the chain, one
// that was retired, or none ("") when the restore root is as before its first
// commit. Those behind it are retired, and those on its way that were retired come
// back. At every moment the chain is a whole one, and after a kill the same call
// ends what it began.
//
// Damage stops none of that. A savepoint that cannot be read is retired by its name where it
// is behind the tip, and stays where it may be on the way. The error is fs.ErrNotExist when
// there is no such savepoint that can be read: then those that were made after it are
// retired, as far as they name it.
func (s *Store) Activate(root, tip string) error {
	if err := s.activate(root, tip); err != nil {
		return fmt.Errorf("going back in the savepoints of %q: %w", root, err)
	}
	return nil
}

func (s *Store) activate(root, tip string) error {
	c, err := s.enter(root)
	if err != nil {
		return err
	}
	if c == nil {
		return absentUnless(tip == "")
	}
	defer c.close()
	if c.retired == nil {
		if err := s.makeRetired(c); err != nil {
			return err
		}
	}
	all, _, err := c.survey()
	if err != nil {
		return err
	}
	way := wayTo(all, tip)
	if err := c.retire(way.gone); err != nil {
		return err
	}
	if err := c.bringBack(way.back); err != nil {
		return err
	}
	return absentUnless(way.known)
}

func absentUnless(ok bool) error {
	if ok {
		return nil
	}
	return fs.ErrNotExist
}

func (s *Store) makeRetired(c *chain) error {
	dir, err := s.dir.OpenDir(c.key)
	if err != nil {
		return err
	}
	defer dir.Close()
	c.retired, err = makeDir(dir, retired)
	return err
}

// way is what moves so that a savepoint becomes the tip.
type way struct {
	gone  []found // from the chain, the newest first
	back  []found // to the chain, the oldest first
	known bool    // the tip can be read, or is to be none
}

// wayTo returns the way to a tip. Where a savepoint on it cannot be read, those before it
// are not known: of them the chain stays as it is.
func wayTo(all []found, tip string) way {
	w, on, first := way{known: true}, map[slot]bool{}, math.MaxInt
	id := tip
	for id != "" {
		i := slices.IndexFunc(all, func(f found) bool { return f.damage == nil && f.sp.id == id })
		if i < 0 {
			break
		}
		if on[all[i].slot] = true; all[i].where == retired {
			w.back = append(w.back, all[i])
		}
		first, id = all[i].sequence, all[i].sp.Parent()
	}
	slices.Reverse(w.back)
	isWhole := id == ""
	if !isWhole && len(on) == 0 {
		w.known = false
		for _, f := range all {
			if f.where == published && f.damage == nil && f.sp.Parent() == tip {
				first = min(first, f.sequence)
			}
		}
	}
	for _, f := range slices.Backward(all) {
		isParent := f.damage != nil || !w.known // of the first on the way, for all that is known
		if f.where == published && !on[f.slot] && (isWhole || f.sequence >= first || f.sequence == first-1 && !isParent) {
			w.gone = append(w.gone, f)
		}
	}
	return w
}

// retire retires savepoints, in this order. A copy of one that was retired before makes way.
func (c *chain) retire(gone []found) error {
	for _, f := range gone {
		err := move(c.published, c.retired, f.slot)
		if errors.Is(err, fs.ErrExist) {
			err = c.retired.RenameNoReplace(f.name(), c.prepared, dropped+f.name())
			if err == nil || errors.Is(err, fs.ErrExist) {
				err = move(c.published, c.retired, f.slot)
			}
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(c.retired.Sync(), c.published.Sync())
}

// bringBack puts savepoints back into the chain, the oldest first.
func (c *chain) bringBack(back []found) error {
	for _, f := range back {
		_, err := c.published.Lstat(f.name())
		if errors.Is(err, fs.ErrNotExist) {
			err = move(c.retired, c.published, f.slot)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(c.published.Sync(), c.retired.Sync())
}

func move(from, to *pathsafe.Dir, at slot) error {
	return from.RenameNoReplace(at.name(), to, at.name())
}

// Way is what [Store.Activate] moves.
type Way struct {
	Behind []Savepoint    // that are retired, the newest first
	Unread []*DamageError // that are retired and cannot be read
	Ahead  []Savepoint    // that come back, the oldest first
}

// Attempts returns the attempts of all that is retired, the newest first.
func (w Way) Attempts() []string {
	slots := make([]slot, 0, len(w.Behind)+len(w.Unread))
	for _, sp := range w.Behind {
		slots = append(slots, sp.slot())
	}
	for _, d := range w.Unread {
		slots = append(slots, slot{d.Sequence, d.Attempt})
	}
	slices.SortStableFunc(slots, func(a, b slot) int { return compareSlots(b, a) })
	attempts := make([]string, len(slots))
	for i, s := range slots {
		attempts[i] = s.attempt
	}
	return attempts
}

func (sp Savepoint) slot() slot { return slot{sp.Sequence(), sp.Attempt()} }

// WayTo returns what Activate would move, and where that is damaged what is known of it.
func (s *Store) WayTo(root, tip string) (Way, error) {
	key, _, err := keyOf(root)
	if err != nil {
		return Way{}, err
	}
	all, _, err := s.foundIn(key)
	if err != nil {
		return Way{}, err
	}
	var w Way
	way := wayTo(all, tip)
	for _, f := range way.gone {
		if f.damage != nil {
			w.Unread = append(w.Unread, f.damage)
		} else {
			w.Behind = append(w.Behind, f.sp)
		}
	}
	for _, f := range way.back {
		w.Ahead = append(w.Ahead, f.sp)
	}
	return w, nil
}

// Retired are the savepoints of a restore root that a rollback took out of its
// chain, of all roots when root is "". Those of one root are in the order of their
// sequence.
func (s *Store) Retired(root string) ([]Savepoint, error) {
	return s.ofRoots(root, (*chain).listRetired)
}

func (c *chain) listRetired() ([]Savepoint, error) {
	if c.retired == nil {
		return nil, nil
	}
	names, err := c.retired.Names()
	if err != nil {
		return nil, err
	}
	slots, err := c.parseAll(retired, names)
	if err != nil {
		return nil, err
	}
	return c.loadAll(retired, slots)
}
