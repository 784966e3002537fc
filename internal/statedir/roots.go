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

// RootsLog is the name of the file of the restore roots that were entered: a line for each time
// that a root was found at a new path. A history belongs to the identity of a directory; its path
// is a hint. It is a single file, so that looking up a moved root, or the roots around one, does
// not read more files if there are many roots.
const RootsLog = "roots.log"

// A KnownRoot is a restore root with a history. It is identified by ID; its path is a hint.
type KnownRoot struct {
	ID    string `json:"id"`    // of the directory, as the file system has it
	Known string `json:"known"` // the path under which all records of it are kept
	Path  string `json:"path"`  // where it was last found
}

// A rootLine is a line of the file. A line with a wrong checksum is damaged: a changed path may
// still look like a path.
type rootLine struct {
	KnownRoot
	Sum string `json:"sum"`
}

func (r KnownRoot) line() rootLine {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", r.ID, r.Known, r.Path))
	return rootLine{r, hex.EncodeToString(sum[:8])}
}

// readRoots returns the last line of each history, the newest first. It ignores lines that cannot
// be read: then the path decides.
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
		if seen[r.Known] = true; r.Path != "" { // an empty path: no longer known by that name
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

// RootPath is the reverse of [Dir.RootName]: it returns where a restore root was last found.
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

// RootPaths returns where all restore roots were last found, the newest first.
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

// Names reports whether the record of restore roots has this name, or never would have it.
func (d *Dir) Names(name string) (bool, error) {
	all, err := d.readRoots()
	return isNamed(all, name), err
}

func isNamed(all []KnownRoot, name string) bool {
	return !utf8.ValidString(name) || slices.ContainsFunc(all, func(r KnownRoot) bool { return r.Known == name })
}

// KnownRoots returns all restore roots with a history, as they were found last, the newest first.
func (d *Dir) KnownRoots() ([]KnownRoot, error) { return d.readRoots() }

// Evidence is what is known about a directory besides the record of restore roots. All fields
// except Leads may be nil.
type Evidence struct {
	// Leads reports whether a path still leads to the directory, for example through another mount:
	// then the directory was not moved from there.
	Leads func(path string) bool
	// Has reports whether there is a history under a name.
	Has func(name string) bool
	// Past returns the name under which this directory has a history, or "". It ignores the names
	// others, which belong to other directories.
	Past func(others []string) string
}

// A Histories is a store with the histories of restore roots, such as the store of snapshots.
type Histories interface {
	// Has reports whether anything is kept under a name.
	Has(name string) bool
	// KnownAs returns the name under which a directory has a history, ignoring the names others.
	KnownAs(dir pathsafe.Stat, others []string) (name string, err error)
}

// EvidenceOf returns the evidence for a directory with an identity: the file system reports where a
// path leads, and kept, unless it is nil, has the histories.
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

// leadsTo reports whether a path leads to the directory with an identity.
func leadsTo(path, id string) bool {
	dir, err := pathsafe.OpenRoot(path)
	if err != nil {
		return false
	}
	defer dir.Close()
	is, err := dir.Identity()
	return err == nil && is == id
}

// An EnteredRoot is a restore root as recorded.
type EnteredRoot struct {
	Name string // the path under which its records are kept
	From string // its previous path, if it was moved, else ""
	// WasLost: the record did not have the name, although there is a history under it.
	WasLost bool
}

// EnterRoot is [Dir.RootName] of a directory whose identity is known, and records its path unless
// look is set. A directory that was moved keeps its history. A name that the record has lost is
// taken from the history.
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

// FindRoot returns the path under which the records of the restore root at a path are kept, by the
// identity of the directory: it may have been moved. It records the present path unless look is
// set. If the directory cannot be opened, the path decides. kept may be nil.
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

// MovedRoot returns where the restore root was last found whose records are kept under a name that
// is not the path of another root, or "".
func (d *Dir) MovedRoot(name string) (path string) {
	all, _ := d.readRoots() // an unreadable record is treated as empty
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

// RootAround returns the path of the innermost known restore root that contains a real path, or "".
func (d *Dir) RootAround(real string) (path string) {
	all, _ := d.readRoots() // an unreadable record is treated as empty
	for _, r := range all {
		if pathsafe.IsWithin(real, r.Path) && len(r.Path) > len(path) {
			path = r.Path
		}
	}
	return path
}

// past returns the name of a directory by its history, if the record does not know the directory or
// knows it by a name without history; otherwise it returns name.
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

// nameOf returns the name of a restore root, and whether its identity is recorded. The identity
// comes first. A directory that is not recorded takes over the history last found at its path,
// unless that belongs to a directory that was moved away.
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

// readLines returns the lines in the last most bytes of a file of the state directory, or none if
// there is no such file.
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

// appendLine appends a JSON value as a line to a file of the state directory, durably, and closes
// it. If the last line is incomplete, it is ended first.
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
