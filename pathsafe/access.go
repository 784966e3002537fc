package pathsafe

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"
)

// Access is the mode, group and access lists of an inode: what a new entry inherits from its
// directory, or what is set when it is created. It is comparable.
type Access struct {
	Perm    uint32 // permission, set-id and sticky bits, 07777
	GID     uint32
	ACL     string // the access list as the kernel keeps it; "" for none beyond Perm
	Default string // default access list of a directory, inherited by new entries; "" for none
}

// The extended attributes that hold access lists.
const (
	accessList  = "system.posix_acl_access"
	defaultList = "system.posix_acl_default"
)

const setGID = 0o2000

// ErrGroup reports that a directory cannot be given the required group, because this user is not a
// member of it.
var ErrGroup = errors.New("this user is not a member of the group that new files get there")

// Bits returns the permission bits. Modes are compared by these bits only, because a directory
// inherits the set-group-ID bit from its parent.
func (st Stat) Bits() uint32 { return st.Perm & 0o777 }

// Private reports whether the inode belongs to the user of this process, and grants
// nothing to others. An access list grants them nothing either then: the group bits
// bound it.
func (st Stat) Private() bool { return int(st.UID) == os.Geteuid() && st.Bits()&0o077 == 0 }

// Access returns the access of the directory.
func (d *Dir) Access() (a Access, err error) {
	err = d.do("read the access list of", ".", func(fd int) error {
		a, err = accessFd(fd, true)
		return err
	})
	return a, err
}

// FileAccess returns the access of the file that f holds.
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

// Bequeaths reports whether new entries inherit the same from both directories: the group, if the
// set-group-ID bit is set, and the default access list.
func (a Access) Bequeaths(other Access) bool {
	return a.Default == other.Default && a.Perm&setGID == other.Perm&setGID && (a.GID == other.GID || a.Perm&setGID == 0)
}

// BequeathLike sets the group, set-group-ID bit and default access list of the directory, so that
// new entries inherit from it as from a directory with the access like. It does not change the
// permission bits. It returns [ErrGroup] if this user cannot set the group.
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
	if now.GID != like.GID { // without the bit the group matters only on a file system mounted with grpid
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
	if now, err = d.Access(); err == nil && !now.Bequeaths(like) { // the kernel clears the bit if this user is not a member of the group
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

// Granted returns the permissions that the directory grants. With an access list, the group bits
// are those of the entry of the owning group, and not the mask, which the mode has in their place.
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

// groupOf returns the permissions that an access list grants to the owning group at most, or 0 if
// the list cannot be read.
func groupOf(list []byte) uint32 {
	for _, g := range grantsOf(string(list), 0) {
		if g.tag == tagGroup {
			return uint32(g.perm)
		}
	}
	return 0
}

// Tags of the entries of an access list, in the order in which the list has them.
const (
	tagOwner  = 0x01
	tagUser   = 0x02
	tagGroup  = 0x04
	tagGroups = 0x08
	tagMask   = 0x10
	tagOther  = 0x20
)

// A grant is an entry of an access list.
type grant struct {
	tag  uint16
	perm uint16
	id   uint32 // of a named user or group; else noID
}

const noID = 1<<32 - 1

// grantsOf returns the entries of a list, or for "" the entries that the permission bits are
// equivalent to.
func grantsOf(list string, perm uint32) (all []grant) {
	const header, entry = 4, 8
	for raw := []byte(list); len(raw) >= header+entry; raw = raw[entry:] {
		e := raw[header:]
		all = append(all, grant{binary.LittleEndian.Uint16(e), binary.LittleEndian.Uint16(e[2:]), binary.LittleEndian.Uint32(e[4:])})
	}
	if all == nil {
		bits := func(shift uint) uint16 { return uint16(perm >> shift & 7) }
		all = []grant{{tagOwner, bits(6), noID}, {tagGroup, bits(3), noID}, {tagOther, bits(0), noID}}
	}
	return all
}

// listOf is the inverse of grantsOf for a list.
func listOf(all []grant) []byte {
	raw := binary.LittleEndian.AppendUint32(nil, 2) // the version of the format
	for _, g := range all {
		raw = binary.LittleEndian.AppendUint16(raw, g.tag)
		raw = binary.LittleEndian.AppendUint16(raw, g.perm)
		raw = binary.LittleEndian.AppendUint32(raw, g.id)
	}
	return raw
}

// GrantWriters makes the file f readable and writable for the users who may create names in the
// directory, and for the owner of f, but for no others. It gives f the owner and the group of the
// directory if this process may do so. On a file system without access lists it omits users who may
// create names only as members of another group than that of f, or as the owner of the directory.
func (d *Dir) GrantWriters(f *os.File) error {
	return d.do("set the access of", filepath.Base(f.Name()), func(fd int) error {
		defer runtime.KeepAlive(f)
		dir, err := statFd(fd)
		if err != nil {
			return err
		}
		list, err := readList(func(buf []byte) (int, error) { return unix.Fgetxattr(fd, accessList, buf) })
		if err != nil {
			return err
		}
		file := int(f.Fd())
		if unix.Fchown(file, int(dir.UID), int(dir.GID)) != nil {
			_ = unix.Fchown(file, -1, int(dir.GID)) // on an error the access list is enough
		}
		st, err := statFd(file)
		if err != nil {
			return err
		}
		grants := writersOf(grantsOf(list, dir.Perm), dir, st)
		err = unix.Fsetxattr(file, accessList, listOf(grants), 0)
		if !errors.Is(err, unix.ENOTSUP) {
			return err
		}
		var perm uint32
		for _, g := range grants {
			switch g.tag {
			case tagOwner:
				perm |= uint32(g.perm) << 6
			case tagGroup:
				perm |= uint32(g.perm) << 3
			case tagOther:
				perm |= uint32(g.perm)
			}
		}
		return unix.Fchmod(file, perm)
	})
}

// writersOf returns the entries for a file, of those for the directory that it is in.
func writersOf(in []grant, dir, file Stat) []grant {
	const write, enter, use = 2, 1, 6
	bound := uint16(7)
	for _, g := range in {
		if g.tag == tagMask {
			bound = g.perm
		}
	}
	out := map[grant]uint16{{tag: tagOwner, id: noID}: use} // by tag and id
	var others uint16
	add := func(tag uint16, id, own uint32, itself uint16, perm uint16) {
		if id == own {
			tag, id = itself, noID
		}
		if key := (grant{tag: tag, id: id}); perm&(write|enter) == write|enter {
			out[key] = use
		} else if _, ok := out[key]; !ok {
			out[key] = 0
		}
	}
	for _, g := range in {
		switch g.tag {
		case tagOwner:
			add(tagUser, dir.UID, file.UID, tagOwner, g.perm)
		case tagUser:
			if g.id != dir.UID {
				add(tagUser, g.id, file.UID, tagOwner, g.perm&bound)
			}
		case tagGroup:
			add(tagGroups, dir.GID, file.GID, tagGroup, g.perm&bound)
		case tagGroups:
			add(tagGroups, g.id, file.GID, tagGroup, g.perm&bound)
		case tagOther:
			add(tagOther, noID, 0, tagOther, g.perm)
			others = out[grant{tag: tagOther, id: noID}]
		}
	}
	if _, ok := out[grant{tag: tagGroup, id: noID}]; !ok { // other groups have the grant of others
		out[grant{tag: tagGroup, id: noID}] = others
	}
	var all []grant
	for key, perm := range out {
		all = append(all, grant{key.tag, perm, key.id})
	}
	if len(all) > 3 {
		all = append(all, grant{tagMask, use, noID})
	}
	slices.SortFunc(all, func(a, b grant) int { return cmp.Or(cmp.Compare(a.tag, b.tag), cmp.Compare(a.id, b.id)) })
	return all
}
