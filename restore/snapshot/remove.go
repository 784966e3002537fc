package snapshot

import (
	"errors"
	"io/fs"
)

// sweep removes what killed takes have left. It requires the exclusive lock.
func (s *Store) sweep() error {
	names, err := s.incoming.Names()
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := removeTree(s.incoming, name); err != nil {
			return err
		}
	}
	return nil
}

// removeTree removes name, whatever it is, with everything in it.
func removeTree(d dir, name string) error {
	st, err := d.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !st.Mode.IsDir() {
		return d.Unlink(name)
	}
	sub, err := d.open(name)
	if err != nil {
		return err
	}
	defer sub.Close()
	names, err := sub.Names()
	if err != nil {
		return err
	}
	for _, below := range names {
		if err := removeTree(sub, below); err != nil {
			return err
		}
	}
	return d.Rmdir(name)
}
