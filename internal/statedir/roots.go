package statedir

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
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
	lines, err := d.readLines(RootsLog, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	var all []KnownRoot
	seen := map[string]bool{}
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
	return isNamed(all, name), err
}

func isNamed(all []KnownRoot, name string) bool {
	return !utf8.ValidString(name) || slices.ContainsFunc(all, func(r KnownRoot) bool { return r.Known == name })
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

// A Histories is what is kept of restore roots; the store of snapshots is one.
type Histories interface {
	// Has reports whether anything is kept under a name.
	Has(name string) bool
	// KnownAs returns the name under which there is history of a directory, but for other names.
	KnownAs(dir pathsafe.Stat, others []string) (name string, err error)
}

// EvidenceOf returns what is known of a directory with an identity: the file system reports where a
// path leads, and what is kept, unless it is nil, has its history.
func EvidenceOf(id string, dir pathsafe.Stat, kept Histories) Evidence {
	ev := Evidence{Leads: func(path string) bool { return leadsTo(path, id) }}
	if kept == nil {
		return ev
	}
	ev.Has = kept.Has
	ev.Past = func(others []string) string {
		name, err := kept.KnownAs(dir, others)
		if err != nil {
			return "" // the path decides
		}
		return name
	}
	return ev
}

// leadsTo reports whether a path leads to the directory of an identity.
func leadsTo(path, id string) bool {
	dir, err := pathsafe.OpenRoot(path)
	if err != nil {
		return false
	}
	defer dir.Close()
	is, err := dir.Identity()
	return err == nil && is == id
}

// An EnteredRoot is a restore root as the record of where they are has it.
type EnteredRoot struct {
	Name string // the path under which its records are kept
	From string // where it was found before, if it was moved; "" if not
	// WasLost: the record did not have the name, though there is history under it.
	WasLost bool
}

// EnterRoot is [Dir.RootName] of a directory whose identity is known, and remembers, unless it
// is for a look only, where it is. A directory that was moved keeps its history. What the record has
// lost, the history says itself.
func (d *Dir) EnterRoot(path, id string, look bool, ev Evidence) (EnteredRoot, error) {
	all, err := d.readRoots()
	if err != nil {
		return EnteredRoot{}, err
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
	entered := EnteredRoot{name, from, !isNamed(all, name) && ev.Has != nil && ev.Has(name)}
	now := KnownRoot{id, name, path}
	if look || slices.Contains(all, now) || !utf8.ValidString(path) { // of such a path the path decides
		return entered, nil
	}
	for _, r := range append(lines, now) {
		if err := d.keepRoot(r); err != nil {
			return EnteredRoot{}, fmt.Errorf("state directory %q: where a restore root is: %w", d.path, err)
		}
	}
	return entered, nil
}

// FindRoot returns the path under which the records of the restore root at a path are kept, by what
// the directory there is: it may have been moved there since. Unless it is for a look only, where it is
// now is remembered. Where no directory can be opened, the path decides. Kept may be nil.
func (d *Dir) FindRoot(path string, look bool, kept Histories) (string, error) {
	dir, err := pathsafe.OpenRoot(path)
	if err != nil {
		if d.MovedRoot(path) != "" { // nothing else is at that path
			return path, nil
		}
		return d.RootName(path)
	}
	defer dir.Close()
	id, err := dir.Identity()
	st, unknown := dir.Stat()
	if err != nil || unknown != nil {
		return d.RootName(path)
	}
	entered, err := d.EnterRoot(path, id, look, EvidenceOf(id, st, kept))
	return entered.Name, err
}

// MovedRoot returns where the restore root was found last whose records are kept under a name that is
// the path of no other one; "" for none.
func (d *Dir) MovedRoot(name string) (path string) {
	all, _ := d.readRoots() // what cannot be read is not known
	for _, r := range all {
		switch name {
		case r.Path:
			return ""
		case r.Known:
			path = r.Path
		}
	}
	return path
}

// RootAround returns the path of the innermost known restore root that a real path is in; "" for none.
func (d *Dir) RootAround(real string) (path string) {
	all, _ := d.readRoots() // what cannot be read is not known
	for _, r := range all {
		if pathsafe.IsWithin(real, r.Path) && len(r.Path) > len(path) {
			path = r.Path
		}
	}
	return path
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

// readLines returns the lines of the end of a file of the state directory, at most so many bytes of it;
// none if there is no such file.
func (d *Dir) readLines(name string, most int64) ([][]byte, error) {
	f, st, err := d.root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, d.part(name, err)
	}
	defer f.Close()
	begin := max(0, st.Size-most)
	raw := bytes.NewBuffer(make([]byte, 0, st.Size-begin+bytes.MinRead)) // one read, however long it is
	if _, err := raw.ReadFrom(io.NewSectionReader(f, begin, most)); err != nil {
		return nil, d.part(name, err)
	}
	return bytes.Split(raw.Bytes(), []byte("\n")), nil
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
