// Package statedir stores the operator's data that belongs to no single restore: the keys, the
// previews with the record of their use, and the directories of trust and quarantine.
//
// The directory has mode 0700. It is rejected if it is a symbolic link, belongs to another user or
// is accessible to other users, who could choose its content. It is also rejected if another user
// can rename it or a directory above it, since an empty replacement would have no pin, no halt and
// no approval. Files appear whole or not at all, and none is replaced.
package statedir

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"

	"github.com/google/uuid"
	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

// Default returns the default state directory: $XDG_STATE_HOME/spectrum, or
// ~/.local/state/spectrum. If HOME is not set, as at boot, it uses the home directory of the
// password database.
func Default() (string, error) {
	if base := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, "spectrum"), nil
	}
	home, err := homeDir()
	if err != nil {
		return "", fmt.Errorf("finding the state directory: %w", err)
	}
	return filepath.Join(home, ".local", "state", "spectrum"), nil
}

func homeDir() (string, error) {
	if home := os.Getenv("HOME"); home != "" {
		return home, nil
	}
	uid := strconv.Itoa(os.Geteuid())
	u, err := user.LookupId(uid)
	if err != nil {
		return "", fmt.Errorf("HOME is not set: %w", err)
	}
	if !filepath.IsAbs(u.HomeDir) {
		return "", fmt.Errorf("HOME is not set, and user %s has no home directory", uid)
	}
	return u.HomeDir, nil
}

// Reasons for which a state directory is rejected, besides [*ModeError] and errors of the system.
var (
	ErrLink    = errors.New("it is a symbolic link")
	ErrForeign = errors.New("it belongs to another user")
)

// A ModeError is a mode (st_mode & 07777) that gives other users access to the directory.
type ModeError struct{ Perm uint32 }

func (e *ModeError) Error() string {
	return fmt.Sprintf("mode %04o allows access by other users; it must be 0700", e.Perm)
}

// A ParentsError is returned for a state directory that other users can replace.
type ParentsError struct{ Loose []pathsafe.Loose } // not empty

func (e *ParentsError) Error() string {
	return "another user could replace the directory: " + e.Loose[0].String()
}

// Parents returns the names on the path of a state directory that other users can rename or
// replace. Missing parts of the path count as created by this user.
func Parents(path string) ([]pathsafe.Loose, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	way, err := pathsafe.WayTo(path)
	return way.Loose, err
}

// Dir is the state directory.
type Dir struct {
	path string
	root *pathsafe.Dir
}

// Open opens the state directory, and creates it if it is missing.
func Open(path string) (*Dir, error) {
	d, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("state directory %q: %w", path, err)
	}
	return d, nil
}

func open(path string) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	way, err := wayTo(path)
	if err != nil {
		return nil, err
	}
	if way.Missing {
		if len(way.Loose) > 0 { // nothing is created in a directory of others
			return nil, &ParentsError{way.Loose}
		}
		if err := makeAll(path); err != nil {
			return nil, err
		}
		return openThere(path)
	}
	return openBy(path, way)
}

// wayTo returns the way to an absolute path that is not itself a link, and sends no request to the
// server of another user.
func wayTo(path string) (pathsafe.Way, error) {
	way, err := pathsafe.WayTo(path)
	if err != nil {
		return pathsafe.Way{}, err
	}
	above, err := pathsafe.WayTo(filepath.Dir(path))
	if err == nil && way.Real != filepath.Join(above.Real, filepath.Base(path)) {
		err = ErrLink
	}
	return way, err
}

// makeAll makes a directory and those above it that are missing, each of them durably.
func makeAll(path string) error {
	way, err := pathsafe.WayTo(path)
	switch {
	case err == nil && !way.Missing && !way.End.Mode.IsDir():
		return &os.PathError{Op: "mkdir", Path: path, Err: unix.ENOTDIR}
	case err != nil || !way.Missing:
		return err
	}
	above := filepath.Dir(path)
	if err := makeAll(above); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	dir, err := pathsafe.OpenRoot(above)
	if errors.Is(err, fs.ErrPermission) {
		return nil // it can be written and searched, but not opened: nothing can sync it
	}
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// openThere opens the directory at an absolute path.
func openThere(path string) (*Dir, error) {
	way, err := wayTo(path)
	if err != nil {
		return nil, err
	}
	return openBy(path, way)
}

// openBy opens the directory by the way that led to it.
func openBy(path string, way pathsafe.Way) (*Dir, error) {
	if way.Missing {
		return nil, &fs.PathError{Op: "open", Path: path, Err: unix.ENOENT}
	}
	root, err := pathsafe.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	err = checkPrivate(root)
	if err == nil && len(way.Loose) > 0 { // another user can rename a name on the path
		err = &ParentsError{way.Loose}
	}
	if err == nil {
		err = way.LeadsTo(root)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return &Dir{path, root}, nil
}

func checkPrivate(root *pathsafe.Dir) error {
	st, err := root.Stat()
	switch {
	case err != nil:
		return err
	case int(st.UID) != os.Geteuid():
		return ErrForeign
	case st.Perm&0o077 != 0:
		return &ModeError{st.Perm}
	}
	return nil
}

// Path is the directory's absolute path.
func (d *Dir) Path() string { return d.path }

// Root is the directory, open until the Dir is closed.
func (d *Dir) Root() *pathsafe.Dir { return d.root }

// JournalKeyName is the name of the file of the key that journals are authenticated with.
const JournalKeyName = "journal.key"

// Other files in the state directory.
const (
	auditLog    = "audit.log"
	hostKey     = "host.pem"
	operatorKey = "key.pem"
	viewLog     = "view.log"
)

// KeyPath returns the default path of the operator's key.
func (d *Dir) KeyPath() string { return filepath.Join(d.path, operatorKey) }

// journalKeySize is the length of the journal key, in bytes.
const journalKeySize = 32

// JournalKey returns the key that authenticates the journals of commits. It creates the key at the
// first call.
func (d *Dir) JournalKey() ([]byte, error) {
	key, err := d.readJournalKey()
	if errors.Is(err, fs.ErrNotExist) {
		key, err = d.makeJournalKey()
	}
	if err != nil {
		return nil, d.part(JournalKeyName, err)
	}
	return key, nil
}

// makeJournalKey makes the key, unless another process makes it first.
func (d *Dir) makeJournalKey() ([]byte, error) {
	fresh := make([]byte, journalKeySize)
	rand.Read(fresh)
	err := d.root.WriteFile(JournalKeyName, fresh, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return d.readJournalKey()
	}
	return fresh, errors.Join(err, d.root.Sync())
}

func (d *Dir) readJournalKey() ([]byte, error) {
	f, _, err := d.root.Open(JournalKeyName)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	key, err := io.ReadAll(io.LimitReader(f, journalKeySize+1))
	if err == nil && len(key) != journalKeySize {
		err = fmt.Errorf("%q is not a journal key of %d bytes", JournalKeyName, journalKeySize)
	}
	return key, err
}

// ViewLog opens the log of the views in the background, to be written at its end.
func (d *Dir) ViewLog() (*os.File, error) {
	f, err := openToAppend(d.root, viewLog)
	if err != nil {
		return nil, fmt.Errorf("state directory %q: %w", d.path, err)
	}
	return f, nil
}

// A PartError is a part of the state directory that cannot be used.
type PartError struct {
	Path string
	Name string // its name in the state directory
	UID  int    // of its owner; -1 if not known
	Err  error
}

func (e *PartError) Error() string {
	return fmt.Sprintf("state directory %q: %v", filepath.Dir(e.Path), e.Err)
}

// Unwrap returns why.
func (e *PartError) Unwrap() error { return e.Err }

func (d *Dir) part(name string, err error) error {
	e := &PartError{Path: filepath.Join(d.path, name), Name: name, UID: -1, Err: err}
	if st, unknown := d.root.Lstat(name); unknown == nil {
		e.UID = int(st.UID)
	}
	return e
}

// AuditLog opens the audit log for reading and appending. It first makes the name of an empty log
// durable.
func (d *Dir) AuditLog() (*os.File, error) {
	f, err := openToAppend(d.root, auditLog)
	if err != nil {
		return nil, d.part(auditLog, err)
	}
	info, err := f.Stat()
	if err == nil && info.Size() == 0 {
		err = d.root.Sync()
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("state directory %q: %w", d.path, err)
	}
	return f, nil
}

// openToAppend opens a regular file, following no link, and creates it if it is missing. It does
// not block on another entry, such as a FIFO without a reader.
func openToAppend(dir *pathsafe.Dir, name string) (*os.File, error) {
	const flags = unix.O_RDWR | unix.O_APPEND | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
	fd, err := unix.Openat(dir.Fd(), name, flags, 0)
	if errors.Is(err, fs.ErrNotExist) {
		fd, err = unix.Openat(dir.Fd(), name, flags|unix.O_CREAT, 0o600)
	}
	runtime.KeepAlive(dir)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	f := os.NewFile(uintptr(fd), name)
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &os.PathError{Op: "open", Path: name, Err: pathsafe.ErrNotRegular}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// TrustPlace returns the directory of the trusted validators, and creates it if needed.
func (d *Dir) TrustPlace() (string, error) {
	dir, err := d.open("trust")
	if err != nil {
		return "", err
	}
	return filepath.Join(d.path, "trust"), dir.Close()
}

// Quarantine opens the directory of the quarantined candidates, and creates it if needed.
func (d *Dir) Quarantine() (*pathsafe.Dir, error) { return d.open("quarantine") }

// Savepoints opens the directory of the savepoints, and creates it, durably, if needed.
func (d *Dir) Savepoints() (*pathsafe.Dir, error) { return d.durable("savepoints") }

// Snapshots opens the directory of the snapshots, and creates it, durably, if needed.
func (d *Dir) Snapshots() (*pathsafe.Dir, error) { return d.durable("snapshots") }

func (d *Dir) durable(name string) (*pathsafe.Dir, error) {
	dir, err := d.open(name)
	if err != nil {
		return nil, err
	}
	if err := d.root.Sync(); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return dir, nil
}

// HostKey returns the path of this host's own key, which signs savepoints.
func (d *Dir) HostKey() string { return filepath.Join(d.path, hostKey) }

// halts is the directory of the attempts whose rollback has failed.
const halts = "halts"

// Halt remembers, durably, that the rollback of an attempt has failed.
func (d *Dir) Halt(attempt string) error {
	dir, err := d.halts(attempt)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := dir.WriteFile(attempt, nil, 0o600); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return errors.Join(dir.Sync(), d.root.Sync())
}

// Halted reports whether the rollback of an attempt has failed. If that cannot be determined, for
// lack of a descriptor or a permission, it returns true and the reason: only an absent mark means
// that it has not.
func (d *Dir) Halted(attempt string) (bool, error) {
	if _, err := uuid.Parse(attempt); err != nil {
		return false, nil //nolint:nilerr // none that Halt would take
	}
	dir, err := d.root.OpenDir(halts)
	if err == nil {
		defer dir.Close()
		_, err = dir.Lstat(attempt)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		err = d.part(halts, err)
	}
	return true, err
}

// Release forgets it.
func (d *Dir) Release(attempt string) error {
	if halted, _ := d.Halted(attempt); !halted {
		return nil
	}
	dir, err := d.halts(attempt)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := dir.Unlink(attempt); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (d *Dir) halts(attempt string) (*pathsafe.Dir, error) {
	if _, err := uuid.Parse(attempt); err != nil {
		return nil, fmt.Errorf("attempt %q: %w", attempt, err)
	}
	return d.open(halts)
}

// open opens a directory of the state directory, and creates it, durably, if needed. Another
// process may have created it and been killed before it was durable: data that must survive a power
// cut requires another sync of the state directory. It returns a [*PartError].
func (d *Dir) open(name string) (*pathsafe.Dir, error) {
	err := d.root.Mkdir(name, 0o700)
	if err == nil {
		err = d.root.Sync()
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, d.part(name, err)
	}
	dir, err := d.root.OpenDir(name)
	if err != nil {
		return nil, d.part(name, err)
	}
	return dir, nil
}

// Sync makes durable which names are in the state directory.
func (d *Dir) Sync() error { return d.root.Sync() }

// Close closes the directory.
func (d *Dir) Close() error { return d.root.Close() }
