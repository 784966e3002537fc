package staging

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

// A LeftOut is metadata of a replaced file that the new file did not get.
type LeftOut struct {
	Path pathsafe.Path
	What string // "owner", "group", "set-id bits" or the name of an extended attribute
	Why  error
}

// LeftOut returns the metadata of replaced files that the new files did not get, after Stage,
// in the order of the swaps.
func (tx *Tx) LeftOut() []LeftOut { return tx.a.allLeftOut() }

// LeftOut is [Tx.LeftOut] for an attempt that Resolve has completed, until Forget.
func (u *Unfinished) LeftOut() []LeftOut {
	if u.end.Result != Completed {
		return nil
	}
	return u.a.allLeftOut()
}

func (a *attempt) allLeftOut() (all []LeftOut) {
	for i := range a.swaps {
		for _, l := range a.swaps[i].leftOut {
			l.Path = a.swaps[i].path
			all = append(all, l)
		}
	}
	return all
}

// taken is the metadata that a file takes over from the one that it replaces, beside its
// access.
type taken struct {
	uid    uint32
	xattrs []pathsafe.Xattr
}

// Values of LeftOut.What, beside extended attributes.
const (
	ofOwner = "owner"
	ofGroup = "group"
	ofSetID = "set-id bits"
)

// The extended attribute with the access list; XFS shows it to root under a second name.
const (
	accessList      = "system.posix_acl_access"
	accessListOfXFS = "trusted.SGI_ACL_FILE"
)

// errNever is the reason why metadata is left out that is wrong for another content.
var errNever = errors.New("it is of the replaced content, and is never taken over")

// ofContent reports whether an extended attribute belongs to this inode or content:
// capabilities, signatures, and the records of an overlay in its layers.
func ofContent(name string) bool {
	switch name {
	case "security.capability", "security.ima", "security.evm":
		return true
	}
	return strings.HasPrefix(name, "trusted.overlay.") || strings.HasPrefix(name, "user.overlay.")
}

// takeOver sets the mode of a copy that replaces a file and, from that file, owner, group and
// extended attributes, access lists too. The access list is first, since it sets permission
// bits, which this user needs for the other attributes; the owner is last, since this user may
// set less on a file of another user. What this user may not set is left out.
func (c *copier) takeOver(dst *pathsafe.File, f *copiedFile) error {
	s := &c.swaps[f.top]
	leave := func(what string, err error) error {
		for _, denied := range []error{fs.ErrPermission, unix.ENOTSUP, unix.EINVAL, errNever} {
			if errors.Is(err, denied) {
				s.leftOut = append(s.leftOut, LeftOut{What: what, Why: err})
				return nil
			}
		}
		return err
	}
	node := pathsafe.FileNode(dst)
	made, err := c.s.Xattrs(node)
	if err != nil {
		return err
	}
	isList := func(x pathsafe.Xattr) bool { return x.Name == accessList }
	if i := slices.IndexFunc(s.has.Xattrs, isList); i >= 0 {
		err = leave(accessList, c.s.setXattr(node, s.has.Xattrs[i]))
	} else if slices.ContainsFunc(made, isList) { // that of its directory
		err = leave(accessList, c.s.removeXattr(node, accessList))
	}
	if err == nil {
		err = c.s.chmod(dst, ownFile)
	}
	if err != nil {
		return err
	}
	f.created.taken = &taken{}
	for _, x := range s.has.Xattrs {
		if isList(x) || x.Name == accessListOfXFS {
			continue
		}
		if ofContent(x.Name) {
			err = errNever
		} else if !slices.Contains(made, x) {
			err = c.s.setXattr(node, x)
		}
		if err == nil {
			f.created.taken.xattrs = append(f.created.taken.xattrs, x)
		}
		if err = leave(x.Name, err); err != nil {
			return err
		}
	}
	if s.has.Mode&0o6000 != 0 {
		_ = leave(ofSetID, errNever)
	}
	if err := c.s.chmod(dst, f.Perm); err != nil {
		return err
	}
	f.created.taken.uid, err = c.takeOwner(dst, s.has, leave)
	return err
}

// takeOwner sets the group and then the owner, and returns the owner that the file has.
func (c *copier) takeOwner(dst *pathsafe.File, has *Metadata, leave func(what string, err error) error) (uid uint32, err error) {
	st, err := c.s.Identify(dst)
	if err == nil && st.GID != has.GID {
		err = leave(ofGroup, c.s.setOwner(pathsafe.FileNode(dst), st.UID, has.GID))
	}
	if err == nil && st.UID != has.UID {
		if st, err = c.s.Identify(dst); err == nil {
			err = leave(ofOwner, c.s.setOwner(pathsafe.FileNode(dst), has.UID, st.GID))
		}
	}
	if err == nil {
		st, err = c.s.Identify(dst)
	}
	return st.UID, err
}

// keeps requires a file, described by st, to have the access that was set, and the metadata
// that it has taken over.
func (s *sysHook) keeps(f pathsafe.Opened, st pathsafe.Stat, m *created) error {
	now, err := s.accessList(f, st)
	if err == nil {
		err = m.keeps(now)
	}
	if err != nil || m.taken == nil {
		return err
	}
	have, err := s.Xattrs(pathsafe.FileNode(f))
	if err != nil {
		return err
	}
	if st.UID != m.taken.uid {
		return fmt.Errorf("%w: its owner is %d, not %d", errAccess, st.UID, m.taken.uid)
	}
	for _, x := range m.taken.xattrs {
		if !slices.Contains(have, x) {
			return fmt.Errorf("%w: attribute %q", errAccess, x.Name)
		}
	}
	return nil
}

func (m *Metadata) equal(other *Metadata) bool {
	return m.Mode == other.Mode && m.UID == other.UID && m.GID == other.GID && m.ModTime.Equal(other.ModTime) && slices.Equal(m.Xattrs, other.Xattrs)
}
