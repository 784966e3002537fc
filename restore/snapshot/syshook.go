package snapshot

import (
	"errors"
	"io"
	"iter"
	"os"

	"github.com/spectrumfs/spectrum/internal/sys"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"golang.org/x/sys/unix"
)

// A sysHook wraps all system calls of this package.
type sysHook struct {
	sys.Hook
	watch Watch
	// everywhere has content taken over on any file system: the tests of that are in
	// memory.
	everywhere bool
}

// Watch has functions that report the progress of long work on a store. Each may be nil.
type Watch struct {
	// Begin is called with the kind of work that begins ("keeping", "reading", "writing", "checking", or "syncing",
	// which has no bytes), and its number of files and bytes.
	Begin func(work string, files int, bytes int64)
	// Waits is called with the file of a root that is waited for, when a wait begins: another process holds
	// a lease on it.
	Waits func(path string)
	// Read is called with the number of bytes that were read, by several goroutines at once.
	Read func(bytes int64)
}

// Watch sets the functions that are called for all work that begins from now on.
func (s *Store) Watch(w Watch) { s.sysHook.watch = w }

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

// only returns the matching entries.
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

// A dir is a directory handle whose calls go through the hook.
type dir struct {
	sys.Dir
	s *sysHook
}

func on(h *pathsafe.Dir, s *sysHook) dir { return dir{sys.Dir{H: h, Hook: &s.Hook}, s} }

func (d dir) reopen() (dir, error) {
	var own *pathsafe.Dir
	err := d.s.Do("reopen", d.H.Name(), func() (err error) {
		own, err = d.H.Reopen()
		return err
	})
	return on(own, d.s), err
}

func (d dir) open(name string) (dir, error) {
	sub, err := d.Enter(name)
	return on(sub, d.s), err
}

// make makes a directory unless it is there, and opens it.
func (d dir) make(name string) (dir, error) {
	if err := d.Mkdir(name, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
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
	if err := d.Sync(); err != nil {
		sub.Close()
		return dir{}, err
	}
	return sub, nil
}

func (d dir) rename(name string, to dir, newName string) error {
	return d.s.Do("rename", newName, func() error { return d.H.RenameNoReplace(name, to.H, newName) })
}

func (d dir) exchange(name string, with dir, other string) error {
	return d.s.Do("exchange", other, func() error { return d.H.RenameExchange(name, with.H, other) })
}

func (d dir) readlink(name string) (target string, err error) {
	err = d.s.Do("read link", name, func() error {
		target, err = d.H.Readlink(name)
		return err
	})
	return target, err
}

func (d dir) xattrs(name string) (all []pathsafe.Xattr, err error) {
	err = d.s.Do("read attributes", name, func() error {
		node, err := d.H.Pin(name)
		if err != nil {
			return err
		}
		defer node.Close()
		all, err = node.Xattrs()
		return err
	})
	return all, err
}

// Calls on files and inodes.

// read fills buf as far as the file goes.
func (s *sysHook) read(f *os.File, buf []byte) (n int, err error) {
	err = s.Do("read", f.Name(), func() error {
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

// rewind goes back to the beginning of f.
func (s *sysHook) rewind(f *os.File) error {
	return s.Do("seek", f.Name(), func() error {
		_, err := f.Seek(0, io.SeekStart)
		return err
	})
}

// skip leaves a hole of n bytes.
func (s *sysHook) skip(f *os.File, n int) error {
	return s.Do("seek", f.Name(), func() error {
		_, err := f.Seek(int64(n), io.SeekCurrent)
		return err
	})
}

func (s *sysHook) truncate(f *os.File, size int64) error {
	return s.Do("truncate", f.Name(), func() error { return f.Truncate(size) })
}

// clone shares the blocks of src with dst, where the file system can.
func (s *sysHook) clone(dst, src *os.File) error {
	return s.Do("clone", dst.Name(), func() error {
		return unix.IoctlFileClone(int(dst.Fd()), int(src.Fd()))
	})
}

// holes returns whether f has a hole before its end, and how many bytes are holes, counted
// until they are too many.
func (s *sysHook) holes(f *os.File, size int64) (sparse bool, bytes int64, err error) {
	err = s.Do("find hole", f.Name(), func() error {
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
