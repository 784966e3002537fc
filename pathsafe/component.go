package pathsafe

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// componentWalker opens one component after another and resolves links itself. It is for kernels
// without openat2, and for file systems with subvolumes, which openat2 enters like ordinary
// directories.
type componentWalker struct{}

// maxFollow is how many links one walk follows, as the kernel's MAXSYMLINKS.
const maxFollow = 40

// A climb is a walk in progress. Only two descriptors are open at a time: for a ".." in a link the
// walk starts again from the root, along the path found so far.
type climb struct {
	root     int
	rootID   ID
	links    Links
	names    [][]string // paths of the root that an absolute link may begin with
	at       int        // the directory reached; root itself at first
	done     []string   // the path to it, without links
	todo     []string
	followed int
}

func (componentWalker) open(root int, rel string, flags int, links Links) (int, error) {
	return climbFrom(root, rel, flags, links, nil)
}

func climbFrom(root int, rel string, flags int, links Links, names [][]string) (int, error) {
	st, err := statFd(root)
	if err != nil {
		return -1, err
	}
	c := &climb{root: root, rootID: st.ID, links: links, names: names, at: root, todo: strings.Split(rel, "/")}
	defer c.restart(nil)
	for len(c.todo) > 0 {
		if err := c.step(); err != nil {
			return -1, err
		}
	}
	return c.result(flags)
}

// result returns the handle that was reached.
func (c *climb) result(flags int) (int, error) {
	if flags == unix.O_PATH && c.at != c.root {
		fd := c.at
		c.at = c.root
		return fd, nil
	}
	return retryFd(func() (int, error) {
		return unix.Openat(c.at, ".", flags|unix.O_CLOEXEC, 0)
	})
}

// restart closes the current directory and continues from the root.
func (c *climb) restart(todo []string) {
	if c.at != c.root {
		closeFd(c.at)
	}
	c.at, c.done, c.todo = c.root, nil, todo
}

func (c *climb) step() error {
	name := c.todo[0]
	c.todo = c.todo[1:]
	switch name {
	case "", ".":
		return nil
	case "..":
		if len(c.done) == 0 {
			return ErrEscape
		}
		c.restart(slices.Concat(c.done[:len(c.done)-1], c.todo))
		return nil
	}
	return c.enter(name)
}

func (c *climb) enter(name string) error {
	fd, err := retryFd(func() (int, error) {
		return unix.Openat(c.at, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return tooLong(err)
	}
	st, err := peekFd(fd)
	switch {
	case err != nil:
	case !st.IsOn(c.rootID):
		err = crossing(fd, st, c.rootID)
	case st.Mode&fs.ModeSymlink != 0:
		err = c.follow(fd)
	case !st.Mode.IsDir() && len(c.todo) > 0:
		err = unix.ENOTDIR
	default:
		c.advance(fd, name)
		return nil
	}
	closeFd(fd)
	return err
}

func (c *climb) advance(fd int, name string) {
	if c.at != c.root {
		closeFd(c.at)
	}
	c.at = fd
	c.done = append(c.done, name)
}

// follow prepends the target of the link fd to the remaining components.
func (c *climb) follow(fd int) error {
	if c.links == NoLinks {
		return ErrSymlink
	}
	if c.followed++; c.followed > maxFollow {
		return ErrEscape
	}
	buf := make([]byte, MaxPath+1)
	n, err := unix.Readlinkat(fd, "", buf)
	if err != nil {
		return err
	}
	target := string(buf[:n])
	if strings.HasPrefix(target, "/") {
		rest, ok := beneath(c.names, target)
		if !ok {
			return ErrEscape
		}
		c.restart(slices.Concat(rest, c.todo))
		return nil
	}
	if target == "" {
		return unix.ENOENT
	}
	c.todo = slices.Concat(strings.Split(target, "/"), c.todo)
	return nil
}

func tooLong(err error) error {
	if errors.Is(err, unix.ENAMETOOLONG) {
		return ErrTooLong
	}
	return err
}
