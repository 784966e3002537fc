package savepoint

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// Activate takes the chain of a restore root to another tip, durably: it retires the savepoints
// of the attempts in gone, and brings those in back out of retirement. Both are as [Store.SwitchTo]
// has decided and as it was recorded before anything was changed, so no savepoint is read here:
// what can be read meanwhile, or cannot any more, changes nothing. At every moment the chain is a
// whole one, and after a kill the same call ends what it began.
func (s *Store) Activate(root string, gone, back []string) error {
	if err := s.activate(root, gone, back); err != nil {
		return fmt.Errorf("going back in the savepoints of %q: %w", root, err)
	}
	return nil
}

func (s *Store) activate(root string, gone, back []string) error {
	c, err := s.enter(root)
	if err != nil || c == nil {
		return err
	}
	defer c.close()
	if c.retired == nil {
		if err := s.makeRetired(c); err != nil {
			return err
		}
	}
	standing, _, err := c.slotsIn(published)
	if err != nil {
		return err
	}
	away, _, err := c.slotsIn(retired)
	if err != nil {
		return err
	}
	standing = slices.DeleteFunc(standing, func(s slot) bool { return !slices.Contains(gone, s.attempt) })
	slices.Reverse(standing)
	if err := c.retire(standing); err != nil {
		return err
	}
	return c.bringBack(slices.DeleteFunc(away, func(s slot) bool { return !slices.Contains(back, s.attempt) }))
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

// switching is what moves so that a savepoint becomes the tip.
type switching struct {
	gone []found // from the chain, the newest first
	back []found // to the chain, the oldest first
}

// switchingTo returns the way to a tip. Where a savepoint on it cannot be read, those before it
// are not known: of them the chain stays as it is. Where the tip itself is lost, those that were
// made after it are retired, as far as they name it.
func switchingTo(all []found, tip string) switching {
	w, on, first, isLost := switching{}, map[slot]bool{}, math.MaxInt, false
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
		isLost = true
		for _, f := range all {
			if f.where == published && f.damage == nil && f.sp.Parent() == tip {
				first = min(first, f.sequence)
			}
		}
	}
	for _, f := range slices.Backward(all) {
		isParent := f.damage != nil || isLost // of the first on the way, as far as is known
		if f.where == published && !on[f.slot] && (isWhole || f.sequence >= first || f.sequence == first-1 && !isParent) {
			w.gone = append(w.gone, f)
		}
	}
	return w
}

// retire retires savepoints, in this order. A copy of one that was retired before makes way.
func (c *chain) retire(gone []slot) error {
	for _, f := range gone {
		err := move(c.published, c.retired, f)
		if errors.Is(err, fs.ErrExist) {
			err = c.retired.RenameNoReplace(f.name(), c.prepared, dropped+f.name())
			if err == nil || errors.Is(err, fs.ErrExist) {
				err = move(c.published, c.retired, f)
			}
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(c.retired.Sync(), c.published.Sync())
}

// bringBack puts savepoints back into the chain, the oldest first.
func (c *chain) bringBack(back []slot) error {
	for _, f := range back {
		_, err := c.published.Lstat(f.name())
		if errors.Is(err, fs.ErrNotExist) {
			err = move(c.retired, c.published, f)
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

// Switch is what [Store.Activate] is to move.
type Switch struct {
	Behind []Savepoint    // that are retired, the newest first
	Unread []*DamageError // that are retired and cannot be read
	Ahead  []Savepoint    // that come back, the oldest first
}

// Attempts returns the attempts of all that is retired, the newest first.
func (w Switch) Attempts() []string {
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

// SwitchTo returns what [Store.Activate] has to move to make a savepoint the tip of its chain: one
// of the chain, one that was retired, or none ("") when the restore root is as before its first
// commit. Those behind it are retired, and those on its way that were retired come back. Damage
// stops none of that: what cannot be read is retired by its name where it is behind the tip, and
// stays where it may be on the way.
func (s *Store) SwitchTo(root, tip string) (Switch, error) {
	key, _, err := keyOf(root)
	if err != nil {
		return Switch{}, err
	}
	all, _, err := s.foundIn(key)
	if err != nil {
		return Switch{}, err
	}
	var w Switch
	way := switchingTo(all, tip)
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
