package statedir

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

// barred is the directory of the restore roots in which a rollback could not begin, or failed and
// was undone (rollback and snapshot contract, section 12): a file, the mark, for each. The file
// halts the root; its content is for people.
const barred = "barred"

// maxBar is the maximum size of a mark in bytes; maxWhy of the reason in it.
const (
	maxBar = 64 << 10
	maxWhy = 4 << 10
)

// A BarMark describes the rollback. If the mark cannot be read, only Err is set.
type BarMark struct {
	ID     string    `json:"id"`     // of the refusal, or of the action that failed, in the audit log; a UUID
	Kind   string    `json:"kind"`   // session or emergency
	Reason string    `json:"reason"` // why it could not begin, or failed
	Root   string    `json:"root"`   // the path under which the records of the root are kept
	Time   time.Time `json:"time"`
	Err    error     `json:"-"`
}

// A BarError is a mark that cannot be looked up, or not be removed: it halts its root until a
// person moves it.
type BarError struct {
	Path string // of the mark, or of the entry in place of the directory of marks
	Err  error
}

func (e *BarError) Error() string { return fmt.Sprintf("%q halts a restore root: %v", e.Path, e.Err) }

// Unwrap returns why.
func (e *BarError) Unwrap() error { return e.Err }

// inTheWay returns a [*BarError] if the mark of a restore root, or the directory of marks, was not
// created by Bar.
func (d *Dir) inTheWay(key string) error {
	st, err := d.root.Lstat(barred)
	if err == nil && !st.Mode.IsDir() {
		return &BarError{filepath.Join(d.path, barred), unix.ENOTDIR}
	}
	dir, err := d.root.OpenDir(barred)
	if err != nil {
		return nil //nolint:nilerr // the next use of the root reports that too
	}
	defer dir.Close()
	if st, err = dir.Lstat(key); err == nil && !st.Mode.IsRegular() {
		return &BarError{filepath.Join(d.path, barred, key), pathsafe.ErrNotRegular}
	}
	return nil
}

// Bar halts a restore root, durably: nothing is previewed, committed or pruned in it until
// [Dir.Unbar]. If the root has a mark already, it is kept. If there is no space for the content,
// the mark is empty.
func (d *Dir) Bar(root, id, kind, reason string) error {
	if len(reason) > maxWhy {
		reason = reason[:maxWhy]
	}
	raw, err := json.Marshal(BarMark{ID: id, Kind: kind, Reason: strings.ToValidUTF8(reason, "\uFFFD"), Root: root, Time: time.Now().UTC()})
	if err != nil {
		return err
	}
	dir, err := d.open(barred)
	if err == nil {
		defer dir.Close()
		err = dir.WriteFile(attemptsOf(root), append(raw, '\n'), 0o600)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			err = dir.WriteFile(attemptsOf(root), nil, 0o600)
		}
		if errors.Is(err, fs.ErrExist) {
			err = nil
		}
		err = errors.Join(err, dir.Sync(), d.root.Sync())
	}
	if err != nil {
		return fmt.Errorf("state directory %q: halting a restore root: %w", d.path, err)
	}
	return nil
}

// Barred reports whether a restore root is halted by [Dir.Bar]. If that cannot be determined, the
// root counts as halted, and the error has the reason: only an absent mark means that it is not
// halted.
func (d *Dir) Barred(root string) (bool, error) {
	dir, err := d.root.OpenDir(barred)
	if err == nil {
		defer dir.Close()
		_, err = dir.Lstat(attemptsOf(root))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return true, cmp.Or(d.inTheWay(attemptsOf(root)), fmt.Errorf("state directory %q: %w", d.path, err))
	}
	return true, nil
}

// Unbar removes the mark of Bar, durably, if there is one. Previews made before the halt are void,
// as after [Dir.Attempt]. It returns a [*BarError] if the mark cannot be removed; then the root
// stays halted.
func (d *Dir) Unbar(root string) error {
	if is, _ := d.Barred(root); !is {
		return nil
	}
	if err := d.Attempt(root); err != nil {
		return err
	}
	dir, err := d.root.OpenDir(barred)
	if err == nil {
		defer dir.Close()
		if err = dir.Unlink(attemptsOf(root)); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		err = errors.Join(err, dir.Sync())
	}
	if err != nil {
		return cmp.Or(d.inTheWay(attemptsOf(root)), error(&BarError{filepath.Join(d.path, barred, attemptsOf(root)), err}))
	}
	return nil
}

// Unbarrable returns a [*BarError] if Unbar would fail, as far as that is known in advance: the end
// of a halt must not be announced while the halt continues.
func (d *Dir) Unbarrable(root string) error {
	key := attemptsOf(root)
	if err := d.inTheWay(key); err != nil {
		return err
	}
	dir, err := d.root.OpenDir(barred)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return &BarError{filepath.Join(d.path, barred), err}
	}
	defer dir.Close()
	if err = dir.Writable(); err == nil { // an immutable one is not
		var f *os.File
		if f, err = dir.OpenToWrite(key); err == nil {
			err = f.Close()
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.EACCES) { // EACCES for the file alone blocks nothing
		return &BarError{filepath.Join(d.path, barred, key), err}
	}
	return nil
}

// BarOf returns the mark of a restore root that Bar has halted, or false if there is none.
func (d *Dir) BarOf(root string) (BarMark, bool) {
	if is, err := d.Barred(root); !is || err != nil {
		return BarMark{Root: root, Err: err}, is
	}
	dir, err := d.root.OpenDir(barred)
	if err != nil {
		return BarMark{Root: root, Err: err}, true
	}
	defer dir.Close()
	if err := d.inTheWay(attemptsOf(root)); err != nil {
		return BarMark{Root: root, Err: err}, true
	}
	mark, err := readBar(dir, attemptsOf(root))
	if err == nil && mark.Root != root {
		err = errors.New("it is of another restore root")
	}
	if err != nil {
		return BarMark{Root: root, Err: err}, true
	}
	return mark, true
}

// Bars returns the marks of all restore roots that Bar has halted, in the order of their names. A
// mark that cannot be read has no Root.
func (d *Dir) Bars() (all []BarMark, err error) {
	dir, err := d.root.OpenDir(barred)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, cmp.Or(d.inTheWay(""), fmt.Errorf("state directory %q: %w", d.path, err))
	}
	defer dir.Close()
	names, err := dir.Names()
	if err != nil {
		return nil, fmt.Errorf("state directory %q: %w", d.path, err)
	}
	for _, name := range names {
		if !isDigest(name) { // left over from a killed command
			continue
		}
		mark, err := readBar(dir, name)
		if err != nil || attemptsOf(mark.Root) != name {
			mark = BarMark{Root: d.RootOfKey(name), Err: cmp.Or(d.inTheWay(name), errors.Join(err, errBarUnread))}
		}
		all = append(all, mark)
	}
	return all, nil
}

// errBarEmpty is the error for a mark without content.
var errBarEmpty = errors.New("it is empty, as after a full disk; it still halts the root; the audit log has the failed rollback if there was space")

var errBarUnread = errors.New("the mark cannot be read; it still halts the root")

func readBar(dir *pathsafe.Dir, name string) (BarMark, error) {
	f, _, err := dir.Open(name)
	if err != nil {
		return BarMark{}, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxBar))
	if err == nil && len(raw) == 0 {
		err = errBarEmpty
	}
	var mark BarMark
	if err == nil {
		err = json.Unmarshal(raw, &mark)
	}
	if err == nil {
		_, err = uuid.Parse(mark.ID)
	}
	if err != nil {
		return BarMark{}, err
	}
	return mark, nil
}

// RootOfKey returns the path under which the records of a restore root are kept, from the name of
// its directory of records, or "" if no root that was entered has this name.
func (d *Dir) RootOfKey(key string) string {
	all, err := d.readRoots()
	if err != nil {
		return ""
	}
	for _, r := range all {
		if attemptsOf(r.Known) == key {
			return r.Known
		}
	}
	return ""
}
