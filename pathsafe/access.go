package pathsafe

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Access is who may do what with an inode: all of it that a new entry inherits
// from its directory, or that is set when it is made. It is comparable.
type Access struct {
	Perm    uint32 // permission, set-id and sticky bits, 07777
	GID     uint32
	ACL     string // the access list as the kernel keeps it; "" for none beyond Perm
	Default string // of a directory, the access list of what is made in it; "" for none
}

// The extended attributes that hold access lists.
const (
	accessList  = "system.posix_acl_access"
	defaultList = "system.posix_acl_default"
)

const setGID = 0o2000

// ErrGroup means that a directory cannot be given the group of another one, so that
// what is made in it would have the wrong one: this user is not a member.
var ErrGroup = errors.New("this user is not a member of the group that new entries get there")

// Bits returns the permission bits. Modes are compared by them: a directory
// inherits the set-group-id bit from the one that it is made in.
func (st Stat) Bits() uint32 { return st.Perm & 0o777 }

// Private reports whether the inode belongs to the user of this process, and grants
// nothing to others. An access list grants them nothing either then: the group bits
// bound it.
func (st Stat) Private() bool { return int(st.UID) == os.Geteuid() && st.Bits()&0o077 == 0 }

// Access returns who may do what with the directory.
func (d *Dir) Access() (a Access, err error) {
	err = d.do("read the access list of", ".", func(fd int) error {
		a, err = accessFd(fd, true)
		return err
	})
	return a, err
}

// FileAccess returns who may do what with the file that f holds.
func FileAccess(f *os.File) (Access, error) {
	var a Access
	err := retry(func() (err error) {
		a, err = accessFd(int(f.Fd()), false)
		return err
	})
	runtime.KeepAlive(f)
	if err != nil {
		return Access{}, fmt.Errorf("read the access list of %q: %w", f.Name(), err)
	}
	return a, nil
}

func accessFd(fd int, isDir bool) (Access, error) {
	st, err := statFd(fd)
	if err != nil {
		return Access{}, err
	}
	list := func(name string) (string, error) {
		return readList(func(buf []byte) (int, error) { return unix.Fgetxattr(fd, name, buf) })
	}
	a := Access{Perm: st.Perm, GID: st.GID}
	if a.ACL, err = list(accessList); err == nil && isDir {
		a.Default, err = list(defaultList)
	}
	return a, err
}

// readList reads an access list. A file system without them has none.
func readList(get func(buf []byte) (int, error)) (string, error) {
	var small [256]byte
	buf := small[:]
	n, err := get(buf)
	if errors.Is(err, unix.ERANGE) {
		buf = make([]byte, MaxXattrs)
		n, err = get(buf)
	}
	if errors.Is(err, unix.ENODATA) || errors.Is(err, unix.ENOTSUP) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// Bequeaths reports whether two directories give the same to what is made in them:
// the group, where the set-group-id bit is set, and the default access list.
func (a Access) Bequeaths(other Access) bool {
	return a.Default == other.Default && a.Perm&setGID == other.Perm&setGID && (a.GID == other.GID || a.Perm&setGID == 0)
}

// BequeathLike has the directory give to what is made in it what one with this access
// gives. Its permission bits stay. The error is [ErrGroup] where the group cannot be had.
func (d *Dir) BequeathLike(like Access) error {
	now, err := d.Access()
	if err != nil {
		return err
	}
	if now.Default != like.Default {
		err := d.do("set the access list of", ".", func(fd int) error { return setList(fd, like.Default) })
		if err != nil {
			return err
		}
	}
	if now.GID != like.GID { // without the bit it is of use on a file system mounted with grpid only
		err := d.do("set the group of", ".", func(fd int) error { return unix.Fchown(fd, -1, int(like.GID)) })
		if errors.Is(err, unix.EPERM) && like.Perm&setGID == 0 {
			err = nil
		}
		if errors.Is(err, unix.EPERM) {
			err = fmt.Errorf("group %d: %w", like.GID, ErrGroup)
		}
		if err != nil {
			return err
		}
	}
	if now.Perm&setGID != like.Perm&setGID {
		if err := d.Chmod(now.Perm&^setGID | like.Perm&setGID); err != nil {
			return err
		}
	}
	if now, err = d.Access(); err == nil && !now.Bequeaths(like) { // the kernel drops the bit of who is not a member
		err = fmt.Errorf("group %d: %w", like.GID, ErrGroup)
	}
	return err
}

func setList(fd int, list string) error {
	if list != "" {
		return unix.Fsetxattr(fd, defaultList, []byte(list), 0)
	}
	err := unix.Fremovexattr(fd, defaultList)
	if err == unix.ENODATA {
		return nil
	}
	return err
}

// Granted returns what the permission bits of the directory grant: where it has an
// access list, the bits of its group are those of the list, and not the bound of all
// its entries, which the mode shows in their place.
func (d *Dir) Granted() (perm uint32, err error) {
	err = d.do("stat", ".", func(fd int) error {
		perm, err = grantedBy(fd)
		return err
	})
	return perm, err
}

// GrantedPath is Granted for the directory p beneath d. Refusals are those of StatPath.
func (d *Dir) GrantedPath(p Path, links Links) (uint32, error) {
	if err := p.checkLength(); err != nil {
		return 0, d.wrap("stat", p.s, err)
	}
	fd, _, err := d.openPath(p.s, links)
	if err != nil {
		return 0, d.wrap("stat", p.s, err)
	}
	defer closeFd(fd)
	perm, err := grantedBy(fd)
	return perm, d.wrap("stat", p.s, err)
}

func grantedBy(fd int) (uint32, error) {
	st, err := statFd(fd)
	if err != nil {
		return 0, err
	}
	if err := checkProc(); err != nil {
		return 0, err
	}
	list, err := readList(func(buf []byte) (int, error) { return unix.Getxattr(procPath(fd), accessList, buf) })
	if err != nil {
		return 0, err
	}
	if list == "" {
		return st.Bits(), nil
	}
	return st.Bits()&^0o070 | groupOf([]byte(list))<<3&st.Bits(), nil
}

// groupOf returns what an access list grants the group of the inode, at most: 0 for a
// list that cannot be read.
func groupOf(list []byte) uint32 {
	const header, entry, groupTag = 4, 8, 4
	for ; len(list) >= header+entry; list = list[entry:] {
		if e := list[header:]; binary.LittleEndian.Uint16(e) == groupTag {
			return uint32(binary.LittleEndian.Uint16(e[2:]))
		}
	}
	return 0
}
