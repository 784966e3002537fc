package statedir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/spectrumfs/spectrum/pathsafe"
)

// roots is the directory of the restore roots that were entered: a file for each history. What
// a history is of is decided by the identity of the directory, and its path is a hint.
const roots = "roots"

// A knownRoot is a restore root with a history.
type knownRoot struct {
	ID    string `json:"id"`    // of the directory, as the file system has it
	Known string `json:"known"` // the path under which all records of it are kept
	Path  string `json:"path"`  // where it was found last
}

// readRoots returns what can be read, in the order of the names of the files. A record that
// cannot be read is none: then the path decides.
func (d *Dir) readRoots() ([]knownRoot, error) {
	dir, err := d.root.OpenDir(roots)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Names()
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var all []knownRoot
	for _, name := range names {
		raw, err := readRoot(dir, name)
		var r knownRoot
		if err == nil && json.Unmarshal(raw, &r) == nil && attemptsOf(r.Known) == name {
			all = append(all, r)
		}
	}
	return all, nil
}

// readRoot reads a file that has no need to be large.
func readRoot(dir *pathsafe.Dir, name string) ([]byte, error) {
	f, _, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 64<<10))
}

// RootName returns the path under which the records of the restore root at a real path are
// kept: that at which it was first entered.
func (d *Dir) RootName(path string) (string, error) {
	all, err := d.readRoots()
	if err != nil {
		return "", fmt.Errorf("state directory %q: %w", d.path, err)
	}
	name, _ := nameOf(all, knownRoot{Path: path}, nil)
	return name, nil
}

// RootPath is the reverse of [Dir.RootName]: where a restore root was found last.
func (d *Dir) RootPath(name string) (string, error) {
	all, err := d.readRoots()
	if err != nil {
		return "", fmt.Errorf("state directory %q: %w", d.path, err)
	}
	for _, r := range all {
		if r.Known == name {
			return r.Path, nil
		}
	}
	return name, nil
}

// RootPaths returns where all restore roots were found last, in the order of their names'
// hashes.
func (d *Dir) RootPaths() ([]string, error) {
	all, err := d.readRoots()
	if err != nil {
		return nil, fmt.Errorf("state directory %q: %w", d.path, err)
	}
	paths := make([]string, len(all))
	for i, r := range all {
		paths[i] = r.Path
	}
	return paths, nil
}

// EnterRoot is [Dir.RootName] of a directory whose identity is known, and remembers, unless it
// is for a look only, where it is. A directory that was moved keeps its history: from is the
// path at which it was found before, "" where it was not moved. Leads reports whether a path
// still leads to the directory of this identity, by another mount for one: then it was not
// moved.
func (d *Dir) EnterRoot(path, id string, look bool, leads func(path string) bool) (name, from string, err error) {
	all, err := d.readRoots()
	if err != nil {
		return "", "", fmt.Errorf("state directory %q: %w", d.path, err)
	}
	name, from = nameOf(all, knownRoot{ID: id, Path: path}, leads)
	now := knownRoot{id, name, path}
	if look || slices.Contains(all, now) || !utf8.ValidString(path) { // of such a path the path decides
		return name, from, nil
	}
	if err := d.keepRoot(now); err != nil {
		return "", "", fmt.Errorf("state directory %q: where a restore root is: %w", d.path, err)
	}
	return name, from, nil
}

// nameOf returns the name of a restore root. Its identity comes first; a directory that no
// record has takes the history that was last found at its path, unless that is of one that
// was moved away.
func nameOf(all []knownRoot, at knownRoot, leads func(path string) bool) (name, from string) {
	for _, r := range all {
		if at.ID != "" && r.ID == at.ID && r.Path == at.Path {
			return r.Known, ""
		}
	}
	for _, r := range all {
		if at.ID != "" && r.ID == at.ID && !leads(r.Path) {
			return r.Known, r.Path
		}
	}
	taken := map[string]bool{}
	for _, r := range all {
		if r.Path == at.Path {
			return r.Known, ""
		}
		taken[r.Known] = true
	}
	name = at.Path
	for n := 2; taken[name]; n++ {
		name = fmt.Sprintf("%s (%d)", at.Path, n)
	}
	return name, ""
}

// keepRoot writes a record, in place of an older one.
func (d *Dir) keepRoot(r knownRoot) error {
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	dir, err := d.open(roots)
	if err != nil {
		return err
	}
	defer dir.Close()
	name := attemptsOf(r.Known)
	err = dir.WriteFile(name, raw, 0o600)
	if !errors.Is(err, fs.ErrExist) {
		return errors.Join(err, dir.Sync())
	}
	temp := "." + uuid.NewString()
	if err := dir.WriteFile(temp, raw, 0o600); err != nil {
		return err
	}
	return errors.Join(dir.RenameExchange(temp, dir, name), dir.Unlink(temp), dir.Sync())
}
