package staging

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"time"

	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

// A sysHook wraps all system calls of this package: every call that can fail goes through do,
// so that a test can make each of them fail.
type sysHook struct {
	hook func(op, path string, f func() error) error
}

func (s *sysHook) do(op, path string, f func() error) error {
	if s.hook == nil {
		return f()
	}
	return s.hook(op, path, f)
}

// A dir is a directory handle whose calls go through the hook.
type dir struct {
	h *pathsafe.Dir
	s *sysHook
}

// close has no error: nothing is written through the handle of a directory.
func (d dir) close() {
	if d.h != nil {
		_ = d.h.Close()
	}
}

// open returns the directory p beneath d, or another handle on d itself for
// the zero path.
func (d dir) open(p pathsafe.Path) (sub dir, err error) {
	sub.s = d.s
	err = d.s.do("open directory", p.String(), func() error {
		sub.h, err = d.h.OpenParent(p, depth(p))
		return err
	})
	return sub, err
}

func (d dir) stat(name string) (st pathsafe.Stat, err error) {
	err = d.s.do("stat", name, func() error {
		st, err = d.h.Lstat(name)
		return err
	})
	return st, err
}

func (d dir) statSelf() (st pathsafe.Stat, err error) {
	err = d.s.do("stat", ".", func() error {
		st, err = d.h.Stat()
		return err
	})
	return st, err
}

// statBelow describes the directory p beneath d, d itself for the zero path.
func (d dir) statBelow(p pathsafe.Path) (st pathsafe.Stat, err error) {
	if p == (pathsafe.Path{}) {
		return d.statSelf()
	}
	err = d.s.do("stat", p.String(), func() error {
		st, err = d.h.StatPath(p, pathsafe.LinksBeneath)
		return err
	})
	return st, err
}

func (d dir) survey(p pathsafe.Path) (site pathsafe.Site, err error) {
	err = d.s.do("survey", p.String(), func() error {
		site, err = d.h.Survey(p)
		return err
	})
	return site, err
}

func (d dir) mkdir(name string, perm uint32) error {
	return d.s.do("make directory", name, func() error { return d.h.Mkdir(name, perm) })
}

// mkdirOwn makes a directory that only this user enters.
func (d dir) mkdirOwn(name string) error {
	if err := d.mkdir(name, ownDir); err != nil {
		return err
	}
	_, err := d.unbarred(name)
	return err
}

// unbarred describes the directory name of d, after it has let its owner in if it did
// not.
func (d dir) unbarred(name string) (pathsafe.Stat, error) {
	st, err := d.stat(name)
	if err != nil || st.Perm&ownDir == ownDir {
		return st, err
	}
	wanted := st.Perm | ownDir
	err = d.s.do("set mode", name, func() error { return d.h.ChmodDir(name, wanted) })
	if err != nil {
		return st, err
	}
	st, err = d.stat(name)
	if err == nil && st.Perm != wanted {
		err = fmt.Errorf("mode %04o could not be set", wanted)
	}
	return st, err
}

// access returns the access of d.
func (d dir) access() (access, error) {
	var got pathsafe.Access
	err := d.s.do("read access", d.h.Name(), func() (err error) {
		got, err = d.h.Access()
		return err
	})
	return accessOf(got), err
}

// bequeathLike makes d pass on the same access to new entries as a directory with the given
// access.
func (d dir) bequeathLike(like access) error {
	return d.s.do("set access", d.h.Name(), func() error { return d.h.BequeathLike(like.Value()) })
}

func (d dir) create(name string, perm uint32) (f *os.File, err error) {
	err = d.s.do("create", name, func() error {
		f, err = d.h.Create(name, perm)
		return err
	})
	return f, err
}

func (d dir) names() (names []string, err error) {
	err = d.s.do("list", d.h.Name(), func() error {
		names, err = d.h.Names()
		return err
	})
	return names, err
}

func (d dir) openRegular(p pathsafe.Path) (f *os.File, st pathsafe.Stat, err error) {
	err = d.s.do("open", p.String(), func() error {
		f, st, err = d.h.OpenRegular(p, pathsafe.LinksBeneath)
		return err
	})
	return f, st, err
}

// openFile opens the regular file name of d, through no link, and waits for no lease.
func (d dir) openFile(name string) (f *os.File, st pathsafe.Stat, err error) {
	err = d.s.do("open", name, func() error {
		f, st, err = d.h.OpenNow(name)
		return err
	})
	return f, st, err
}

func (d dir) rename(name string, to dir, newName string) error {
	return d.s.do("rename", name, func() error { return d.h.RenameNoReplace(name, to.h, newName) })
}

// exchange swaps the entries of two names.
func (d dir) exchange(name string, to dir, newName string) error {
	do := func() error {
		return d.s.do("exchange", name, func() error { return d.h.RenameExchange(name, to.h, newName) })
	}
	return moving(do, move{d, name, to, newName}, move{to, newName, d, name})
}

// shift is rename for what may be a directory that its owner may not write.
func (d dir) shift(name string, to dir, newName string) error {
	return moving(func() error { return d.rename(name, to, newName) }, move{d, name, to, newName})
}

// A move is from one name to another one.
type move struct {
	from dir
	name string
	to   dir
	into string
}

// moving renames. The kernel requires write permission on a directory that gets another
// parent: if only that is missing, the directory has it during the rename.
func moving(rename func() error, moves ...move) error {
	err := rename()
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	modes := make([]uint32, len(moves))
	opened := false
	for i, m := range moves {
		st, failed := m.from.stat(m.name)
		if failed != nil || !st.Mode.IsDir() || int(st.UID) != os.Geteuid() || st.Perm&0o200 != 0 {
			continue
		}
		if failed := m.from.chmodDir(m.name, st.Perm|0o200); failed != nil {
			return errors.Join(err, failed)
		}
		modes[i], opened = st.Perm, true
	}
	if !opened {
		return err
	}
	err = rename()
	for i, m := range moves {
		at, name := m.to, m.into
		if err != nil {
			at, name = m.from, m.name
		}
		if modes[i] != 0 {
			err = errors.Join(err, at.chmodDir(name, modes[i]))
		}
	}
	return err
}

// enter opens the directory name of d without following links. The name need not be a valid
// path component.
func (d dir) enter(name string) (sub dir, err error) {
	sub.s = d.s
	err = d.s.do("open directory", name, func() error {
		sub.h, err = d.h.OpenDir(name)
		return err
	})
	return sub, err
}

// setMode sets the mode of d itself.
func (d dir) setMode(mode uint32) error {
	return d.s.do("set mode", d.h.Name(), func() error { return d.h.Chmod(mode) })
}

// setTime sets the modification time of d itself.
func (d dir) setTime(t time.Time) error {
	return d.s.do("set times", d.h.Name(), func() error { return d.h.SetModTime(t) })
}

// chmodDir sets the mode of the directory name of d.
func (d dir) chmodDir(name string, mode uint32) error {
	return d.s.do("set mode", name, func() error { return d.h.ChmodDir(name, mode) })
}

// metadataOf returns the metadata of the entry at a name, without following a link, and the
// extended attributes that this user may not read.
func (d dir) metadataOf(name string) (m Metadata, denied []LeftOut, err error) {
	err = d.s.do("read metadata", name, func() error {
		node, err := d.h.Pin(name)
		if err != nil {
			return err
		}
		defer node.Close()
		st, err := node.Stat()
		if err != nil {
			return err
		}
		m = Metadata{Mode: st.Perm, UID: st.UID, GID: st.GID, ModTime: st.ModTime}
		m.Xattrs, err = node.ReadableXattrs(func(name string, err error) {
			denied = append(denied, LeftOut{What: name, Why: err})
		})
		return err
	})
	return m, denied, err
}

// walk visits everything beneath d.
func (d dir) walk(visit func(rel string, st pathsafe.Stat) error) error {
	return d.s.do("walk", d.h.Name(), func() error { return d.h.Walk(context.Background(), visit) })
}

func (d dir) unlink(name string) error {
	return d.s.do("unlink", name, func() error { return d.h.Unlink(name) })
}

func (d dir) rmdir(name string) error {
	return d.s.do("remove directory", name, func() error { return d.h.Rmdir(name) })
}

func (d dir) sync() error { return d.s.do("sync", d.h.Name(), d.h.Sync) }

func (d dir) syncFS() error { return d.s.do("sync file system", d.h.Name(), d.h.SyncFS) }

func (d dir) lock() error { return d.s.do("lock", d.h.Name(), d.h.TryLock) }

// openLock opens the regular file name of d to lock it, for reading unless write is set.
func (d dir) openLock(name string, write bool) (f *os.File, err error) {
	err = d.s.do("open lock", name, func() error {
		if write {
			f, err = d.h.OpenToWrite(name)
		} else {
			f, _, err = d.h.Open(name)
		}
		return err
	})
	return f, err
}

// createLock makes the file name of d to lock it, open as openLock has it.
func (d dir) createLock(name string, write bool) (f *os.File, err error) {
	if write {
		return d.create(name, ownFile)
	}
	err = d.s.do("create", name, func() error {
		f, err = d.h.CreateToRead(name, ownFile)
		return err
	})
	return f, err
}

// grantWriters makes a file accessible to the users who may create names in d, and to no
// others.
func (d dir) grantWriters(f *os.File) error {
	return d.s.do("set access", f.Name(), func() error { return d.h.GrantWriters(f) })
}

// Calls on files that Run makes.

func (s *sysHook) write(f *os.File, data []byte) error {
	return s.do("write", f.Name(), func() error {
		_, err := f.Write(data)
		return pathsafe.NoSpace(f, len(data), err)
	})
}

// clone shares the blocks of src with dst, where the file system can.
func (s *sysHook) clone(dst, src *os.File) error {
	return s.do("clone", dst.Name(), func() error {
		return unix.IoctlFileClone(int(dst.Fd()), int(src.Fd()))
	})
}

// copy appends at most n bytes of src to dst, inside the kernel where it can.
func (s *sysHook) copy(dst, src *os.File, n int64) (done int64, err error) {
	err = s.do("copy", dst.Name(), func() error {
		done, err = io.Copy(dst, io.LimitReader(src, n))
		return err
	})
	return done, err
}

// startWriteBack makes the disk begin with n bytes at off. It promises nothing,
// so it has no error: the sync that follows has it.
func (s *sysHook) startWriteBack(f *os.File, off, n int64) {
	_ = s.do("start write-back", f.Name(), func() error {
		return unix.SyncFileRange(int(f.Fd()), off, n, unix.SYNC_FILE_RANGE_WRITE)
	})
}

func (s *sysHook) setModTime(f *os.File, t time.Time) error {
	ts, err := unix.TimeToTimespec(t)
	if err != nil {
		return err
	}
	times := []unix.Timespec{ts, ts}
	return s.do("set times", f.Name(), func() error {
		err := unix.UtimesNanoAt(int(f.Fd()), "", times, unix.AT_EMPTY_PATH)
		if err == unix.EINVAL { // before Linux 5.8
			err = unix.UtimesNanoAt(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(int(f.Fd())), times, 0)
		}
		runtime.KeepAlive(f)
		return named("set times of", f, err)
	})
}

func (s *sysHook) chmod(f *os.File, perm uint32) error {
	return s.do("set mode", f.Name(), func() error { return named("set mode of", f, unix.Fchmod(int(f.Fd()), perm)) })
}

func (s *sysHook) identify(f *os.File) (st pathsafe.Stat, err error) {
	err = s.do("stat", f.Name(), func() error {
		st, err = pathsafe.StatFile(f)
		return err
	})
	return st, err
}

// Calls on whatever has metadata: a file ([pathsafe.FileNode]), or a directory.

func (s *sysHook) setOwner(n *pathsafe.Node, uid, gid uint32) error {
	return s.do("set owner", n.Name(), func() error { return n.Chown(uid, gid) })
}

// xattrs returns the extended attributes, sorted by name.
func (s *sysHook) xattrs(n *pathsafe.Node) (all []pathsafe.Xattr, err error) {
	err = s.do("read attributes", n.Name(), func() error {
		all, err = n.Xattrs()
		return err
	})
	return all, err
}

func (s *sysHook) setXattr(n *pathsafe.Node, x pathsafe.Xattr) error {
	return s.do("set attribute", n.Name(), func() error { return n.SetXattr(x) })
}

func (s *sysHook) removeXattr(n *pathsafe.Node, name string) error {
	return s.do("remove attribute", n.Name(), func() error { return n.RemoveXattr(name) })
}

// access returns the access of a file.
func (s *sysHook) access(f *os.File) (access, error) {
	var got pathsafe.Access
	err := s.do("read access", f.Name(), func() (err error) {
		got, err = pathsafe.FileAccess(f)
		return err
	})
	return accessOf(got), err
}

func (s *sysHook) syncFile(f *os.File) error { return s.do("sync", f.Name(), f.Sync) }

// flock locks a file, or returns pathsafe.ErrLocked at once.
func (s *sysHook) flock(f *os.File) error {
	return s.do("lock", f.Name(), func() error {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		runtime.KeepAlive(f)
		if err == unix.EWOULDBLOCK {
			return pathsafe.ErrLocked
		}
		return named("lock", f, err)
	})
}

func (s *sysHook) closeFile(f *os.File) error { return s.do("close", f.Name(), f.Close) }

// named adds the name of the call and of the file to an error.
func named(call string, f *os.File, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %q: %w", call, f.Name(), err)
}
