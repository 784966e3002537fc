package savepoint

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/internal/hexdigits"
	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

// Store is the directory of all savepoints.
type Store struct {
	path string
	dir  *pathsafe.Dir
}

// Open opens a store: the absolute path of an existing directory that no other user may write.
func Open(path string) (*Store, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("savepoints in %q: not an absolute path", path)
	}
	dir, err := pathsafe.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("savepoints in %q: %w", path, err)
	}
	return &Store{filepath.Clean(path), dir}, nil
}

// In is the store in a directory that is open, by an absolute path, and that no other user
// may write. It belongs to the store.
func In(dir *pathsafe.Dir) *Store { return &Store{dir.Name(), dir} }

// Close closes the store. Savepoints can be read after it.
func (s *Store) Close() error { return s.dir.Close() }

// ErrAmbiguous reports a prefix of several savepoints.
var ErrAmbiguous = errors.New("ambiguous savepoint ID prefix")

// Tip is the active savepoint of a restore root, and whether there is one. Of the
// chain it reads nothing else.
func (s *Store) Tip(root string) (Savepoint, bool, error) {
	c, err := s.enter(root)
	if err != nil || c == nil {
		return Savepoint{}, false, err
	}
	defer c.close()
	return c.tip()
}

// List is the savepoints of a restore root, the oldest first. Those of all roots,
// when root is "", are in the order of the roots' paths.
func (s *Store) List(root string) ([]Savepoint, error) {
	return s.ofRoots(root, (*chain).list)
}

// Survey is what can be read of the savepoints of a root, or of all, and what cannot.
type Survey struct {
	Standing []Savepoint // of the chains, the oldest first
	Retired  []Savepoint // see [Store.Retired]
	Damaged  []*DamageError
}

// Survey is List and Retired, and returns the intact savepoints also if others are damaged.
// Those of all roots, when root is "", are in the order of the roots' directories.
func (s *Store) Survey(root string) (Survey, error) {
	if root != "" {
		key, _, err := keyOf(root)
		if err != nil {
			return Survey{}, err
		}
		return s.surveyKeys(key)
	}
	keys, err := s.dir.Names()
	if err != nil {
		return Survey{}, fmt.Errorf("savepoints in %q: %w", s.path, err)
	}
	slices.Sort(keys)
	return s.surveyKeys(keys...)
}

func (s *Store) surveyKeys(keys ...string) (Survey, error) {
	var all Survey
	for _, key := range keys {
		found, damaged, err := s.foundIn(key)
		if err != nil {
			return Survey{}, err
		}
		all.Damaged = append(all.Damaged, damaged...)
		for _, f := range found {
			switch {
			case f.damage != nil:
				all.Damaged = append(all.Damaged, f.damage)
			case f.where == retired:
				all.Retired = append(all.Retired, f.sp)
			default:
				all.Standing = append(all.Standing, f.sp)
			}
		}
	}
	return all, nil
}

// foundIn returns the savepoints in the place of a root, and the other entries. Where the
// disk does not give something back it looks twice: a fault that passes must cost no savepoint.
func (s *Store) foundIn(key string) ([]found, []*DamageError, error) {
	all, damaged, err := s.foundOnce(key)
	if isUnread(err) || slices.ContainsFunc(all, func(f found) bool { return f.damage != nil && isUnread(f.damage) }) {
		return s.foundOnce(key)
	}
	return all, damaged, err
}

func (s *Store) foundOnce(key string) ([]found, []*DamageError, error) {
	var damaged *DamageError
	c, err := s.enterNamed(key)
	if errors.As(err, &damaged) {
		return nil, []*DamageError{damaged}, nil
	}
	if err != nil || c == nil {
		return nil, nil, err
	}
	defer c.close()
	return c.survey()
}

// ofRoots is what one root's directory has, or those of all roots when root is "".
func (s *Store) ofRoots(root string, list func(*chain) ([]Savepoint, error)) ([]Savepoint, error) {
	if root == "" {
		return s.ofAll(list)
	}
	c, err := s.enter(root)
	if err != nil || c == nil {
		return nil, err
	}
	defer c.close()
	return list(c)
}

func (s *Store) ofAll(list func(*chain) ([]Savepoint, error)) ([]Savepoint, error) {
	keys, err := s.dir.Names()
	if err != nil {
		return nil, fmt.Errorf("savepoints in %q: %w", s.path, err)
	}
	var all []Savepoint
	for _, key := range keys {
		some, err := s.ofKey(key, list)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	slices.SortStableFunc(all, func(a, b Savepoint) int { return strings.Compare(a.root, b.root) })
	return all, nil
}

// enterNamed is enterKey for a name that stands in the store.
func (s *Store) enterNamed(key string) (*chain, error) {
	if !hexdigits.Are(key, 2*sha256.Size) {
		return nil, damage(filepath.Join(s.path, key), errors.New("not the path of a restore root"))
	}
	return s.enterKey(key)
}

func (s *Store) ofKey(key string, list func(*chain) ([]Savepoint, error)) ([]Savepoint, error) {
	c, err := s.enterNamed(key)
	if err != nil || c == nil {
		return nil, err
	}
	defer c.close()
	return list(c)
}

// Find finds a savepoint by its ID, or by four or more of its first digits. The
// error is fs.ErrNotExist when there is none, ErrAmbiguous when there are
// several, and a [*DamageError] when any savepoint of the store is damaged.
func (s *Store) Find(id string) (Savepoint, error) {
	if len(id) < hexdigits.Least || !hexdigits.Only(id) {
		return Savepoint{}, fmt.Errorf("%.100q is not the id of a savepoint, nor %d of its digits: %w", id, hexdigits.Least, fs.ErrNotExist)
	}
	all, err := s.List("")
	if err != nil {
		return Savepoint{}, err
	}
	return pick(all, id)
}

// pick is the only one whose ID begins with this.
func pick(all []Savepoint, id string) (Savepoint, error) {
	all = slices.DeleteFunc(all, func(sp Savepoint) bool { return !strings.HasPrefix(sp.id, id) })
	switch len(all) {
	case 0:
		return Savepoint{}, fmt.Errorf("savepoint %.100q: %w", id, fs.ErrNotExist)
	case 1:
		return all[0], nil
	}
	return Savepoint{}, fmt.Errorf("savepoint %q: %w", id, ErrAmbiguous)
}

// Prepared is the name of the directory of a root's savepoints that are not published yet.
const Prepared = "prepared"

// The directories of a restore root's chain.
const (
	published = "chain"
	prepared  = Prepared
	retired   = "retired" // made when it is needed
)

// chain is the place of one restore root's savepoints.
type chain struct {
	key       string
	path      string // of its directory
	published *pathsafe.Dir
	prepared  *pathsafe.Dir
	retired   *pathsafe.Dir // nil while nothing was
}

func (c *chain) close() {
	for _, dir := range []*pathsafe.Dir{c.published, c.prepared, c.retired} {
		if dir != nil {
			dir.Close()
		}
	}
}

// keyOf is the name of a restore root's directory, and the root's cleaned path.
func keyOf(root string) (key, clean string, err error) {
	if !filepath.IsAbs(root) {
		return "", "", fmt.Errorf("restore root %q: not an absolute path", root)
	}
	clean = filepath.Clean(root)
	sum := sha256.Sum256([]byte(clean))
	return hex.EncodeToString(sum[:]), clean, nil
}

// enter opens the place of a restore root; nil when nothing was ever prepared.
func (s *Store) enter(root string) (*chain, error) {
	key, _, err := keyOf(root)
	if err != nil {
		return nil, err
	}
	return s.enterKey(key)
}

func (s *Store) enterKey(key string) (*chain, error) {
	c := &chain{key: key, path: filepath.Join(s.path, key)}
	dir, err := s.dir.OpenDir(key)
	if err == nil {
		defer dir.Close()
		c.published, err = dir.OpenDir(published)
	}
	if err == nil {
		c.prepared, err = dir.OpenDir(prepared)
	}
	if err == nil {
		c.retired, err = openIfThere(dir, retired)
	}
	if err == nil {
		return c, nil
	}
	c.close()
	if errors.Is(err, fs.ErrNotExist) && c.published == nil {
		return nil, nil
	}
	return nil, damage(c.path, err)
}

func openIfThere(parent *pathsafe.Dir, name string) (*pathsafe.Dir, error) {
	dir, err := parent.OpenDir(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return dir, err
}

// make makes the place of a restore root, durably, as far as it is missing.
func (s *Store) make(root string) (*chain, error) {
	key, _, err := keyOf(root)
	if err != nil {
		return nil, err
	}
	dir, err := makeDir(s.dir, key)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	// What stands last is what a reader looks for first.
	for _, name := range []string{prepared, published} {
		sub, err := makeDir(dir, name)
		if err != nil {
			return nil, err
		}
		sub.Close()
	}
	c, err := s.enterKey(key)
	if err == nil && c == nil { // another process removed it meanwhile
		err = fmt.Errorf("%q: %w", filepath.Join(s.path, key), unix.ENOENT)
	}
	return c, err
}

// makeDir makes a directory unless it exists, makes its name durable in either case, since the
// process that made it may have been killed, and opens it.
func makeDir(parent *pathsafe.Dir, name string) (*pathsafe.Dir, error) {
	if err := parent.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	dir, err := parent.OpenDir(name)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(dir.Sync(), parent.Sync()); err != nil {
		dir.Close()
		return nil, err
	}
	return dir, nil
}
