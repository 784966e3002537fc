package sys

import (
	"io"
	"os"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// A Hook wraps the system calls of a package: every call that can fail goes through Do, so that
// a test can make each of them fail.
type Hook struct {
	Call func(op, path string, f func() error) error // nil: f is called
}

// Do makes a call on a path.
func (h *Hook) Do(op, path string, f func() error) error {
	if h.Call == nil {
		return f()
	}
	return h.Call(op, path, f)
}

// A Dir is a directory handle whose calls go through a hook.
type Dir struct {
	H    *pathsafe.Dir // nil of the zero Dir
	Hook *Hook
}

// Close has no error: nothing is written through the handle of a directory.
func (d Dir) Close() {
	if d.H != nil {
		_ = d.H.Close()
	}
}

// Enter opens the directory name of d without following links. The name need not be a valid
// path component.
func (d Dir) Enter(name string) (sub *pathsafe.Dir, err error) {
	err = d.Hook.Do("open directory", name, func() error {
		sub, err = d.H.OpenDir(name)
		return err
	})
	return sub, err
}

// Stat describes the entry name of d.
func (d Dir) Stat(name string) (st pathsafe.Stat, err error) {
	err = d.Hook.Do("stat", name, func() error {
		st, err = d.H.Lstat(name)
		return err
	})
	return st, err
}

// StatSelf describes d.
func (d Dir) StatSelf() (st pathsafe.Stat, err error) {
	err = d.Hook.Do("stat", ".", func() error {
		st, err = d.H.Stat()
		return err
	})
	return st, err
}

// Names returns the names in d.
func (d Dir) Names() (names []string, err error) {
	err = d.Hook.Do("list", d.H.Name(), func() error {
		names, err = d.H.Names()
		return err
	})
	return names, err
}

// OpenFile opens the regular file name of d, through no link, and waits for no lease.
func (d Dir) OpenFile(name string) (f *os.File, st pathsafe.Stat, err error) {
	err = d.Hook.Do("open", name, func() error {
		f, st, err = d.H.OpenNow(name)
		return err
	})
	return f, st, err
}

// Create makes a file for writing.
func (d Dir) Create(name string, perm uint32) (f *os.File, err error) {
	err = d.Hook.Do("create", name, func() error {
		f, err = d.H.Create(name, perm)
		return err
	})
	return f, err
}

// Mkdir makes a directory.
func (d Dir) Mkdir(name string, perm uint32) error {
	return d.Hook.Do("make directory", name, func() error { return d.H.Mkdir(name, perm) })
}

// Unlink removes a name that is not of a directory.
func (d Dir) Unlink(name string) error {
	return d.Hook.Do("unlink", name, func() error { return d.H.Unlink(name) })
}

// Rmdir removes an empty directory.
func (d Dir) Rmdir(name string) error {
	return d.Hook.Do("remove directory", name, func() error { return d.H.Rmdir(name) })
}

// Sync makes the names in d durable.
func (d Dir) Sync() error { return d.Hook.Do("sync", d.H.Name(), d.H.Sync) }

// SyncFS makes everything on the file system of d durable.
func (d Dir) SyncFS() error { return d.Hook.Do("sync file system", d.H.Name(), d.H.SyncFS) }

// Write writes data to a file, and reports a disk that has no room for it.
func (h *Hook) Write(f *os.File, data []byte) error {
	return h.Do("write", f.Name(), func() error {
		_, err := f.Write(data)
		return pathsafe.NoSpace(f, len(data), err)
	})
}

// Identify describes an open file.
func (h *Hook) Identify(f pathsafe.Opened) (st pathsafe.Stat, err error) {
	err = h.Do("stat", f.Name(), func() error {
		st, err = pathsafe.StatFile(f)
		return err
	})
	return st, err
}

// Xattrs returns the extended attributes of an inode, sorted by name.
func (h *Hook) Xattrs(n *pathsafe.Node) (all []pathsafe.Xattr, err error) {
	err = h.Do("read attributes", n.Name(), func() error {
		all, err = n.Xattrs()
		return err
	})
	return all, err
}

// A Written file can be synced and closed.
type Written interface {
	io.Closer
	Name() string
	Sync() error
}

// SyncFile makes the content of a file durable.
func (h *Hook) SyncFile(f Written) error { return h.Do("sync", f.Name(), f.Sync) }

// CloseFile closes a file that was written.
func (h *Hook) CloseFile(f Written) error { return h.Do("close", f.Name(), f.Close) }
