package served

import (
	"errors"
	"strings"

	"golang.org/x/sys/unix"
)

// maxLinks is how many symbolic links a path may go through, as for the kernel.
const maxLinks = 40

// OpenDir opens the directory at a path with O_PATH and returns its descriptor. It opens one
// component at a time: no name is looked up in a file system that another user serves
// ([ErrForeign]), since that would send a request to the server. The directory itself may be the
// root of such a file system, since opening it sends none. A path may be longer than the kernel's
// limit for a single call.
func OpenDir(path string) (int, error) { return openDir(path, maxLinks) }

// OpenReal is OpenDir for a path without symbolic links: it returns ELOOP for a link.
func OpenReal(path string) (int, error) { return openDir(path, 0) }

func openDir(path string, links int) (int, error) {
	if path == "" {
		return -1, unix.ENOENT
	}
	if len(path) >= unix.PathMax {
		return -1, unix.ENAMETOOLONG
	}
	w := walk{fd: -1, todo: strings.Split(path, "/"), links: links}
	start := "."
	if strings.HasPrefix(path, "/") {
		start = "/"
	}
	err := w.enter(unix.AT_FDCWD, start)
	for err == nil && len(w.todo) > 0 {
		err = w.step()
	}
	if err != nil {
		w.close()
		return -1, err
	}
	return w.fd, nil
}

// walk is the current directory, and the remaining components.
type walk struct {
	fd    int
	todo  []string
	links int // that may follow
}

func (w *walk) close() {
	if w.fd >= 0 {
		_ = unix.Close(w.fd)
	}
	w.fd = -1
}

// enter replaces the directory by one in it.
func (w *walk) enter(dir int, name string) error {
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	w.close()
	w.fd = fd
	return nil
}

func (w *walk) step() error {
	name := w.todo[0]
	w.todo = w.todo[1:]
	if name == "" || name == "." {
		return nil
	}
	if err := Check(w.fd); err != nil {
		return err
	}
	err := w.enter(w.fd, name)
	if !errors.Is(err, unix.ENOTDIR) {
		return err
	}
	target, linkErr := readlinkAt(w.fd, name)
	if linkErr != nil {
		return err
	}
	if w.links--; w.links < 0 {
		return unix.ELOOP
	}
	w.todo = append(strings.Split(target, "/"), w.todo...)
	if strings.HasPrefix(target, "/") {
		return w.enter(unix.AT_FDCWD, "/")
	}
	return nil
}

func readlinkAt(dir int, name string) (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(dir, name, buf)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}
