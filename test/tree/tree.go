// Package tree walks directories for the judges of tests. It goes from handle to handle,
// since paths may be too long for one call, follows no link, and opens nothing but
// directories until the content of a regular file is asked for.
package tree

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// A Node is what stands at a path. That of a walk is valid until visit returns.
type Node struct {
	unix.Stat_t
	dir  int // the handle of its directory
	name string
}

// Look returns what stands at a path.
func Look(path string) (*Node, error) {
	n := &Node{dir: unix.AT_FDCWD, name: path}
	if err := unix.Lstat(path, &n.Stat_t); err != nil {
		return nil, n.failed("stat", err)
	}
	return n, nil
}

// Kind returns the type bits of the mode.
func (n *Node) Kind() uint32 { return n.Mode & unix.S_IFMT }

// IsDir reports whether it is a directory.
func (n *Node) IsDir() bool { return n.Kind() == unix.S_IFDIR }

// FileMode returns the mode as package os has it.
func (n *Node) FileMode() fs.FileMode {
	mode := fs.FileMode(n.Mode & 0o777)
	for bit, is := range map[uint32]fs.FileMode{unix.S_ISUID: fs.ModeSetuid, unix.S_ISGID: fs.ModeSetgid, unix.S_ISVTX: fs.ModeSticky} {
		if n.Mode&bit != 0 {
			mode |= is
		}
	}
	return mode | kinds[n.Kind()]
}

var kinds = map[uint32]fs.FileMode{
	unix.S_IFREG: 0, unix.S_IFDIR: fs.ModeDir, unix.S_IFLNK: fs.ModeSymlink, unix.S_IFIFO: fs.ModeNamedPipe,
	unix.S_IFSOCK: fs.ModeSocket, unix.S_IFBLK: fs.ModeDevice, unix.S_IFCHR: fs.ModeDevice | fs.ModeCharDevice,
}

// Content returns what is in a regular file, or where a link leads; "" of anything else.
func (n *Node) Content() (string, error) {
	switch n.Kind() {
	case unix.S_IFREG:
		fd, err := unix.Openat(n.dir, n.name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return "", n.failed("open", err)
		}
		f := os.NewFile(uintptr(fd), n.name)
		defer f.Close()
		raw, err := io.ReadAll(f)
		return string(raw), err
	case unix.S_IFLNK:
		target := make([]byte, unix.PathMax)
		length, err := unix.Readlinkat(n.dir, n.name, target)
		if err != nil {
			return "", n.failed("readlink", err)
		}
		return string(target[:length]), nil
	}
	return "", nil
}

func (n *Node) failed(op string, err error) error { return fmt.Errorf("%s %q: %w", op, n.name, err) }

// Walk calls visit for what stands at root, as ".", and for all that is beneath it, in the
// order of [fs.WalkDir]. visit is called with an error, and without a node, for what stat
// fails on. An error that it returns ends the walk, but for [fs.SkipDir], which leaves out
// what is beneath a directory. A root that is a link is not followed, unless a slash stands
// behind it.
func Walk(root string, visit func(path string, n *Node, err error) error) error {
	top, err := Look(root)
	if err != nil {
		return err
	}
	if !top.IsDir() {
		return visit(".", top, nil)
	}
	fd, err := unix.Open(root, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return top.failed("open", err)
	}
	dir := os.NewFile(uintptr(fd), root)
	defer dir.Close()
	if err := unix.Fstat(fd, &top.Stat_t); err != nil {
		return top.failed("stat", err)
	}
	err = visit(".", top, nil)
	if errors.Is(err, fs.SkipDir) {
		return nil
	}
	if err != nil {
		return err
	}
	return walk(dir, "", visit)
}

func walk(dir *os.File, prefix string, visit func(path string, n *Node, err error) error) error {
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		if err := walkName(dir, prefix, name, visit); err != nil {
			return err
		}
	}
	return nil
}

func walkName(dir *os.File, prefix, name string, visit func(path string, n *Node, err error) error) error {
	n := &Node{dir: int(dir.Fd()), name: name}
	if err := unix.Fstatat(n.dir, name, &n.Stat_t, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return visit(prefix+name, nil, n.failed("stat", err))
	}
	err := visit(prefix+name, n, nil)
	switch {
	case !n.IsDir():
		return err
	case errors.Is(err, fs.SkipDir):
		return nil
	case err != nil:
		return err
	}
	fd, err := unix.Openat(n.dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return n.failed("open", err)
	}
	below := os.NewFile(uintptr(fd), name)
	defer below.Close()
	return walk(below, prefix+name+"/", visit)
}
