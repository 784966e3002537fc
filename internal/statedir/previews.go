package statedir

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spectrumfs/spectrum/internal/hexdigits"
	"github.com/spectrumfs/spectrum/pathsafe"
)

// The places of a preview: its record, its report for people, and the mark that it was used.
const (
	previews = "previews"
	record   = ".json"
	report   = ".md"
	used     = ".used"
)

// maxRecord bounds the record of a preview, in bytes.
const maxRecord = 1 << 30

// SavePreview stores the record of a preview. It replaces a record of the same identity and removes
// the mark of its use, because a preview that is shown again may be approved again. On an error
// both may be missing.
func (d *Dir) SavePreview(id string, data []byte) error {
	return d.save(id, data, record, used) // in this order: no record loses the mark of its use
}

// SaveReport stores the report of a preview for people. It replaces an existing one, which may
// differ, for example in what holds the candidate in quarantine.
func (d *Dir) SaveReport(id string, text []byte) error { return d.save(id, text, report) }

// save stores the data of a preview under the first of its names and removes the others. It keeps a
// file with the same content, which another command may be using or may have just stored.
func (d *Dir) save(id string, data []byte, names ...string) error {
	dir, err := d.previews(id)
	if err != nil {
		return err
	}
	defer dir.Close()
	for range maxSaves {
		kept, unread := read(dir, id+names[0])
		same := unread == nil && bytes.Equal(kept, data)
		for n, name := range names {
			if n == 0 && (same || errors.Is(unread, fs.ErrNotExist)) { // another command may have kept it by now
				continue
			}
			if err := d.unlink(dir, id+name); err != nil {
				return err
			}
		}
		if same {
			return errors.Join(dir.Sync(), d.root.Sync())
		}
		if err = d.write(dir, id+names[0], data); !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return err
}

// maxSaves is how often a file is tried to be kept while other commands keep one of its name. Each
// try that fails is one of theirs that did not.
const maxSaves = 1000

// ReportPath returns the path of the file that [Dir.SaveReport] writes.
func (d *Dir) ReportPath(id string) string { return filepath.Join(d.path, previews, id+report) }

// unlink removes a file, if it exists.
func (d *Dir) unlink(dir *pathsafe.Dir, name string) error {
	if err := dir.Unlink(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("state directory %q: %w", d.path, err)
	}
	return nil
}

// LoadPreview returns the record of a preview, or fs.ErrNotExist.
func (d *Dir) LoadPreview(id string) ([]byte, error) {
	dir, err := d.previews(id)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return read(dir, id+record)
}

// keptPreviews calls do with the directory of the previews, all names in it, and the identities of
// the previews that were kept.
func (d *Dir) keptPreviews(do func(dir *pathsafe.Dir, names, ids []string) error) error {
	dir, err := d.open(previews)
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := dir.Names()
	if err != nil {
		return err
	}
	var ids []string
	for _, name := range names {
		if id, ok := strings.CutSuffix(name, record); ok && isDigest(id) {
			ids = append(ids, id)
		}
	}
	return do(dir, names, ids)
}

// FindPreview returns the identity of the one preview that begins with these hex digits, of which
// there must be at least digits, or fs.ErrNotExist.
func (d *Dir) FindPreview(prefix string, digits int) (string, error) {
	if len(prefix) < digits || len(prefix) > 64 || !hexdigits.Only(prefix) {
		return "", fmt.Errorf("%q is not the first digits of a preview id: %w", prefix, fs.ErrNotExist)
	}
	var found []string
	err := d.keptPreviews(func(_ *pathsafe.Dir, _, ids []string) error {
		found = slices.DeleteFunc(ids, func(id string) bool { return !strings.HasPrefix(id, prefix) })
		return nil
	})
	if err != nil {
		return "", err
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("no preview begins with %q: %w", prefix, fs.ErrNotExist)
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("%d previews begin with %q", len(found), prefix)
}

// Unused returns the identities of the previews that were kept and not used, sorted.
func (d *Dir) Unused() (unused []string, err error) {
	err = d.keptPreviews(func(_ *pathsafe.Dir, names, ids []string) error {
		unused = slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(names, id+used) })
		slices.Sort(unused)
		return nil
	})
	return unused, err
}

// A KeptPreview is a preview that was kept, and when.
type KeptPreview struct {
	ID string
	At time.Time
}

// Previews returns the stored previews, also the used ones, the newest first.
func (d *Dir) Previews() (all []KeptPreview, err error) {
	err = d.keptPreviews(func(dir *pathsafe.Dir, _, ids []string) error {
		for _, id := range ids {
			st, err := dir.Lstat(id + record)
			if errors.Is(err, fs.ErrNotExist) { // it was replaced in the meantime
				continue
			}
			if err != nil {
				return err
			}
			all = append(all, KeptPreview{id, st.ModTime})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b KeptPreview) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.ID, b.ID)) })
	return all, nil
}

func read(dir *pathsafe.Dir, name string) ([]byte, error) {
	f, _, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxRecord))
}

// Use marks a preview as used, durably; fs.ErrExist when it was before.
func (d *Dir) Use(id string) error {
	dir, err := d.previews(id)
	if err != nil {
		return err
	}
	defer dir.Close()
	return d.write(dir, id+used, nil)
}

// Used reports whether a preview was marked as used, and not saved again since.
func (d *Dir) Used(id string) (bool, error) {
	dir, err := d.previews(id)
	if err != nil {
		return false, err
	}
	defer dir.Close()
	names, err := dir.Names()
	return slices.Contains(names, id+used), err
}

func (d *Dir) write(dir *pathsafe.Dir, name string, data []byte) error {
	if err := dir.WriteFile(name, data, 0o600); err != nil {
		return fmt.Errorf("state directory %q: %w", d.path, err)
	}
	return errors.Join(dir.Sync(), d.root.Sync())
}

// previews opens the directory of previews for an identity that can be a name.
func (d *Dir) previews(id string) (*pathsafe.Dir, error) {
	if !isDigest(id) {
		return nil, fmt.Errorf("%q is not a preview id: %w", id, fs.ErrNotExist)
	}
	return d.open(previews)
}

// isDigest reports whether a text is 64 lowercase hex digits.
func isDigest(s string) bool {
	return hexdigits.Are(s, 64)
}

// Derived makes a fresh directory for the bundles that are derived from the candidate of one
// preview when only a part of it is approved, and returns its absolute path.
func (d *Dir) Derived(id string) (string, error) {
	dir, err := d.open(derived)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	name := id + "-" + uuid.NewString()
	if err := dir.Mkdir(name, 0o700); err != nil {
		return "", fmt.Errorf("state directory %q: %w", d.path, err)
	}
	return filepath.Join(d.path, derived, name), dir.Sync()
}

// attempts is the directory that counts the commits of each restore root: a file for each, with one
// byte for every commit that ever began in it.
const attempts = "attempts"

// derived is the directory of the run directories made by [Dir.Derived].
const derived = "derived"

// Attempts is how many commits ever began in a restore root.
func (d *Dir) Attempts(root string) (int64, error) {
	dir, err := d.open(attempts)
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	st, err := dir.Lstat(attemptsOf(root))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err == nil && !st.Mode.IsRegular() {
		return 0, d.notACount(attemptsOf(root), st)
	}
	if err != nil {
		return 0, fmt.Errorf("state directory %q: %w", d.path, err)
	}
	return st.Size, nil
}

// Attempt counts a commit that begins, durably. All earlier previews of the root are then void.
func (d *Dir) Attempt(root string) error {
	dir, err := d.open(attempts)
	if err != nil {
		return err
	}
	defer dir.Close()
	f, err := openToAppend(dir, attemptsOf(root))
	if err != nil {
		if st, unknown := dir.Lstat(attemptsOf(root)); unknown == nil && !st.Mode.IsRegular() {
			return d.notACount(attemptsOf(root), st)
		}
		if errors.Is(err, fs.ErrPermission) {
			return d.shutCount(dir, attemptsOf(root), err)
		}
		return fmt.Errorf("state directory %q: %w", d.path, err)
	}
	_, err = f.Write([]byte{'.'})
	err = pathsafe.NoSpace(f, 1, err)
	err = errors.Join(err, f.Sync(), f.Close(), dir.Sync(), d.root.Sync())
	if err != nil {
		return fmt.Errorf("state directory %q: %w", d.path, err)
	}
	return nil
}

// notACount returns the error for an entry that is not the count of a restore root.
func (d *Dir) notACount(name string, st pathsafe.Stat) *PartError {
	name = filepath.Join(attempts, name)
	return &PartError{filepath.Join(d.path, name), name, int(st.UID), fmt.Errorf("%q: %w", name, pathsafe.ErrNotRegular)}
}

// shutCount is the error for the count of a restore root that this user may not open.
func (d *Dir) shutCount(dir *pathsafe.Dir, name string, err error) *PartError {
	uid := -1
	if st, unknown := dir.Lstat(name); unknown == nil {
		uid = int(st.UID)
	}
	name = filepath.Join(attempts, name)
	return &PartError{filepath.Join(d.path, name), name, uid, err}
}

// oddCounts returns an error for each count of a restore root that is not a file or not accessible
// to this user.
func (d *Dir) oddCounts() (all []*PartError) {
	dir, err := d.root.OpenDir(attempts)
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Names()
	slices.Sort(names)
	for _, name := range names {
		if st, err := dir.Lstat(name); err == nil && !st.Mode.IsRegular() && len(name) == len(attemptsOf("")) {
			all = append(all, d.notACount(name, st))
			continue
		}
		f, err := openToAppend(dir, name)
		if errors.Is(err, fs.ErrPermission) {
			all = append(all, d.shutCount(dir, name, err))
		}
		if err == nil {
			_ = f.Close()
		}
	}
	return all
}

// attemptsOf is a name for a restore root, whatever its path is.
func attemptsOf(root string) string {
	sum := sha256.Sum256([]byte(filepath.Clean(root)))
	return hex.EncodeToString(sum[:])
}
