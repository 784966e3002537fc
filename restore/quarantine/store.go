package quarantine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/internal/hexdigits"
	"github.com/spectrumfs/spectrum/internal/sys"
	"github.com/spectrumfs/spectrum/pathsafe"
)

// Log receives each change before it is made. When it fails the change is not
// made. It is called while the store is locked, and must not use it.
type Log func(Change) error

// Store is the records of a directory. Several may be open on one directory, in
// one process or in many, and each may be used by several goroutines at once.
type Store struct {
	dir      *pathsafe.Dir
	log      Log
	patience time.Duration
}

// patience is how long a locked store is waited for. The holder writes one record; a stopped
// holder must not block all others forever.
const patience = time.Minute

// Open opens the store in a directory that is there: an absolute path, no link,
// of this user, and closed to others.
func Open(path string, log Log) (*Store, error) {
	dir, err := openPrivate(path)
	if err != nil {
		return nil, fmt.Errorf("quarantine: directory %q: %w", path, err)
	}
	return &Store{dir, log, patience}, nil
}

// In is [Open] for a directory that is open. It belongs to the store, unless there is an
// error.
func In(dir *pathsafe.Dir, log Log) (*Store, error) {
	if err := checkPrivate(dir); err != nil {
		return nil, fmt.Errorf("quarantine: directory %q: %w", dir.Name(), err)
	}
	return &Store{dir, log, patience}, nil
}

func openPrivate(path string) (*pathsafe.Dir, error) {
	if !filepath.IsAbs(path) {
		return nil, errors.New("its path is not absolute")
	}
	parent, err := pathsafe.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	dir, err := parent.OpenDir(filepath.Base(path))
	if err != nil {
		return nil, err
	}
	if err := checkPrivate(dir); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return dir, nil
}

func checkPrivate(dir *pathsafe.Dir) error {
	st, err := dir.Stat()
	switch {
	case err != nil:
		return err
	case int(st.UID) != os.Geteuid():
		return errors.New("it belongs to another user")
	case st.Perm&0o077 != 0:
		return fmt.Errorf("mode %04o allows access by other users; it must be 0700", st.Perm)
	}
	return nil
}

// Close closes the directory.
func (s *Store) Close() error { return s.dir.Close() }

// Update receives all that is computed of a candidate now. It holds what is new,
// clears what is no longer found, leaves alone what is sticky, and returns what
// holds the candidate, in the order of section 12, and what it has changed.
func (s *Store) Update(ctx context.Context, c Candidate, found []Finding) (held []Mark, changed []Change, err error) {
	if err := checkAll(c, found, false); err != nil {
		return nil, nil, err
	}
	after, changed, err := s.change(ctx, c, func(r *Record, now time.Time) []Change { return r.update(found, now) })
	if err != nil {
		return nil, nil, err
	}
	return after.Held(), changed, nil
}

// Held is what [Store.Update] would return, and changes nothing. A mark that is
// not kept yet is as old as the question.
func (s *Store) Held(ctx context.Context, c Candidate, found []Finding) ([]Mark, error) {
	if err := checkAll(c, found, false); err != nil {
		return nil, err
	}
	var r Record
	err := s.locked(ctx, func(l listing) error {
		v, err := l.load(c.Source)
		r = v.Record
		return err
	})
	if err != nil {
		return nil, err
	}
	r.update(found, now())
	return r.Held(), nil
}

// Hold keeps a sticky finding. One that holds already is one; one that was
// released holds again.
func (s *Store) Hold(ctx context.Context, c Candidate, f Finding) error {
	if err := checkAll(c, []Finding{f}, true); err != nil {
		return err
	}
	_, _, err := s.change(ctx, c, func(r *Record, now time.Time) []Change { return r.hold(f, now) })
	return err
}

// Release ends, for a reason, all that holds a candidate now, and returns the
// candidate with these marks, in the order of section 12. It is named as for
// [Store.Show]; the error can also be [ErrReason] or [ErrNotHeld].
func (s *Store) Release(ctx context.Context, source, reason string) (Record, error) {
	if err := checkReason(reason); err != nil {
		return Record{}, fmt.Errorf("quarantine: %w", err)
	}
	var released Record
	err := s.locked(ctx, func(l listing) error {
		v, err := resolve(l, source)
		if err != nil {
			return err
		}
		released.Candidate = v.Candidate
		changed := v.release(Release{reason, operator(), now()})
		if len(changed) == 0 {
			return fmt.Errorf("candidate %s: %w", v.Source, ErrNotHeld)
		}
		for _, c := range changed {
			released.Marks = append(released.Marks, c.Mark)
		}
		return s.write(l, v, changed)
	})
	if err != nil {
		return Record{}, err
	}
	return Record{released.Candidate, inOrder(released.Marks)}, nil
}

// List returns all records, by source id.
func (s *Store) List(ctx context.Context) ([]Record, error) {
	var records []Record
	err := s.locked(ctx, func(l listing) error {
		sources, err := l.sources("")
		if err != nil {
			return err
		}
		for _, source := range sources {
			v, err := l.load(source)
			if err != nil {
				return err
			}
			records = append(records, v.Record)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return records, nil
}

// Show returns the record of a candidate. It is named by its source id, or by the
// first 4 or more digits of it; the error can be [ErrUnknown] or [ErrAmbiguous].
func (s *Store) Show(ctx context.Context, source string) (Record, error) {
	var v version
	err := s.locked(ctx, func(l listing) (err error) {
		v, err = resolve(l, source)
		return err
	})
	if err != nil {
		return Record{}, err
	}
	return v.Record, nil
}

// resolve reads the record of the candidate that is meant.
func resolve(l listing, source string) (version, error) {
	if len(source) < hexdigits.Least || len(source) > sourceLen || !hexdigits.Only(source) {
		return version{}, fmt.Errorf("%.100q is neither a source id of %d lower-case hex digits nor the first %d or more of one: %w", source, sourceLen, hexdigits.Least, ErrUnknown)
	}
	sources, err := l.sources(source)
	switch {
	case err != nil:
		return version{}, err
	case len(sources) == 0:
		return version{}, fmt.Errorf("candidate %s: %w", source, ErrUnknown)
	case len(sources) > 1:
		return version{}, fmt.Errorf("candidate %s: %w", source, ErrAmbiguous)
	}
	return l.load(sources[0])
}

// checkAll requires a candidate and findings that are all sticky, or none of them.
func checkAll(c Candidate, found []Finding, sticky bool) error {
	if err := c.check(); err != nil {
		return fmt.Errorf("quarantine: %w", err)
	}
	for _, f := range found {
		err := f.check()
		if err == nil && f.Rule.sticky() != sticky {
			err = fmt.Errorf("rule %s does not make findings of this kind", f.Rule)
		}
		if err != nil {
			return fmt.Errorf("quarantine: %w", err)
		}
	}
	return nil
}

// locked runs do with the content of the directory, under a lock that excludes other writers.
func (s *Store) locked(ctx context.Context, do func(listing) error) error {
	dir, err := s.lock(ctx)
	if err != nil {
		return fmt.Errorf("quarantine: %w", err)
	}
	defer dir.Close()
	l, err := list(dir)
	if err == nil {
		err = do(l)
	}
	if err != nil {
		return fmt.Errorf("quarantine: %w", err)
	}
	return nil
}

// lock returns a handle of its own on the directory, which holds the lock.
func (s *Store) lock(ctx context.Context) (*pathsafe.Dir, error) {
	dir, err := s.dir.Reopen()
	if err != nil {
		return nil, err
	}
	if err := sys.Await(ctx, s.patience, dir.TryLock); err != nil {
		dir.Close()
		return nil, err
	}
	return dir, nil
}

// change makes the changes of edit to the record of a candidate, and returns the result. An
// existing record that does not change is made durable: the process that wrote it may have
// been killed before.
func (s *Store) change(ctx context.Context, c Candidate, edit func(*Record, time.Time) []Change) (Record, []Change, error) {
	var v version
	var changed []Change
	err := s.locked(ctx, func(l listing) (err error) {
		if v, err = l.load(c.Source); err != nil {
			return err
		}
		v.Candidate = c.text()
		changed = edit(&v.Record, now())
		switch {
		case len(changed) > 0:
			return s.write(l, v, changed)
		case v.Version > 0:
			return l.dir.Sync()
		}
		return nil
	})
	if err != nil {
		return Record{}, nil, err
	}
	return v.Record, changed, nil
}

// write logs changes, and then makes them.
func (s *Store) write(l listing, v version, changed []Change) error {
	next, raw, err := v.next()
	if err != nil {
		return err
	}
	for _, c := range changed {
		if err := s.log(c); err != nil {
			return fmt.Errorf("logging the change of candidate %s: %w", v.Source, err)
		}
	}
	return l.write(next, raw)
}

// now is the time as a record holds it.
func now() time.Time { return time.Now().UTC().Round(0) }

// operator is the user that runs this program.
func operator() string {
	uid := strconv.Itoa(os.Getuid())
	if u, err := user.LookupId(uid); err == nil && u.Username != "" {
		return strings.ToValidUTF8(u.Username, "\ufffd")
	}
	return "uid " + uid
}
