package staging

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"time"

	"github.com/spectrumfs/spectrum/internal/sys"
	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

// A sysHook wraps all system calls of this package.
type sysHook struct{ sys.Hook }

// A dir is a directory handle whose calls go through the hook.
type dir struct {
	sys.Dir
	s *sysHook
}

func on(h *pathsafe.Dir, s *sysHook) dir { return dir{sys.Dir{H: h, Hook: &s.Hook}, s} }

// open returns the directory p beneath d, or another handle on d itself for
// the zero path.
func (d dir) open(p pathsafe.Path) (dir, error) {
	var sub *pathsafe.Dir
	err := d.s.Do("open directory", p.String(), func() (err error) {
		sub, err = d.H.OpenParent(p, depth(p))
		return err
	})
	return on(sub, d.s), err
}

// statBelow describes the directory p beneath d, d itself for the zero path.
func (d dir) statBelow(p pathsafe.Path) (st pathsafe.Stat, err error) {
	if p == (pathsafe.Path{}) {
		return d.StatSelf()
	}
	err = d.s.Do("stat", p.String(), func() error {
		st, err = d.H.StatPath(p, pathsafe.LinksBeneath)
		return err
	})
	return st, err
}

func (d dir) survey(p pathsafe.Path) (site pathsafe.TargetState, err error) {
	err = d.s.Do("survey", p.String(), func() error {
		site, err = d.H.Survey(p)
		return err
	})
	return site, err
}

// mkdirOwn makes a directory that only this user enters.
func (d dir) mkdirOwn(name string) error {
	if err := d.Mkdir(name, ownDir); err != nil {
		return err
	}
	_, err := d.unbarred(name)
	return err
}

// unbarred describes the directory name of d, after it has let its owner in if it did
// not.
func (d dir) unbarred(name string) (pathsafe.Stat, error) {
	st, err := d.Stat(name)
	if err != nil || st.Perm&ownDir == ownDir {
		return st, err
	}
	wanted := st.Perm | ownDir
	err = d.s.Do("set mode", name, func() error { return d.H.ChmodDir(name, wanted) })
	if err != nil {
		return st, err
	}
	st, err = d.Stat(name)
	if err == nil && st.Perm != wanted {
		err = fmt.Errorf("mode %04o could not be set", wanted)
	}
	return st, err
}

// access returns the access of d.
func (d dir) access() (access, error) {
	var got pathsafe.Access
	err := d.s.Do("read access", d.H.Name(), func() (err error) {
		got, err = d.H.Access()
		return err
	})
	return accessOf(got), err
}

// bequeathLike makes d pass on the same access to new entries as a directory with the given
// access.
func (d dir) bequeathLike(like access) error {
	return d.s.Do("set access", d.H.Name(), func() error { return d.H.BequeathLike(like.Value()) })
}

func (d dir) openRegular(p pathsafe.Path) (f *os.File, st pathsafe.Stat, err error) {
	err = d.s.Do("open", p.String(), func() error {
		f, st, err = d.H.OpenRegular(p, pathsafe.LinksBeneath)
		return err
	})
	return f, st, err
}

// createFile is create for a file that is copied into.
func (d dir) createFile(name string, perm uint32) (f *pathsafe.File, err error) {
	err = d.s.Do("create", name, func() error {
		f, err = d.H.CreateFile(name, perm)
		return err
	})
	return f, err
}

// openNear is openRegular for files of one directory in a row.
func (d dir) openNear(near *pathsafe.Opener, p pathsafe.Path) (f *pathsafe.File, st pathsafe.Stat, err error) {
	err = d.s.Do("open", p.String(), func() error {
		f, st, err = near.OpenRegular(d.H, p, pathsafe.LinksBeneath)
		return err
	})
	return f, st, err
}

// statNear describes what is at a name, for files of one directory in a row.
func (d dir) statNear(near *pathsafe.Opener, p pathsafe.Path) (st pathsafe.Stat, err error) {
	err = d.s.Do("open", p.String(), func() error {
		st, err = near.StatPath(d.H, p, pathsafe.LinksBeneath)
		return err
	})
	return st, err
}

// still requires the directory whose files were opened last to be where it was.
func (d dir) still(near *pathsafe.Opener) error { return d.s.Do("look again", d.H.Name(), near.Still) }

func (d dir) rename(name string, to dir, newName string) error {
	return d.s.Do("rename", name, func() error { return d.H.RenameNoReplace(name, to.H, newName) })
}

// exchange swaps the entries of two names.
func (d dir) exchange(name string, to dir, newName string) error {
	do := func() error {
		return d.s.Do("exchange", name, func() error { return d.H.RenameExchange(name, to.H, newName) })
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
		st, failed := m.from.Stat(m.name)
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
func (d dir) enter(name string) (dir, error) {
	sub, err := d.Enter(name)
	return on(sub, d.s), err
}

// setMode sets the mode of d itself.
func (d dir) setMode(mode uint32) error {
	return d.s.Do("set mode", d.H.Name(), func() error { return d.H.Chmod(mode) })
}

// setTime sets the modification time of d itself.
func (d dir) setTime(t time.Time) error {
	return d.s.Do("set times", d.H.Name(), func() error { return d.H.SetModTime(t) })
}

// chmodDir sets the mode of the directory name of d.
func (d dir) chmodDir(name string, mode uint32) error {
	return d.s.Do("set mode", name, func() error { return d.H.ChmodDir(name, mode) })
}

// metadataOf returns the metadata of the entry at a name, without following a link, and the
// extended attributes that this user may not read.
func (d dir) metadataOf(name string) (m Metadata, denied []LeftOut, err error) {
	err = d.s.Do("read metadata", name, func() error {
		node, err := d.H.Pin(name)
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
	return d.s.Do("walk", d.H.Name(), func() error { return d.H.Walk(context.Background(), visit) })
}

func (d dir) lock() error { return d.s.Do("lock", d.H.Name(), d.H.TryLock) }

// openLock opens the regular file name of d to lock it, for reading unless write is set.
func (d dir) openLock(name string, write bool) (f *os.File, err error) {
	err = d.s.Do("open lock", name, func() error {
		if write {
			f, err = d.H.OpenToWrite(name)
		} else {
			f, _, err = d.H.Open(name)
		}
		return err
	})
	return f, err
}

// createLock makes the file name of d to lock it, open as openLock has it.
func (d dir) createLock(name string, write bool) (f *os.File, err error) {
	if write {
		return d.Create(name, ownFile)
	}
	err = d.s.Do("create", name, func() error {
		f, err = d.H.CreateToRead(name, ownFile)
		return err
	})
	return f, err
}

// grantWriters makes a file accessible to the users who may create names in d, and to no
// others.
func (d dir) grantWriters(f *os.File) error {
	return d.s.Do("set access", f.Name(), func() error { return d.H.GrantWriters(f) })
}

// Calls on files that Run makes.

// clone shares the blocks of src with dst, where the file system can.
func (s *sysHook) clone(dst *pathsafe.File, src Source) error {
	return s.Do("clone", dst.Name(), func() error {
		return unix.IoctlFileClone(int(dst.Fd()), int(src.Fd()))
	})
}

// copy appends at most n bytes of src to dst, inside the kernel where it can.
func (s *sysHook) copy(dst *pathsafe.File, src Source, n int64) (done int64, err error) {
	err = s.Do("copy", dst.Name(), func() error {
		done, err = dst.CopyFrom(src, n)
		return err
	})
	return done, err
}

// startWriteBack makes the disk begin with n bytes at off. It promises nothing,
// so it has no error: the sync that follows has it.
func (s *sysHook) startWriteBack(f pathsafe.Opened, off, n int64) {
	_ = s.Do("start write-back", f.Name(), func() error {
		return unix.SyncFileRange(int(f.Fd()), off, n, unix.SYNC_FILE_RANGE_WRITE)
	})
}

// closeAll closes files whose content is durable.
func (s *sysHook) closeAll(name string, files []*pathsafe.File) error {
	return s.Do("close", name, func() error { return pathsafe.CloseAll(files) })
}

func (s *sysHook) setModTime(f pathsafe.Opened, t time.Time) error {
	ts, err := unix.TimeToTimespec(t)
	if err != nil {
		return err
	}
	times := []unix.Timespec{ts, ts}
	return s.Do("set times", f.Name(), func() error {
		err := unix.UtimesNanoAt(int(f.Fd()), "", times, unix.AT_EMPTY_PATH)
		if err == unix.EINVAL { // before Linux 5.8
			err = unix.UtimesNanoAt(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(int(f.Fd())), times, 0)
		}
		runtime.KeepAlive(f)
		return named("set times of", f, err)
	})
}

func (s *sysHook) chmod(f pathsafe.Opened, perm uint32) error {
	return s.Do("set mode", f.Name(), func() error { return named("set mode of", f, unix.Fchmod(int(f.Fd()), perm)) })
}

// Calls on whatever has metadata: a file ([pathsafe.FileNode]), or a directory.

func (s *sysHook) setOwner(n *pathsafe.Node, uid, gid uint32) error {
	return s.Do("set owner", n.Name(), func() error { return n.Chown(uid, gid) })
}

func (s *sysHook) setXattr(n *pathsafe.Node, x pathsafe.Xattr) error {
	return s.Do("set attribute", n.Name(), func() error { return n.SetXattr(x) })
}

func (s *sysHook) removeXattr(n *pathsafe.Node, name string) error {
	return s.Do("remove attribute", n.Name(), func() error { return n.RemoveXattr(name) })
}

// accessList returns the access of a file that is described by st.
func (s *sysHook) accessList(f pathsafe.Opened, st pathsafe.Stat) (access, error) {
	var list string
	err := s.Do("read access", f.Name(), func() (err error) {
		list, err = pathsafe.AccessList(f)
		return err
	})
	return accessOf(pathsafe.Access{Perm: st.Perm, GID: st.GID, ACL: list}), err
}

// access returns the access of a file.
func (s *sysHook) access(f *os.File) (access, error) {
	var got pathsafe.Access
	err := s.Do("read access", f.Name(), func() (err error) {
		got, err = pathsafe.FileAccess(f)
		return err
	})
	return accessOf(got), err
}

// flock locks a file, or returns pathsafe.ErrLocked at once.
func (s *sysHook) flock(f *os.File) error {
	return s.Do("lock", f.Name(), func() error {
		err := sys.Lock(f)
		if errors.Is(err, unix.EWOULDBLOCK) {
			return pathsafe.ErrLocked
		}
		return err
	})
}

// named adds the name of the call and of the file to an error.
func named(call string, f pathsafe.Opened, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %q: %w", call, f.Name(), err)
}
