package savepoint

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// Activate makes a savepoint the tip of its chain, durably: one of the chain, one
// that was retired, or none ("") when the restore root is as before its first
// commit. Those behind it are retired, and those on its way that were retired come
// back. At every moment the chain is a whole one, and after a kill the same call
// ends what it began. The error is fs.ErrNotExist when there is no such savepoint.
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
	way, err := c.wayTo(tip)
	if err != nil {
		return err
	}
	if err := c.retireAllBut(way); err != nil {
		return err
	}
	return c.bringBack(way)
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

// wayTo are the slots from the first savepoint to a tip, wherever they stand.
func (c *chain) wayTo(tip string) ([]slot, error) {
	all, err := c.everywhere()
	if err != nil {
		return nil, err
	}
	var way []slot
	for id := tip; id != ""; {
		i := slices.IndexFunc(all, func(sp Savepoint) bool { return sp.id == id })
		if i < 0 {
			return nil, fmt.Errorf("savepoint %.100q: %w", id, fs.ErrNotExist)
		}
		way = append(way, all[i].slot())
		id = all[i].Parent()
	}
	slices.Reverse(way)
	return way, nil
}

func (sp Savepoint) slot() slot { return slot{sp.Sequence(), sp.Attempt()} }

// everywhere is the chain, and what was retired from it.
func (c *chain) everywhere() ([]Savepoint, error) {
	all, err := c.list()
	if err != nil {
		return nil, err
	}
	some, err := c.listRetired()
	return append(all, some...), err
}

// retireAllBut retires what is not on the way, the newest first.
func (c *chain) retireAllBut(way []slot) error {
	slots, err := c.slots()
	if err != nil {
		return err
	}
	for _, at := range slices.Backward(slots) {
		if slices.Contains(way, at) {
			break
		}
		if err := move(c.published, c.retired, at); err != nil {
			return err
		}
	}
	return errors.Join(c.retired.Sync(), c.published.Sync())
}

// bringBack puts the way into the chain as far as it was retired, the oldest first.
func (c *chain) bringBack(way []slot) error {
	for _, at := range way {
		_, err := c.published.Lstat(at.name())
		if errors.Is(err, fs.ErrNotExist) {
			err = move(c.retired, c.published, at)
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

// Behind are the savepoints of the chain that [Store.Activate] would retire, the
// newest first. Its error is that of Activate.
func (s *Store) Behind(root, tip string) ([]Savepoint, error) {
	return s.moved(root, tip, func(c *chain, way []slot) ([]Savepoint, error) {
		all, err := c.list()
		all = slices.DeleteFunc(all, func(sp Savepoint) bool { return slices.Contains(way, sp.slot()) })
		slices.Reverse(all)
		return all, err
	})
}

// Ahead are the retired savepoints that [Store.Activate] would bring back, the oldest
// first. Its error is that of Activate.
func (s *Store) Ahead(root, tip string) ([]Savepoint, error) {
	return s.moved(root, tip, func(c *chain, way []slot) ([]Savepoint, error) {
		all, err := c.listRetired()
		return slices.DeleteFunc(all, func(sp Savepoint) bool { return !slices.Contains(way, sp.slot()) }), err
	})
}

func (s *Store) moved(root, tip string, list func(*chain, []slot) ([]Savepoint, error)) ([]Savepoint, error) {
	c, err := s.enter(root)
	if err == nil && c == nil {
		err = absentUnless(tip == "")
	}
	if err != nil || c == nil {
		return nil, err
	}
	defer c.close()
	way, err := c.wayTo(tip)
	if err != nil {
		return nil, err
	}
	return list(c, way)
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
