package quarantine

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// RecordError names a record that cannot be read or is not as it was written. Its
// candidate counts as held.
type RecordError struct {
	Source string // the candidate; "" when the name does not tell
	Path   string // of the file
	Err    error
}

// Error names the record.
func (e *RecordError) Error() string {
	return fmt.Sprintf("quarantine record %q, whose candidate is treated as held: %v", e.Path, e.Err)
}

// Unwrap returns the cause.
func (e *RecordError) Unwrap() error { return e.Err }

// suffix ends the name of a record.
const suffix = ".json"

func fileName(source string, version int64) string {
	return fmt.Sprintf("%s.%d%s", source, version, suffix)
}

// parseName reads what [fileName] writes.
func parseName(name string) (source string, version int64, ok bool) {
	source, rest, _ := strings.Cut(name, ".")
	version, err := strconv.ParseInt(strings.TrimSuffix(rest, suffix), 10, 64)
	if err != nil || version < 1 || !isSource(source) || fileName(source, version) != name {
		return "", 0, false
	}
	return source, version, true
}

// listing has the names in the directory of a store, in byte order. Names that
// begin with a dot are files that never became records.
type listing struct {
	dir   *pathsafe.Dir
	names []string
}

func list(dir *pathsafe.Dir) (listing, error) {
	names, err := dir.Names()
	if err != nil {
		return listing{}, err
	}
	return listing{dir, slices.DeleteFunc(names, func(name string) bool { return strings.HasPrefix(name, ".") })}, nil
}

// of are the names that begin with a prefix.
func (l listing) of(prefix string) []string {
	i, _ := slices.BinarySearch(l.names, prefix)
	n := slices.IndexFunc(l.names[i:], func(name string) bool { return !strings.HasPrefix(name, prefix) })
	if n < 0 {
		return l.names[i:]
	}
	return l.names[i : i+n]
}

// sources are the candidates that have records whose names begin with a prefix.
func (l listing) sources(prefix string) (sources []string, err error) {
	for _, name := range l.of(prefix) {
		source, _, ok := parseName(name)
		if !ok {
			return nil, l.damaged("", name, errors.New("not the name of a record"))
		}
		sources = append(sources, source)
	}
	return slices.Compact(sources), nil
}

func (l listing) damaged(source, name string, err error) error {
	return &RecordError{source, filepath.Join(l.dir.Name(), name), err}
}

// load reads the record of a candidate: of version 0, and without a mark, if
// there is none.
func (l listing) load(source string) (version, error) {
	highest := int64(0)
	for _, name := range l.of(source) {
		_, n, ok := parseName(name)
		if !ok {
			return version{}, l.damaged(source, name, errors.New("not the name of a record"))
		}
		highest = max(highest, n)
	}
	if highest == 0 {
		return version{Record: Record{Candidate: Candidate{Source: source}}}, nil
	}
	name := fileName(source, highest)
	v, err := read(l.dir, name)
	if err == nil && (v.Source != source || v.Version != highest) {
		err = fmt.Errorf("it is version %d of candidate %q", v.Version, v.Source)
	}
	if err != nil {
		return version{}, l.damaged(source, name, err)
	}
	return v, nil
}

func read(dir *pathsafe.Dir, name string) (version, error) {
	f, _, err := dir.Open(name)
	if err != nil {
		return version{}, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxRecord+1))
	if err != nil {
		return version{}, err
	}
	if len(raw) > maxRecord {
		return version{}, fmt.Errorf("it has more than %d bytes", maxRecord)
	}
	return parse(raw)
}

// write makes the file of a version durable, and then removes those before it.
// One that cannot be removed is not a record any more, and the next version tries
// again.
func (l listing) write(v version, raw []byte) error {
	if err := l.dir.WriteFile(fileName(v.Source, v.Version), raw, 0o600); err != nil {
		return err
	}
	if err := l.dir.Sync(); err != nil {
		return err
	}
	for _, name := range l.of(v.Source) {
		_ = l.dir.Unlink(name)
	}
	return nil
}
