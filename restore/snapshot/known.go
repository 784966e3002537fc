package snapshot

import (
	"fmt"
	"io/fs"
	"slices"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// Has reports whether anything is kept of the root of a name, as far as that can be seen
// without reading it.
func (s *Store) Has(root string) bool {
	p, ok, err := s.enter(keyOf(root))
	if err != nil || !ok {
		return err != nil
	}
	defer p.Close()
	sequence, _, err := p.last()
	return err != nil || sequence > 0
}

// KnownAs returns the name under which the newest snapshot of a root has a directory: by the
// device, the inode and the birth time in that snapshot; "" if there is none, or if the file
// system has no birth times. Roots with the other names are skipped, and nothing of them is
// read. Unreadable manifests are ignored, and only the first two lines of a manifest are read,
// so neither its ID nor its signature is checked.
func (s *Store) KnownAs(dir pathsafe.Stat, others []string) (root string, err error) {
	if dir.BirthTime.IsZero() {
		return "", nil
	}
	skip := make(map[string]bool, len(others))
	for _, other := range others {
		skip[keyOf(other)] = true
	}
	keys, err := s.roots.Names()
	if err != nil {
		return "", err
	}
	keys = slices.DeleteFunc(keys, func(key string) bool { return skip[key] })
	_, err = s.visit(keys, func(p chainDir) error {
		if root != "" {
			return nil
		}
		h, of, ok := p.newestRoot()
		if ok && of.Dev == dir.ID.Dev && of.Ino == dir.ID.Ino && of.BirthTime.Equal(dir.BirthTime) {
			root = h.Root
		}
		return nil
	})
	return root, err
}

// newestRoot returns the header of the newest manifest that can be read that far, and the entry
// of the root.
func (p chainDir) newestRoot() (Header, Entry, bool) {
	names, err := p.Names()
	if err != nil {
		return Header{}, Entry{}, false
	}
	slices.Sort(names)
	for _, name := range slices.Backward(names) {
		h, e, err := readRoot(p.dir, name)
		if err == nil && keyOf(h.Root) == p.key {
			return h, e, true
		}
	}
	return Header{}, Entry{}, false
}

// readRoot reads the first two lines of a manifest: the header, and the entry of the root.
func readRoot(d dir, name string) (Header, Entry, error) {
	if _, _, err := parseName(name); err != nil {
		return Header{}, Entry{}, err
	}
	f, _, err := d.OpenFile(name)
	if err != nil {
		return Header{}, Entry{}, err
	}
	defer f.Close()
	lines, err := readLines(d, f, 2)
	if err != nil {
		return Header{}, Entry{}, err
	}
	h, err := headerOf(name, lines[0])
	if err != nil {
		return Header{}, Entry{}, err
	}
	e, _, err := parseEntry(lines[1], nil)
	if err == nil && e.Path != "" {
		err = fmt.Errorf("it begins with %q: %w", e.Path, fs.ErrInvalid)
	}
	return h, e, err
}

// RootNames returns the names of the roots of which a manifest can be read.
func (s *Store) RootNames() (names []string) {
	_, _ = s.eachChain(func(p chainDir) error {
		if h, _, ok := p.newestRoot(); ok {
			names = append(names, h.Root)
		}
		return nil
	})
	return names
}
