package statedir

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"unicode/utf8"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// RootsLog is the name of the file of the restore roots that were entered: a line for each time that one
// was found elsewhere than before. What a history is of is decided by the identity of the
// directory, and its path is a hint. It is one file, so that a command that looks for a root
// that was moved, or for those around its own, reads no more files when there are many roots.
const RootsLog = "roots.log"

// A KnownRoot is a restore root with a history. What it is decides, and its path is a hint.
type KnownRoot struct {
	ID    string `json:"id"`    // of the directory, as the file system has it
	Known string `json:"known"` // the path under which all records of it are kept
	Path  string `json:"path"`  // where it was found last
}

// A rootLine is a line of the file. One whose sum does not fit was damaged: a path of which a
// byte has changed may be a path all the same.
type rootLine struct {
	KnownRoot
	Sum string `json:"sum"`
}

func (r KnownRoot) line() rootLine {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", r.ID, r.Known, r.Path))
	return rootLine{r, hex.EncodeToString(sum[:8])}
}

// readRoots returns the last line of each history, the newest first. A line that cannot be
// read is none: then the path decides.
func (d *Dir) readRoots() ([]KnownRoot, error) {
	f, st, err := d.root.Open(RootsLog)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, d.part(RootsLog, err)
	}
	defer f.Close()
	raw := bytes.NewBuffer(make([]byte, 0, st.Size+bytes.MinRead)) // one read, however long it is
	if _, err := raw.ReadFrom(f); err != nil {
		return nil, d.part(RootsLog, err)
	}
	var all []KnownRoot
	seen := map[string]bool{}
	lines := bytes.Split(raw.Bytes(), []byte("\n"))
	for _, line := range slices.Backward(lines) {
		var r rootLine
		if json.Unmarshal(line, &r) != nil || r != r.line() || seen[r.Known] {
			continue
		}
		if seen[r.Known] = true; r.Path != "" { // else it is known by that name no more
			all = append(all, r.KnownRoot)
		}
	}
	return all, nil
}

// RootName returns the path under which the records of the restore root at a real path are
// kept: that at which it was first entered.
func (d *Dir) RootName(path string) (string, error) {
	all, err := d.readRoots()
	if err != nil {
		return "", err
	}
	name, _, _ := nameOf(all, KnownRoot{Path: path}, nil)
	return name, nil
}

// RootPath is the reverse of [Dir.RootName]: where a restore root was found last.
func (d *Dir) RootPath(name string) (string, error) {
	all, err := d.readRoots()
	if err != nil {
		return "", err
	}
	for _, r := range all {
		if r.Known == name {
			return r.Path, nil
		}
	}
	return name, nil
}

// RootPaths returns where all restore roots were found last, the newest first.
func (d *Dir) RootPaths() ([]string, error) {
	all, err := d.readRoots()
	if err != nil {
		return nil, err
	}
	paths := make([]string, len(all))
	for i, r := range all {
		paths[i] = r.Path
	}
	return paths, nil
}

// Names reports whether the record of where restore roots are has one by this name, or never
// would.
func (d *Dir) Names(name string) (bool, error) {
	all, err := d.readRoots()
	isKnown := slices.ContainsFunc(all, func(r KnownRoot) bool { return r.Known == name })
	return isKnown || !utf8.ValidString(name), err
}

// KnownRoots returns all restore roots with a history, as they were found last, the newest first.
func (d *Dir) KnownRoots() ([]KnownRoot, error) { return d.readRoots() }

// Evidence is what tells of a directory beside the record of where restore roots are. All may
// be nil but Leads.
type Evidence struct {
	// Leads reports whether a path still leads to the directory, by another mount for one: then
	// it was not moved from there.
	Leads func(path string) bool
	// Has reports whether there is history under a name.
	Has func(name string) bool
	// Past returns the name under which there is history of this very directory, but for the other
	// ones, which are known to be of others; "" for none.
	Past func(others []string) string
}

// EnterRoot is [Dir.RootName] of a directory whose identity is known, and remembers, unless it
// is for a look only, where it is. A directory that was moved keeps its history: from is the
// path at which it was found before, "" where it was not moved. What the record has lost, the
// history says itself.
func (d *Dir) EnterRoot(path, id string, look bool, ev Evidence) (name, from string, err error) {
	all, err := d.readRoots()
	if err != nil {
		return "", "", err
	}
	name, from, isKnown := nameOf(all, KnownRoot{ID: id, Path: path}, ev.Leads)
	lines := make([]KnownRoot, 0, 2)
	if past := ev.past(all, path, name, isKnown); past != name {
		if isKnown { // the name that it got while the record was lost
			lines = append(lines, KnownRoot{ID: id, Known: name})
		}
		if name, from = past, past; past == path {
			from = ""
		}
	}
	now := KnownRoot{id, name, path}
	if look || slices.Contains(all, now) || !utf8.ValidString(path) { // of such a path the path decides
		return name, from, nil
	}
	for _, r := range append(lines, now) {
		if err := d.keepRoot(r); err != nil {
			return "", "", fmt.Errorf("state directory %q: where a restore root is: %w", d.path, err)
		}
	}
	return name, from, nil
}

// past returns the name of a directory by its history, where the record does not know it or
// knows it by a name that has no history; else the name that it has.
func (ev *Evidence) past(all []KnownRoot, path, name string, isKnown bool) string {
	if ev.Past == nil || isKnown && ev.Has(name) {
		return name
	}
	others := make([]string, len(all))
	for i, r := range all {
		others[i] = r.Known
	}
	past := ev.Past(others)
	if past == "" || past != path && ev.Leads(past) {
		return name
	}
	return past
}

// nameOf returns the name of a restore root, and whether its identity is known. That comes
// first; a directory that no record has takes the history that was last found at its path,
// unless that is of one that was moved away.
func nameOf(all []KnownRoot, at KnownRoot, leads func(path string) bool) (name, from string, isKnown bool) {
	for _, r := range all {
		if at.ID != "" && r.ID == at.ID && r.Path == at.Path {
			return r.Known, "", true
		}
	}
	for _, r := range all {
		if at.ID != "" && r.ID == at.ID && !leads(r.Path) {
			return r.Known, r.Path, true
		}
	}
	taken := map[string]bool{}
	for _, r := range all {
		if r.Path == at.Path {
			return r.Known, "", false
		}
		taken[r.Known] = true
	}
	name = at.Path
	for n := 2; taken[name]; n++ {
		name = fmt.Sprintf("%s (%d)", at.Path, n)
	}
	return name, "", false
}

// keepRoot writes a line, durably.
func (d *Dir) keepRoot(r KnownRoot) error {
	f, err := openToAppend(d.root, RootsLog)
	if err != nil {
		return err
	}
	return d.appendLine(f, r.line())
}

// appendLine writes a JSON value as a line to a file of the state directory, durably, and closes
// it. The line begins with the end of one that was cut off.
func (d *Dir) appendLine(f *os.File, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	line := slices.Concat([]byte("\n"), raw, []byte("\n"))
	_, err = f.Write(line)
	err = pathsafe.NoSpace(f, len(line), err)
	return errors.Join(err, f.Sync(), f.Close(), d.root.Sync())
}
