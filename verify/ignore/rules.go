package ignore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// File is the name of the files that are read.
const File = ".spectrumignore"

// MaxFile is the size in bytes of the largest such file.
const MaxFile = 1 << 20

// A FileError is a file that cannot be read, or has a line that is not a pattern.
type FileError struct {
	Path string // beneath the root, in slashes
	err  error
}

func (e *FileError) Error() string { return fmt.Sprintf("%q: %v", e.Path, e.err) }
func (e *FileError) Unwrap() error { return e.err }

// Rules decide what is excluded beneath a root. They are not safe for concurrent use.
type Rules struct {
	root  *pathsafe.Dir
	given []pattern
	files map[string][]pattern // by directory, "." is the root
}

// New returns the rules of a root, with patterns that decide before those of files.
func New(root *pathsafe.Dir, given []string) (*Rules, error) {
	r := &Rules{root: root, files: map[string][]pattern{}}
	for _, text := range given {
		p, says, err := parseLine(text)
		if err != nil {
			return nil, err
		}
		if !says {
			return nil, fmt.Errorf("%w: %.100q is empty or a comment", ErrPattern, text)
		}
		r.given = append(r.given, p)
	}
	return r, nil
}

// A Reason is why a path is excluded.
type Reason string

// The reasons. The empty one means that the path is not excluded.
const (
	ByGiven Reason = "given"
	ByFile  Reason = "file"
)

// Match returns the reason for which a path beneath the root, in slashes, is left out. Its
// parent directories must not be left out.
func (r *Rules) Match(name string, isDir bool) (Reason, error) {
	if out, decided := decide(r.given, name, isDir); decided {
		return reasonIf(out, ByGiven), nil
	}
	for dir := path.Dir(name); ; dir = path.Dir(dir) {
		patterns, err := r.of(dir)
		if err != nil {
			return "", err
		}
		if out, decided := decide(patterns, strings.TrimPrefix(name, dir+"/"), isDir); decided {
			return reasonIf(out, ByFile), nil
		}
		if dir == "." {
			return "", nil
		}
	}
}

func reasonIf(out bool, reason Reason) Reason {
	if !out {
		return ""
	}
	return reason
}

// decide returns the decision of the last matching pattern.
func decide(patterns []pattern, name string, isDir bool) (out, decided bool) {
	for i := len(patterns) - 1; i >= 0; i-- {
		if patterns[i].match(name, isDir) {
			return !patterns[i].negated, true
		}
	}
	return false, false
}

// of returns the patterns of the file in a directory.
func (r *Rules) of(dir string) ([]pattern, error) {
	if patterns, known := r.files[dir]; known {
		return patterns, nil
	}
	name := path.Join(dir, File)
	patterns, err := r.read(name)
	if err != nil {
		return nil, &FileError{name, err}
	}
	r.files[dir] = patterns
	return patterns, nil
}

// Enter reads the file of a directory that is open, at a path beneath the root ("" is the root
// itself), so that [Rules.Match] need not look for it by that path.
func (r *Rules) Enter(path string, dir *pathsafe.Dir) error {
	key := path
	if key == "" {
		key = "."
	}
	if _, known := r.files[key]; known {
		return nil
	}
	f, _, err := dir.Open(File)
	patterns, err := readOpened(f, err)
	if err != nil {
		return &FileError{strings.TrimPrefix(path+"/"+File, "/"), err}
	}
	r.files[key] = patterns
	return nil
}

// Lacks notes that a directory, at a path beneath the root ("." is the root itself), has no such
// file, whatever is at its name.
func (r *Rules) Lacks(dir string) { r.files[dir] = nil }

func (r *Rules) read(name string) ([]pattern, error) {
	p, err := pathsafe.Found(name)
	if err != nil {
		return nil, err
	}
	f, _, err := r.root.OpenRegular(p, pathsafe.NoLinks)
	return readOpened(f, err)
}

// readOpened reads a file that was opened, or not with this error.
func readOpened(f *os.File, err error) ([]pattern, error) {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, pathsafe.ErrTooLong) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err == nil && len(raw) > MaxFile {
		err = fmt.Errorf("it has more than %d bytes", MaxFile)
	}
	if err != nil {
		return nil, err
	}
	return parse(string(raw))
}

// parse reads the lines of a file.
func parse(text string) ([]pattern, error) {
	var patterns []pattern
	n := 0
	for line := range strings.SplitSeq(strings.TrimPrefix(text, "\ufeff"), "\n") {
		n++
		p, says, err := parseLine(strings.TrimSuffix(line, "\r"))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if says {
			patterns = append(patterns, p)
		}
	}
	return patterns, nil
}
