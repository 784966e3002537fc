package pathsafe

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"

	"github.com/spectrumfs/spectrum/internal/served"
	"golang.org/x/sys/unix"
)

// OpenRegular opens the regular file p beneath d for reading and describes it. Anything else is not
// opened: ErrNotRegular. Other errors are fs.ErrNotExist (also if a parent is not a directory),
// ErrSymlink (with NoLinks), ErrEscape (with links allowed), ErrCrossesMount and ErrTooLong.
func (d *Dir) OpenRegular(p Path, links Links) (*os.File, Stat, error) {
	if err := p.checkLength(); err != nil {
		return nil, Stat{}, d.wrap("open", p.s, err)
	}
	return d.openRegular(p.s, links)
}

// Open is OpenRegular for the single component name, through no link.
func (d *Dir) Open(name string) (*os.File, Stat, error) {
	if err := checkName(name); err != nil {
		return nil, Stat{}, d.wrap("open", name, err)
	}
	return d.openRegular(name, NoLinks)
}

// OpenNow is Open without waiting for the holder of a lease on the file (fcntl): it returns
// [ErrLeased] until the holder has released it at the kernel's request.
func (d *Dir) OpenNow(name string) (*os.File, Stat, error) {
	if err := checkName(name); err != nil {
		return nil, Stat{}, d.wrap("open", name, err)
	}
	f, st, err := d.openAs(name, NoLinks, unix.O_RDONLY|unix.O_NONBLOCK)
	if errors.Is(err, unix.EAGAIN) {
		err = fmt.Errorf("%w: %w", ErrLeased, err)
	}
	if err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_SETFL, 0)
	}
	return f, st, err
}

// OpenToWrite opens for reading and writing the regular file name, through no link. Refusals
// are those of Open.
func (d *Dir) OpenToWrite(name string) (*os.File, error) {
	if err := checkName(name); err != nil {
		return nil, d.wrap("open", name, err)
	}
	f, _, err := d.openAs(name, NoLinks, unix.O_RDWR)
	return f, err
}

// StatPath describes the entry at p beneath d without opening it, whatever
// it is. Refusals are those of OpenRegular.
func (d *Dir) StatPath(p Path, links Links) (Stat, error) {
	if err := p.checkLength(); err != nil {
		return Stat{}, d.wrap("stat", p.s, err)
	}
	fd, st, err := d.openPath(p.s, links)
	if err != nil {
		return Stat{}, d.wrap("stat", p.s, err)
	}
	closeFd(fd)
	return st, nil
}

func (d *Dir) openRegular(rel string, links Links) (*os.File, Stat, error) {
	return d.openAs(rel, links, unix.O_RDONLY)
}

func (d *Dir) openAs(rel string, links Links, access int) (*os.File, Stat, error) {
	fd, st, err := d.openPath(rel, links)
	if err != nil {
		return nil, Stat{}, d.wrap("open", rel, err)
	}
	defer closeFd(fd)
	if !st.Mode.IsRegular() {
		return nil, Stat{}, d.wrap("open", rel, ErrNotRegular)
	}
	reading, err := reopen(fd, access)
	if err != nil {
		return nil, Stat{}, d.wrap("open", rel, err)
	}
	return os.NewFile(uintptr(reading), rel), st, nil
}

// openPath returns a handle without read access, and describes it.
func (d *Dir) openPath(rel string, links Links) (int, Stat, error) {
	fd, err := d.walk(rel, unix.O_PATH, links)
	if errors.Is(err, unix.ENOTDIR) {
		err = fmt.Errorf("%w: a parent is not a directory", fs.ErrNotExist)
	}
	if err != nil {
		return -1, Stat{}, err
	}
	st, err := statFd(fd)
	if err != nil {
		closeFd(fd)
		return -1, Stat{}, err
	}
	return fd, st, nil
}

// walk opens rel beneath d, with plain errors.
func (d *Dir) walk(rel string, flags int, links Links) (int, error) {
	root := d.Fd()
	if root < 0 {
		return -1, fs.ErrClosed
	}
	defer runtime.KeepAlive(d)
	if links == LinksUnder {
		return d.walkUnder(root, rel, flags)
	}
	return d.w.open(root, rel, flags, links)
}

// OpenFile opens for reading the regular file that an absolute path, or one from the working
// directory, names now, and describes it. Links in parents are followed, a final link is
// ErrSymlink, and the file may be on a mount of its own. An entry that is not a regular file
// is never opened: ErrNotRegular. No server of another user gets a request
// ([served.ErrForeign]).
func OpenFile(name string) (*os.File, Stat, error) {
	dir, base := filepath.Split(name)
	above, err := retryFd(func() (int, error) { return served.OpenDir(dir + ".") })
	if err != nil {
		return nil, Stat{}, err
	}
	defer closeFd(above)
	if err := served.Check(above); err != nil {
		return nil, Stat{}, err
	}
	fd, err := retryFd(func() (int, error) {
		return unix.Openat(above, base, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, Stat{}, err
	}
	defer closeFd(fd)
	if err := served.Check(fd); err != nil {
		return nil, Stat{}, err
	}
	st, err := statFd(fd)
	if err == nil && st.Mode&fs.ModeSymlink != 0 {
		err = ErrSymlink
	}
	if err == nil && !st.Mode.IsRegular() {
		err = ErrNotRegular
	}
	if err != nil {
		return nil, Stat{}, err
	}
	reading, err := reopen(fd, unix.O_RDONLY)
	if err != nil {
		return nil, Stat{}, err
	}
	return os.NewFile(uintptr(reading), name), st, nil
}

// reopen opens the inode that fd refers to with this access.
func reopen(fd, access int) (int, error) {
	if err := checkProc(); err != nil {
		return -1, err
	}
	name := procPath(fd)
	return retryFd(func() (int, error) {
		return unix.Open(name, access|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	})
}

func procPath(fd int) string {
	buf := append(make([]byte, 0, 32), "/proc/self/fd/"...)
	return string(strconv.AppendInt(buf, int64(fd), 10))
}

// openProc opens /proc/self/fd of the kernel: descriptors are opened again by their numbers in it.
func openProc() (int, error) {
	if err := checkProc(); err != nil {
		return -1, err
	}
	fd, err := retryFd(func() (int, error) {
		return unix.Open("/proc/self/fd", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return -1, err
	}
	var sf unix.Statfs_t
	if err := retry(func() error { return unix.Fstatfs(fd, &sf) }); err != nil || sf.Type != unix.PROC_SUPER_MAGIC {
		closeFd(fd)
		return -1, ErrNoProc
	}
	return fd, nil
}

// ErrNoProc is not an errno: "no such file" would be read as a missing source.
var ErrNoProc = served.ErrNoProc

// checkProc makes sure, once, that /proc/self/fd is the kernel's.
var checkProc = sync.OnceValue(func() error {
	var sf unix.Statfs_t
	err := retry(func() error { return unix.Statfs("/proc/self/fd", &sf) })
	if err != nil || sf.Type != unix.PROC_SUPER_MAGIC {
		return ErrNoProc
	}
	return nil
})
