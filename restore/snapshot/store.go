package snapshot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/internal/hexdigits"
	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/internal/sys"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify"
)

// The directories of a store.
const (
	objectsName  = "objects"
	rootsName    = "roots"
	incomingName = "incoming"
)

// Store is a directory of snapshots. It may be used by several goroutines and
// processes at once.
type Store struct {
	path     string
	sysHook  *sysHook
	base     dir
	objects  dir
	roots    dir
	incoming dir
	own      []pathsafe.ID // the store and the directory that it is in
	leases   leases
	division division
}

// Open opens a store: the absolute path of an existing directory that no other user may write.
// It makes the missing parts.
func Open(path string) (*Store, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("snapshots in %q: not an absolute path", path)
	}
	s, err := open(filepath.Clean(path))
	if err != nil {
		return nil, fmt.Errorf("snapshots in %q: %w", path, err)
	}
	return s, nil
}

func open(path string) (*Store, error) {
	above, err := pathsafe.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer above.Close()
	base, err := pathsafe.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return openIn(above, base)
}

// In opens the store in a directory that is open and stands in above. It belongs to the
// store; above stays the caller's.
func In(above, dir *pathsafe.Dir) (*Store, error) {
	s, err := openIn(above, dir)
	if err != nil {
		return nil, fmt.Errorf("snapshots in %q: %w", dir.Name(), err)
	}
	return s, nil
}

func openIn(above, base *pathsafe.Dir) (*Store, error) {
	s := &Store{path: base.Name(), sysHook: new(sysHook), division: usualDivision}
	s.base = on(base, s.sysHook)
	if err := s.openAll(above); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Store) openAll(above *pathsafe.Dir) error {
	for _, part := range []struct {
		name string
		into *dir
	}{{objectsName, &s.objects}, {rootsName, &s.roots}, {incomingName, &s.incoming}} {
		d, err := s.base.open(part.name)
		if errors.Is(err, fs.ErrNotExist) {
			d, err = s.base.makeDurable(part.name)
		}
		if err != nil {
			return err
		}
		*part.into = d
	}
	return s.know(above)
}

// know notes which directories no snapshot may hold.
func (s *Store) know(above *pathsafe.Dir) error {
	st, err := s.base.StatSelf()
	if err != nil {
		return err
	}
	s.own = append(s.own, st.ID)
	st, err = above.Stat()
	s.own = append(s.own, st.ID)
	return err
}

// Close closes the store. A snapshot that was found stays as it is.
func (s *Store) Close() error {
	for _, d := range []dir{s.objects, s.roots, s.incoming} {
		d.Close()
	}
	return s.base.H.Close()
}

// isOwn reports whether a directory is the store's or the one around it.
func (s *Store) isOwn(id pathsafe.ID) bool {
	return slices.ContainsFunc(s.own, func(own pathsafe.ID) bool { return own.Dev == id.Dev && own.Ino == id.Ino })
}

// share waits until no Prune is at work, and keeps one away until the result is
// closed.
func (s *Store) share(ctx context.Context) (dir, error) {
	return s.wait(ctx, (*pathsafe.Dir).TryLockShared)
}

func (s *Store) wait(ctx context.Context, try func(*pathsafe.Dir) error) (dir, error) {
	own, err := s.base.reopen()
	if err != nil {
		return dir{}, err
	}
	if err := s.sysHook.await(ctx, own, try); err != nil {
		own.Close()
		return dir{}, err
	}
	return own, nil
}

// await waits until d can be locked.
func (s *sysHook) await(ctx context.Context, d dir, try func(*pathsafe.Dir) error) error {
	return sys.Await(ctx, sys.Forever, func() error {
		return s.Do("lock", d.H.Name(), func() error { return try(d.H) })
	})
}

// keyOf is the name of a root's directory.
func keyOf(root string) string {
	sum := sha256.Sum256([]byte(root))
	return hex.EncodeToString(sum[:])
}

// damage makes a DamageError of what a reader found; a fault of the machine it
// leaves alone.
func damage(path string, names []string, err error) error {
	if verify.IsMachineFault(err) {
		return fmt.Errorf("snapshot store: %q: %w", path, err)
	}
	return &DamageError{Path: path, Names: names, Err: err}
}

// A chainDir is the directory with the manifests of a root, by name.
type chainDir struct {
	dir
	key   string
	store *Store
}

func (p chainDir) path(name string) string { return filepath.Join(rootsName, p.key, name) }

// enter opens the directory of a root; ok is false when it has no snapshot.
func (s *Store) enter(key string) (p chainDir, ok bool, err error) {
	if !isID(key) {
		return chainDir{}, false, damage(filepath.Join(rootsName, key), nil, errors.New("not the path of a root"))
	}
	d, err := s.roots.open(key)
	if errors.Is(err, fs.ErrNotExist) {
		return chainDir{}, false, nil
	}
	if err != nil {
		return chainDir{}, false, damage(filepath.Join(rootsName, key), nil, err)
	}
	return chainDir{d, key, s}, true, nil
}

// eachChain visits the places of all roots, in the order of their names.
func (s *Store) eachChain(visit func(chainDir) error) (damaged []*DamageError, err error) {
	keys, err := s.roots.Names()
	if err != nil {
		return nil, err
	}
	return s.visit(keys, visit)
}

// visit visits the places of these keys. What is not one is damage.
func (s *Store) visit(keys []string, visit func(chainDir) error) (damaged []*DamageError, err error) {
	for _, key := range keys {
		p, ok, err := s.enter(key)
		d, fault := asDamage(err)
		switch {
		case fault != nil:
			return nil, fault
		case d != nil:
			damaged = append(damaged, d)
		case ok:
			err = visit(p)
			p.Close()
		}
		if d == nil && err != nil {
			return nil, err
		}
	}
	return damaged, nil
}

// last returns the place in the chain and the ID of the newest snapshot, as the names of the
// manifests have them: none of them has to be read. It returns 0 where there is none.
func (p chainDir) last() (sequence int64, id string, err error) {
	names, err := p.Names()
	if err != nil {
		return 0, "", err
	}
	for _, name := range slices.Sorted(slices.Values(names)) {
		if n, of, err := parseName(name); err == nil && n >= sequence {
			sequence, id = n, of
		}
	}
	return sequence, id, nil
}

// survey returns the headers of the manifests in it, oldest first, and what cannot be
// read as one.
func (p chainDir) survey() (all []Header, damaged []*DamageError, err error) {
	names, err := p.Names()
	if err != nil {
		return nil, nil, err
	}
	all = make([]Header, 0, len(names))
	for _, name := range names {
		h, err := readHeader(p.dir, name)
		if err == nil && keyOf(h.Root) != p.key {
			err = errors.New("it is of another root")
		}
		if errors.Is(err, fs.ErrNotExist) { // pruned meanwhile
			continue
		}
		if err == nil {
			all = append(all, h)
			continue
		}
		if machine.IsUnreadable(err) { // as long as it is not the one that is needed
			damaged = append(damaged, &DamageError{Path: p.path(name), Err: err})
			continue
		}
		d, err := asDamage(damage(p.path(name), nil, err))
		if err != nil {
			return nil, nil, err
		}
		damaged = append(damaged, d)
	}
	slices.SortFunc(all, func(a, b Header) int { return strings.Compare(a.fileName(), b.fileName()) })
	return all, damaged, nil
}

// load reads the snapshot whose manifest has this name.
func (p chainDir) load(name string) (*Snapshot, error) {
	m, err := p.manifest(name)
	if err != nil {
		return nil, err
	}
	return p.complete(m)
}

// manifest reads the manifest that has this name, but for its parts.
func (p chainDir) manifest(name string) (*manifest, error) {
	m, err := readManifest(p.dir, name)
	if err == nil && keyOf(m.header.Root) != p.key {
		err = errors.New("it is of another root")
	}
	if err != nil {
		return nil, damage(p.path(name), nil, err)
	}
	return m, nil
}

// complete reads the parts of a manifest. Damage of one is that of the manifest.
func (p chainDir) complete(m *manifest) (*Snapshot, error) {
	snap, err := p.store.complete(m)
	if err != nil {
		return nil, p.damagedPart(&m.header, err)
	}
	return snap, nil
}

// damagedPart makes of an error of reading the parts of a manifest that of the manifest. Parts that
// are gone because the snapshot was pruned meanwhile are not damage of their own.
func (p chainDir) damagedPart(h *Header, err error) error {
	if _, gone := p.Stat(h.fileName()); errors.Is(gone, fs.ErrNotExist) {
		return damage(p.path(h.fileName()), nil, gone)
	}
	unreadable := machine.IsUnreadable(err) // a part of the disk, which others are not in
	if err = damage(p.path(h.fileName()), nil, err); unreadable {
		err = &DamageError{Path: p.path(h.fileName()), Err: err}
	}
	if d, is := errors.AsType[*DamageError](err); is {
		if bad, is := errors.AsType[*partError](d.Err); is {
			d.Part, d.Root = bad.path, h.Root
		}
	}
	return err
}

// List returns the headers of the snapshots of a root, or of all roots when root
// is "", oldest first. It reads nothing else; that a manifest hashes to its ID
// is for Find to see. One that cannot be read is a [*DamageError].
func (s *Store) List(root string) ([]Header, error) {
	all, damaged, err := s.Survey(root)
	if err := orDamage(err, damaged); err != nil {
		return nil, err
	}
	return all, nil
}

// orDamage returns the error, or else the first damage, for callers that skip none.
func orDamage(err error, damaged []*DamageError) error {
	if err == nil && len(damaged) > 0 {
		return damaged[0]
	}
	return err
}

// Newest returns the ID of the newest snapshot of a root, by the names of the manifests: none
// of them is read. It is "" where there is none.
func (s *Store) Newest(root string) (string, error) {
	p, ok, err := s.enter(keyOf(filepath.Clean(root)))
	if err != nil || !ok {
		return "", err
	}
	defer p.Close()
	_, id, err := p.last()
	return id, err
}

// Survey is List, and returns the intact snapshots also if others are damaged: what
// cannot be read is returned beside them.
func (s *Store) Survey(root string) (all []Header, damaged []*DamageError, err error) {
	read := func(p chainDir) error {
		some, strange, err := p.survey()
		all, damaged = append(all, some...), append(damaged, strange...)
		return err
	}
	if root == "" {
		strange, err := s.eachChain(read)
		if err != nil {
			return nil, nil, err
		}
		return byTime(all), append(damaged, strange...), nil
	}
	p, ok, err := s.enter(keyOf(filepath.Clean(root)))
	if err != nil || !ok {
		return nil, nil, err
	}
	defer p.Close()
	if err := read(p); err != nil {
		return nil, nil, err
	}
	return all, damaged, nil
}

// byTime merges the snapshots of several roots, those of a root together and in their order,
// by their times. The order within a root stays, whatever the clock did.
func byTime(all []Header) []Header {
	latest := make(map[string]time.Time, len(all)) // of each root so far
	at := make(map[string]time.Time, len(all))     // by ID
	for _, h := range all {
		if h.Time.After(latest[h.Root]) {
			latest[h.Root] = h.Time
		}
		at[h.ID] = latest[h.Root]
	}
	slices.SortStableFunc(all, func(a, b Header) int { return at[a.ID].Compare(at[b.ID]) })
	return all
}

// Find reads a snapshot by its ID, or by four or more of its first digits. The
// error is fs.ErrNotExist when there is none, ErrAmbiguous when there are
// several, and a [*DamageError] when it is damaged. Damage beside it is ignored.
func (s *Store) Find(id string) (*Snapshot, error) {
	if len(id) < hexdigits.Least || !hexdigits.Only(id) {
		return nil, notAnID(fmt.Sprintf("%.100q is not the id of a snapshot, nor %d of its digits", id, hexdigits.Least))
	}
	var found *Snapshot
	_, err := s.eachChain(func(p chainDir) error {
		names, err := p.Names()
		if err != nil {
			return err
		}
		for _, name := range names {
			_, full, err := parseName(name)
			if err != nil || !strings.HasPrefix(full, id) {
				continue
			}
			if found != nil {
				return fmt.Errorf("snapshot %q: %w", id, ErrAmbiguous)
			}
			if found, err = p.load(name); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && found == nil {
		err = fmt.Errorf("snapshot %.100q: %w", id, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	return found, nil
}

// A notAnID reports a text that cannot be the ID of a snapshot: it is [fs.ErrNotExist].
type notAnID string

func (e notAnID) Error() string        { return string(e) }
func (e notAnID) Is(target error) bool { return target == fs.ErrNotExist }
