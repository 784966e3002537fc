package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spectrumfs/spectrum/pathsafe"
)

// boxPrefix is how the name of a box begins.
const boxPrefix = ".spectrum-export-"

// A box is a private directory for one export, beside its destination: only this user can enter it,
// so all its entries are this user's. A complete export is moved out with one rename that replaces
// nothing. Everything is done through handles, because other users may write, move and replace the
// directory above.
type box struct {
	above *pathsafe.Dir
	real  string // path of above, derived from its handle
	name  string
	dir   *pathsafe.Dir
}

// newBox opens the directory at path and makes a box in it.
func newBox(path string) (*box, error) {
	above, err := pathsafe.OpenOwn(path)
	if err != nil {
		return nil, err
	}
	return newBoxIn(above)
}

// newBoxIn is newBox for a directory that is open, which it takes over.
func newBoxIn(above *pathsafe.Dir) (*box, error) {
	var err error
	b := &box{above: above, name: boxPrefix + uuid.NewString()}
	if b.real, err = above.RealPath(); err != nil {
		return nil, errors.Join(err, above.Close())
	}
	b.sweep()
	return b, nil
}

// leftAfter is how old a box must be before it is removed: its process has locked it by then.
const leftAfter = time.Minute

// sweep removes the boxes in the same directory that killed processes of this user left. What cannot be
// removed now stays for a later command.
func (b *box) sweep() {
	names, err := b.above.Names()
	if err != nil {
		return
	}
	for _, name := range names {
		id, ok := strings.CutPrefix(name, boxPrefix)
		if !ok || len(id) != len(uuid.Nil.String()) || uuid.Validate(id) != nil {
			continue
		}
		dir, err := b.above.OpenDir(name)
		if err != nil {
			continue
		}
		if b.isLeft(name, dir) && removeAllIn(dir) == nil && b.above.Holds(name, dir) == nil {
			_ = b.above.Rmdir(name)
		}
		dir.Close()
	}
}

// isLeft reports whether a directory is a box whose process has ended: no process has locked it. Where
// another user can rename it, it may be any directory of this user, and is none.
func (b *box) isLeft(name string, dir *pathsafe.Dir) bool {
	st, err := dir.Stat()
	if err != nil || !st.Private() || st.Bits() != 0o700 || time.Since(st.ModTime) < leftAfter {
		return false
	}
	way, err := pathsafe.WayTo(filepath.Join(b.real, name))
	return err == nil && len(way.Loose) == 0 && way.LeadsTo(dir) == nil && dir.TryLock() == nil
}

// make makes the directory of the box, and locks it where the file system can. One that is not as it was
// made just now is not ours: another one was put in its place.
func (b *box) make() error {
	if err := b.above.Mkdir(b.name, 0o700); err != nil {
		return err
	}
	dir, err := b.above.OpenDir(b.name)
	if err != nil {
		return errors.Join(err, b.above.Rmdir(b.name))
	}
	st, err := dir.Stat()
	if err == nil && (int(st.UID) != os.Geteuid() || st.Perm&0o777 != 0o700) {
		err = fmt.Errorf("another directory took the place of %q", b.name)
	}
	names, listErr := dir.Names()
	if err = errors.Join(err, listErr); err == nil && (len(names) > 0 || errors.Is(dir.TryLock(), pathsafe.ErrLocked)) {
		err = fmt.Errorf("another directory took the place of %q", b.name)
	}
	if err != nil {
		return errors.Join(err, dir.Close())
	}
	b.dir = dir
	return nil
}

// path returns a path of name in the box through the handle, wherever the box is now. It is valid
// until the box is closed.
func (b *box) path(name string) string {
	return filepath.Join(fmt.Sprintf("/proc/self/fd/%d", b.dir.Fd()), name)
}

// place returns the path of the box, by the path of the directory above.
func (b *box) place() string { return filepath.Join(b.real, b.name) }

// A boxedError is an error about what is in a box. It shows the path under which that is to
// appear.
type boxedError struct {
	err   error
	shown *strings.Replacer
}

func (e *boxedError) Error() string { return e.shown.Replace(e.err.Error()) }
func (e *boxedError) Unwrap() error { return e.err }

// told returns an error about name in the box, with its destination path.
func (b *box) told(err error, name, path string) error {
	if err == nil {
		return nil
	}
	return &boxedError{err, strings.NewReplacer(b.path(name), path, filepath.Join(b.real, b.name, name), path)}
}

// keepPrivate takes from the exported tree, and from its run directory, the bits of the
// group and of others that perm does not have.
func (b *box) keepPrivate(tree, runDir string, perm fs.FileMode) error {
	top, err := b.dir.OpenDir(tree)
	if err != nil {
		return err
	}
	defer top.Close()
	runs := top
	for name := range strings.SplitSeq(path.Dir(runDir), "/") {
		if runs, err = runs.OpenDir(name); err != nil {
			return err
		}
		defer runs.Close()
	}
	for _, one := range []struct {
		in   *pathsafe.Dir
		name string
	}{{runs, path.Base(runDir)}, {b.dir, tree}} {
		st, err := one.in.Lstat(one.name)
		if err != nil {
			return err
		}
		if err := one.in.ChmodDir(one.name, st.Perm&^(0o077&^uint32(perm))); err != nil {
			return err
		}
	}
	return nil
}

// release makes what is in the box durable and moves its directory name out of it. It
// does not replace anything. A directory that its owner may not write could not be moved:
// it gets its own mode again afterwards.
func (b *box) release(name, to string) error {
	tree, err := b.dir.OpenDir(name)
	if err != nil {
		return err
	}
	defer tree.Close()
	st, err := tree.Stat()
	if err != nil {
		return err
	}
	if err := b.dir.SyncFS(); err != nil {
		return err
	}
	locked := st.Perm&0o700 != 0o700
	if locked {
		if err := tree.Chmod(st.Perm | 0o700); err != nil {
			return err
		}
	}
	err = b.dir.RenameNoReplace(name, b.above, to)
	if locked {
		err = errors.Join(err, tree.Chmod(st.Perm))
	}
	return errors.Join(err, b.above.Sync())
}

// close removes the box and its entries, which are all ours. The name of the box is removed only if
// it is an empty directory.
func (b *box) close() error {
	var err error
	if b.dir != nil {
		err = removeAllIn(b.dir)
		if err == nil && b.above.Holds(b.name, b.dir) == nil {
			err = b.above.Rmdir(b.name)
		}
		err = errors.Join(err, b.dir.Close())
	}
	runtime.KeepAlive(b.dir)
	return errors.Join(err, b.above.Close())
}

// removeAllIn removes everything in a private directory. Deeper directories are moved up first, so
// a deep tree takes no more descriptors.
func removeAllIn(dir *pathsafe.Dir) error {
	moved := 0
	for {
		names, err := dir.Names()
		if err != nil || len(names) == 0 {
			return err
		}
		for _, name := range names {
			if err := removeOne(dir, name, &moved); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
}

// removeOne removes what has a name in dir, after it has moved the directories in it to dir.
// moved counts their names.
func removeOne(dir *pathsafe.Dir, name string, moved *int) error {
	st, err := dir.Lstat(name)
	if err != nil {
		return err
	}
	if !st.Mode.IsDir() {
		return dir.Unlink(name)
	}
	if err := dir.ChmodDir(name, 0o700); err != nil { // it may have got a mode that forbids to empty it
		return err
	}
	sub, err := dir.OpenDir(name)
	if err != nil {
		return err
	}
	defer sub.Close()
	names, err := sub.Names()
	if err != nil {
		return err
	}
	for _, deeper := range names {
		st, err := sub.Lstat(deeper)
		switch {
		case err != nil:
			return err
		case !st.Mode.IsDir():
			err = sub.Unlink(deeper)
		default:
			if err = sub.ChmodDir(deeper, 0o700); err == nil {
				err = fs.ErrExist
			}
			for errors.Is(err, fs.ErrExist) {
				*moved++
				err = sub.RenameNoReplace(deeper, dir, fmt.Sprintf("%s%d", boxPrefix, *moved))
			}
		}
		if err != nil {
			return err
		}
	}
	return dir.Rmdir(name)
}
