package snapshot

import (
	"errors"
	"io"
	"iter"
	"os"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"golang.org/x/sys/unix"
)

// A seam is the way of this package to the system: every call that can fail
// goes through do, so that a test can make each of them fail.
type seam struct {
	hook  func(op, path string, f func() error) error
	watch Watch
	// everywhere has content taken over on any file system: the tests of that are in
	// memory.
	everywhere bool
}

// Watch hears how far long work on a store has got. Each may be nil.
type Watch struct {
	// Begin is told what begins ("keeping", "reading", "writing", "checking", or "syncing",
	// which has no bytes), of how many files and bytes.
	Begin func(work string, files int, bytes int64)
	// Waits is told which file of a root is waited for, when a wait begins: another process holds
	// a lease on it.
	Waits func(path string)
	// Read is told how many bytes more were read, by several goroutines at once.
	Read func(bytes int64)
}

// Watch has w hear of all work that begins from now on.
func (s *Store) Watch(w Watch) { s.seam.watch = w }

// begin reports the files of the work.
func (w Watch) begin(work string, about iter.Seq[*Entry]) {
	if w.Begin == nil {
		return
	}
	files, bytes := 0, int64(0)
	for e := range about {
		files++
		bytes += e.Size
	}
	w.Begin(work, files, bytes)
}

// only are the entries that are wanted.
func only(entries []Entry, wanted func(*Entry) bool) iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		for i := range entries {
			if e := &entries[i]; wanted(e) && !yield(e) {
				return
			}
		}
	}
}

func (w Watch) sync() {
	if w.Begin != nil {
		w.Begin("syncing", 0, 0)
	}
}

func (s *seam) do(op, path string, f func() error) error {
	if s.hook == nil {
		return f()
	}
	return s.hook(op, path, f)
}

// A dir is a directory handle whose calls go through the seam.
type dir struct {
	h *pathsafe.Dir
	s *seam
}

// close has no error: nothing is written through the handle of a directory.
func (d dir) close() {
	if d.h != nil {
		_ = d.h.Close()
	}
}

func (d dir) reopen() (own dir, err error) {
	own.s = d.s
	err = d.s.do("reopen", d.h.Name(), func() error {
		own.h, err = d.h.Reopen()
		return err
	})
	return own, err
}

func (d dir) open(name string) (sub dir, err error) {
	sub.s = d.s
	err = d.s.do("open directory", name, func() error {
		sub.h, err = d.h.OpenDir(name)
		return err
	})
	return sub, err
}

// make makes a directory unless it is there, and opens it.
func (d dir) make(name string) (dir, error) {
	err := d.s.do("make directory", name, func() error { return d.h.Mkdir(name, 0o700) })
	if err != nil && !errors.Is(err, os.ErrExist) {
		return dir{}, err
	}
	return d.open(name)
}

// makeDurable is make for a directory, and makes its name durable, even if the process that
// made it was killed.
func (d dir) makeDurable(name string) (dir, error) {
	sub, err := d.make(name)
	if err != nil {
		return dir{}, err
	}
	if err := d.sync(); err != nil {
		sub.close()
		return dir{}, err
	}
	return sub, nil
}

func (d dir) stat(name string) (st pathsafe.Stat, err error) {
	err = d.s.do("stat", name, func() error {
		st, err = d.h.Lstat(name)
		return err
	})
	return st, err
}

func (d dir) statSelf() (st pathsafe.Stat, err error) {
	err = d.s.do("stat", d.h.Name(), func() error {
		st, err = d.h.Stat()
		return err
	})
	return st, err
}

func (d dir) names() (names []string, err error) {
	err = d.s.do("list", d.h.Name(), func() error {
		names, err = d.h.Names()
		return err
	})
	return names, err
}

func (d dir) openFile(name string) (f *os.File, st pathsafe.Stat, err error) {
	err = d.s.do("open", name, func() error {
		f, st, err = d.h.OpenNow(name)
		return err
	})
	return f, st, err
}

func (d dir) create(name string, perm uint32) (f *os.File, err error) {
	err = d.s.do("create", name, func() error {
		f, err = d.h.Create(name, perm)
		return err
	})
	return f, err
}

func (d dir) mkdir(name string) error {
	return d.s.do("make directory", name, func() error { return d.h.Mkdir(name, 0o700) })
}

func (d dir) rename(name string, to dir, newName string) error {
	return d.s.do("rename", newName, func() error { return d.h.RenameNoReplace(name, to.h, newName) })
}

func (d dir) swap(name string, with dir, other string) error {
	return d.s.do("swap", other, func() error { return d.h.RenameExchange(name, with.h, other) })
}

func (d dir) unlink(name string) error {
	return d.s.do("unlink", name, func() error { return d.h.Unlink(name) })
}

func (d dir) rmdir(name string) error {
	return d.s.do("remove directory", name, func() error { return d.h.Rmdir(name) })
}

func (d dir) readlink(name string) (target string, err error) {
	err = d.s.do("read link", name, func() error {
		target, err = d.h.Readlink(name)
		return err
	})
	return target, err
}

func (d dir) xattrs(name string) (all []pathsafe.Xattr, err error) {
	err = d.s.do("read attributes", name, func() error {
		node, err := d.h.Pin(name)
		if err != nil {
			return err
		}
		defer node.Close()
		all, err = node.Xattrs()
		return err
	})
	return all, err
}

func (d dir) sync() error { return d.s.do("sync", d.h.Name(), d.h.Sync) }

func (d dir) syncFS() error { return d.s.do("sync file system", d.h.Name(), d.h.SyncFS) }

// Calls on files and inodes.

func (s *seam) xattrs(name string, node *pathsafe.Node) (all []pathsafe.Xattr, err error) {
	err = s.do("read attributes", name, func() error {
		all, err = node.Xattrs()
		return err
	})
	return all, err
}

// read fills buf as far as the file goes.
func (s *seam) read(f *os.File, buf []byte) (n int, err error) {
	err = s.do("read", f.Name(), func() error {
		n, err = io.ReadFull(f, buf)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = nil
		}
		return err
	})
	if s.watch.Read != nil {
		s.watch.Read(int64(n))
	}
	return n, err
}

func (s *seam) write(f *os.File, data []byte) error {
	return s.do("write", f.Name(), func() error {
		_, err := f.Write(data)
		return pathsafe.NoSpace(f, len(data), err)
	})
}

// rewind goes back to the beginning of f.
func (s *seam) rewind(f *os.File) error {
	return s.do("seek", f.Name(), func() error {
		_, err := f.Seek(0, io.SeekStart)
		return err
	})
}

// skip leaves a hole of n bytes.
func (s *seam) skip(f *os.File, n int) error {
	return s.do("seek", f.Name(), func() error {
		_, err := f.Seek(int64(n), io.SeekCurrent)
		return err
	})
}

func (s *seam) truncate(f *os.File, size int64) error {
	return s.do("truncate", f.Name(), func() error { return f.Truncate(size) })
}

// clone shares the blocks of src with dst, where the file system can.
func (s *seam) clone(dst, src *os.File) error {
	return s.do("clone", dst.Name(), func() error {
		return unix.IoctlFileClone(int(dst.Fd()), int(src.Fd()))
	})
}

// holes returns whether f has a hole before its end, and how many bytes are holes, counted
// until they are too many.
func (s *seam) holes(f *os.File, size int64) (sparse bool, bytes int64, err error) {
	err = s.do("find hole", f.Name(), func() error {
		hole, err := f.Seek(0, unix.SEEK_HOLE)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENXIO) || errors.Is(err, unix.ENOTSUP) {
			return nil
		}
		if err != nil {
			return err
		}
		if sparse = hole < size; sparse {
			bytes = bundle.Holes(f, size)
		}
		_, err = f.Seek(0, io.SeekStart)
		return err
	})
	return sparse, bytes, err
}

func (s *seam) identify(f *os.File) (st pathsafe.Stat, err error) {
	err = s.do("stat", f.Name(), func() error {
		st, err = pathsafe.StatFile(f)
		return err
	})
	return st, err
}

func (s *seam) syncFile(f *os.File) error { return s.do("sync", f.Name(), f.Sync) }

func (s *seam) closeFile(f *os.File) error { return s.do("close", f.Name(), f.Close) }
