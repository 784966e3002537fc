package pathsafe

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"golang.org/x/sys/unix"
)

// An Opener opens files of the same directory. It resolves the path of the directory once, and
// keeps its handle for at most openerFiles further files or openerBytes bytes: these are opened by
// their name, with the same checks as by their path. If that fails, for example at a symbolic link,
// the file is opened by its path, so that errors are those of [Dir.OpenRegular] and [Dir.StatPath].
// If the directory is moved, it is still the one that is read: see [Opener.Still]. The zero Opener
// is ready; the caller closes it. It is not safe for concurrent use.
type Opener struct {
	root  *Dir
	links Links
	up    string // the path of the directory; "" for root itself
	at    int    // its descriptor, unless up is ""
	id    ID     // of the directory
	exact bool   // attributes that the kernel has cached are those of the file system
	held  bool
	moved bool  // a second lookup led to another directory
	files int   // that were looked up in it
	bytes int64 // of these that were opened
	proc  int   // /proc/self/fd; 0 until a file is opened
}

const (
	openerFiles = 256
	openerBytes = 4 << 20
)

// OpenRegular is [Dir.OpenRegular].
func (o *Opener) OpenRegular(d *Dir, p Path, links Links) (*File, Stat, error) {
	f, st, err := o.openNear(d, p, links)
	if err == nil {
		return f, st, nil
	}
	if errors.Is(err, unix.EMFILE) { // opening by path requires fewer descriptors
		o.Close()
	}
	if err := p.checkLength(); err != nil {
		return nil, Stat{}, d.wrap("open", p.s, err)
	}
	fd, st, err := d.openPath(p.s, links)
	if err != nil {
		return nil, Stat{}, d.wrap("open", p.s, err)
	}
	if f, err = reading(fd, p.s, st, func() (int, error) { return reopen(fd, unix.O_RDONLY) }); err != nil {
		return nil, Stat{}, d.wrap("open", p.s, err)
	}
	return f, st, nil
}

// StatPath is [Dir.StatPath].
func (o *Opener) StatPath(d *Dir, p Path, links Links) (Stat, error) {
	if at, base, err := o.enter(d, p, links); err == nil {
		st, err := statNear(at, base, o.id, o.exact)
		if err == nil && st.Mode&fs.ModeSymlink == 0 && st.IsOn(o.id) {
			return st, nil
		}
	}
	return d.StatPath(p, links)
}

// Still returns [ErrMoved] unless the path of the open directory still leads to it: then every file
// that was opened in it was beneath that path before and after.
func (o *Opener) Still() error {
	if !o.held || o.up == "" {
		return nil
	}
	if o.moved {
		return o.root.wrap("open directory", o.up, ErrMoved)
	}
	fd, err := o.root.walk(o.up, unix.O_PATH|unix.O_DIRECTORY, o.links)
	if err != nil {
		return o.root.wrap("open directory", o.up, err)
	}
	defer closeFd(fd)
	st, err := statFd(fd)
	if err == nil && st.ID != o.id {
		err = ErrMoved
	}
	return o.root.wrap("open directory", o.up, err)
}

// Close closes the open directory. The opener can be used again.
func (o *Opener) Close() {
	o.leave()
	if o.proc != 0 {
		closeFd(o.proc)
	}
	*o = Opener{}
}

// leave closes the directory that is held.
func (o *Opener) leave() {
	if o.held && o.up != "" {
		closeFd(o.at)
	}
	*o = Opener{proc: o.proc}
}

func (o *Opener) openNear(d *Dir, p Path, links Links) (*File, Stat, error) {
	at, base, err := o.enter(d, p, links)
	if err != nil {
		return nil, Stat{}, err
	}
	fd, err := d.w.open(at, base, unix.O_PATH, NoLinks)
	if err != nil {
		return nil, Stat{}, err
	}
	st, err := statFd(fd)
	if err != nil {
		closeFd(fd)
		return nil, Stat{}, err
	}
	o.bytes += st.Size
	f, err := reading(fd, p.s, st, func() (int, error) { return o.reopen(fd) })
	return f, st, err
}

// reopen opens the inode that fd refers to for reading. The handle of /proc/self/fd saves the
// lookup of that path.
func (o *Opener) reopen(fd int) (int, error) {
	if o.proc == 0 {
		proc, err := openProc()
		if err != nil {
			return -1, err
		}
		o.proc = proc
	}
	number := strconv.Itoa(fd)
	return retryFd(func() (int, error) {
		return unix.Openat(o.proc, number, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	})
}

// reading opens the regular file that fd refers to for reading. It takes ownership of fd.
func reading(fd int, name string, st Stat, reopen func() (int, error)) (*File, error) {
	defer closeFd(fd)
	if !st.Mode.IsRegular() {
		return nil, ErrNotRegular
	}
	opened, err := reopen()
	if err != nil {
		return nil, err
	}
	return &File{fd: opened, name: name, size: st.Size}, nil
}

// enter returns the directory of p, which stays the property of o, and the name in it.
func (o *Opener) enter(d *Dir, p Path, links Links) (at int, base string, err error) {
	if err := p.checkLength(); err != nil {
		return -1, "", err
	}
	root := d.Fd()
	if root < 0 {
		return -1, "", fs.ErrClosed
	}
	up, _ := p.Parent()
	if o.held && o.root == d && o.links == links && o.up == up.s && o.files < openerFiles && o.bytes < openerBytes {
		o.files++
		return o.at, p.Base(), nil
	}
	again := o.held && o.root == d && o.links == links && o.up == up.s
	before, moved := o.id, o.moved
	o.leave()
	at = root
	if up.s != "" {
		if at, err = d.walk(up.s, unix.O_PATH|unix.O_DIRECTORY, links); err != nil {
			return -1, "", err
		}
	}
	st, err := statFd(at)
	if err != nil {
		if up.s != "" {
			closeFd(at)
		}
		return -1, "", err
	}
	*o = Opener{root: d, links: links, up: up.s, at: at, id: st.ID, exact: isExact(at, st), held: true, moved: again && (moved || st.ID != before), files: 1, proc: o.proc}
	return at, p.Base(), nil
}

// isExact reports whether the kernel has the attributes of the files of a directory without a
// request to a server, because they are on a block device or in memory.
func isExact(dir int, st Stat) bool {
	if unix.Major(st.ID.Dev) != 0 {
		return true
	}
	var sf unix.Statfs_t
	err := retry(func() error { return unix.Fstatfs(dir, &sf) })
	return err == nil && sf.Type == unix.TMPFS_MAGIC
}

// statNear is statName in a directory of a known mount.
func statNear(dir int, name string, in ID, exact bool) (Stat, error) {
	st, err := statAt(dir, name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_STATX_DONT_SYNC)
	if err != nil || exact || st.ID.Mount != in.Mount {
		return st, err
	}
	return statAt(dir, name, unix.AT_SYMLINK_NOFOLLOW)
}

// CreateFile is [Dir.Create] for a [File].
func (d *Dir) CreateFile(name string, perm uint32) (*File, error) {
	if err := checkName(name); err != nil {
		return nil, d.wrap("create", name, err)
	}
	const flags = unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_RDWR
	fd, err := d.openFd("create", name, func(fd int) (int, error) {
		return unix.Openat(fd, name, flags, perm)
	})
	if err != nil {
		return nil, err
	}
	return &File{fd: fd, name: name, size: -1}, nil
}

// AccessList returns the access list of a file, "" for none beyond its permission bits.
func AccessList(f Opened) (string, error) {
	list, err := readList(func(buf []byte) (n int, err error) {
		err = retry(func() error {
			n, err = unix.Fgetxattr(int(f.Fd()), accessList, buf)
			return err
		})
		return n, err
	})
	if err != nil {
		return "", fmt.Errorf("read the access list of %q: %w", f.Name(), err)
	}
	return list, nil
}
