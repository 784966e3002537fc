package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

// Find opens the existing state directory, or returns fs.ErrNotExist; it creates nothing. It
// rejects what [Open] rejects.
func Find(path string) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	d, err := openThere(path)
	if err != nil {
		return nil, fmt.Errorf("state directory %q: %w", path, err)
	}
	return d, nil
}

// Halts returns the attempts whose rollback is known to have failed, in the order of their names.
func (d *Dir) Halts() ([]string, error) {
	dir, err := d.root.OpenDir(halts)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, d.part(halts, err)
	}
	defer dir.Close()
	return dir.Names()
}

// ReadAuditLog opens the audit log for reading only, or returns fs.ErrNotExist.
func (d *Dir) ReadAuditLog() (*os.File, error) {
	f, _, err := d.root.Open(auditLog)
	return f, err
}

// Exposed is a file or directory that is accessible to others, or an entry in place of a file.
type Exposed struct {
	Path string
	UID  uint32
	Perm uint32 // st_mode & 07777
	Odd  bool   // it is not a regular file, and every command rejects it
}

// secrets are the files that are for the operator's eyes only.
var secrets = []string{auditLog, CandidatesLog, hostKey, JournalKeyName, operatorKey, RootsLog, viewLog}

// Exposed returns the directory's own files that belong to another user, that others can read or
// write, or that are not regular files, in the order of their names.
func (d *Dir) Exposed() ([]Exposed, error) {
	var found []Exposed
	for _, name := range secrets {
		st, err := d.root.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if odd := !st.Mode.IsRegular(); odd || st.Perm&0o077 != 0 || int(st.UID) != os.Geteuid() {
			found = append(found, Exposed{filepath.Join(d.path, name), st.UID, st.Perm, odd})
		}
	}
	return found, nil
}

// parts are the directories of the state directory, except those of savepoints, snapshots and halts
// by rollbacks, which are checked elsewhere.
var parts = []string{attempts, derived, fetched, halts, layers, previews, pushed, "quarantine", rolledBack, "trust"}

// Misplaced returns an error for each directory that is not one or that this user may not use, each
// count of attempts that is not a file, and a malformed journal key. Commands that need them fail
// until they are moved away.
func (d *Dir) Misplaced() (all []*PartError) {
	for _, name := range parts {
		if st, err := d.root.Lstat(name); err == nil && !st.Mode.IsDir() {
			all = append(all, &PartError{filepath.Join(d.path, name), name, int(st.UID), fmt.Errorf("%q: %w", name, unix.ENOTDIR)})
		} else if err == nil && d.isShut(name) {
			all = append(all, &PartError{filepath.Join(d.path, name), name, int(st.UID), fmt.Errorf("%q: %w", name, fs.ErrPermission)})
		}
	}
	all = append(all, d.oddCounts()...)
	_, err := d.readJournalKey()
	if st, unknown := d.root.Lstat(JournalKeyName); unknown == nil && err != nil && !errors.Is(err, fs.ErrPermission) {
		all = append(all, &PartError{filepath.Join(d.path, JournalKeyName), JournalKeyName, int(st.UID), err})
	}
	return all
}

// isShut reports whether this user may not read a directory, or not write in it.
func (d *Dir) isShut(name string) bool {
	dir, err := d.root.OpenDir(name)
	if err == nil {
		defer dir.Close()
		err = dir.Writable()
	}
	return errors.Is(err, fs.ErrPermission)
}

// Nearest returns the path itself, or its nearest existing parent, in which a missing state
// directory would be created.
func Nearest(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	for ; ; path = filepath.Dir(path) {
		way, err := pathsafe.WayTo(path)
		if err != nil || !way.Missing { // "/" always exists
			return path, err
		}
	}
}
