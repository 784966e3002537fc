package fusefs

import (
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

const (
	// dirPerm: everybody may look who may see the mount at all; nobody writes.
	dirPerm = 0o555

	// statBlock is the unit of statfs and the preferred size that stat shows.
	// It is the page size: the kernel's cache works in pages whatever we say.
	statBlock = 4096

	// generation is constant: a node number stands for the same file as long
	// as the mount lives, it is never given to another one.
	generation = 1
)

// The tree never changes while it is mounted, so the kernel may keep all that
// it was told for as long as it likes: a year stands for ever.
const (
	entryTimeout    = 365 * 24 * time.Hour // a name leads to the same node for ever
	attrTimeout     = 365 * 24 * time.Hour // size, mode and times are the plan's, not the source's
	negativeTimeout = 365 * 24 * time.Hour // what is not in the tree will never be in it
)

// index gives the node of a number that the kernel sent, if there is one.
func (s *fileSystem) index(nodeID uint64) (uint32, bool) {
	if nodeID == 0 || nodeID > uint64(len(s.tree.nodes)) {
		return 0, false
	}
	return uint32(nodeID - 1), true
}

// nodeID is the number of a node in the protocol, and its inode number.
func nodeID(id uint32) uint64 { return uint64(id) + 1 }

// attr fills in what stat shows.
func (s *fileSystem) attr(id uint32, out *fuse.Attr) {
	n := &s.tree.nodes[id]
	*out = fuse.Attr{
		Ino:     nodeID(id),
		Size:    uint64(n.size),
		Blocks:  (uint64(n.size) + 511) / 512,
		Mode:    typeOf(n) | n.perm,
		Nlink:   1,
		Owner:   fuse.Owner{Uid: s.uid, Gid: s.gid},
		Blksize: statBlock,
	}
	out.Atime, out.Mtime, out.Ctime = uint64(n.sec), uint64(n.sec), uint64(n.sec)
	out.Atimensec, out.Mtimensec, out.Ctimensec = n.nsec, n.nsec, n.nsec
	if n.isDir() {
		out.Nlink = 2 + n.subdirs // its name, its ".", and the ".." of each subdirectory
	}
}

// entry fills in the answer to a lookup that found the node.
func (s *fileSystem) entry(id uint32, out *fuse.EntryOut) {
	out.NodeId, out.Generation = nodeID(id), generation
	out.SetEntryTimeout(entryTimeout)
	out.SetAttrTimeout(attrTimeout)
	s.attr(id, &out.Attr)
}

func typeOf(n *node) uint32 {
	if n.isDir() {
		return syscall.S_IFDIR
	}
	return syscall.S_IFREG
}
