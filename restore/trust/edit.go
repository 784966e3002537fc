package trust

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spectrumfs/spectrum/internal/dropin"
	"github.com/spectrumfs/spectrum/pathsafe"
)

// ErrKnown reports that a place already has the entry to add, or does not have the entry to
// remove.
var ErrKnown = errors.New("nothing to change")

// Pin pins a validator in a place. The file is named after the validator.
func Pin(place, id, note string) error {
	if err := checkStrong(id); err != nil {
		return err
	}
	return write(place, trusted, id, note)
}

// Revoke revokes a validator in a place.
func Revoke(place, id, reason string) error {
	return write(place, revoked, id, reason)
}

// Unpin removes the files of a place that pin a validator.
func Unpin(place, id string) error {
	if err := CheckID(id); err != nil {
		return err
	}
	dir, err := openDir(place, trusted)
	if err != nil {
		return fmt.Errorf("trust: %w", err)
	}
	defer dir.Close()
	names, err := dir.Names()
	if err != nil {
		return err
	}
	found := false
	for _, name := range names {
		raw, err := dropin.File(dir, name, maxFile)
		if err != nil {
			continue
		}
		if r, err := parse(raw); err != nil || r.ID != id {
			continue
		}
		if err := dir.Unlink(name); err != nil {
			return err
		}
		found = true
	}
	if !found {
		return fmt.Errorf("validator %s is not pinned in %q: %w", id, place, ErrKnown)
	}
	return dir.Sync()
}

// write makes the file of a validator. It appears whole, and replaces none.
func write(place, name, id, note string) error {
	if err := CheckID(id); err != nil {
		return err
	}
	raw := []byte(id + "\n" + note + "\n")
	if len(raw) > maxFile {
		return fmt.Errorf("the note has more than %d bytes", maxFile-len(id))
	}
	dir, err := openDir(place, name)
	if err != nil {
		return fmt.Errorf("trust: %w", err)
	}
	defer dir.Close()
	err = dir.WriteFile(id, raw, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("validator %s is in %q already: %w", id, name, ErrKnown)
	}
	return errors.Join(err, dir.Sync())
}

// openDir opens a directory of a place, and makes both if needed.
func openDir(place, name string) (*pathsafe.Dir, error) {
	top, err := pathsafe.OpenRoot(place)
	if err != nil {
		return nil, err
	}
	defer top.Close()
	if err := top.Mkdir(name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return top.OpenDir(name)
}
