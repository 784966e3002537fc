package fusefs

import "github.com/hanwen/go-fuse/v2/fuse"

// A node's number in the protocol, which is its inode number too:
//
//	the volume's number in the upper half, the index in its tree plus one in
//	the lower half: so the root of the view is 1, as the protocol requires
//	latestNumber: the link in the root of a view with a volume set
//	liveBit and a serial number: one snapshot of a live file
const (
	volumeShift  = 32
	indexMask    = 1<<volumeShift - 1
	latestNumber = 1 << 62
)

// at is a place in a view: a node of a volume's tree. The tree is nil until the volume is
// first entered; the node is then its root.
type at struct {
	volume *volume
	tree   *Tree
	id     uint32
}

func (a at) number() uint64 { return uint64(a.volume.number)<<volumeShift | uint64(a.id) + 1 }

// node returns the node, or nil if there is no tree yet.
func (a at) node() *node {
	if a.tree == nil {
		return nil
	}
	return &a.tree.nodes[a.id]
}

func (a at) isDir() bool { return a.tree == nil || a.node().isDir() }

// isVolumeRoot reports whether this is the directory that a volume set adds to.
func (s *fileSystem) isVolumeRoot(a at) bool {
	return s.volumeSet != nil && a.volume.number == 0 && a.id == rootNode
}

// path is the path of a node in the view, "" for the root.
func (a at) path() string {
	path := ""
	if a.tree != nil {
		path = a.tree.path(a.id)
	}
	switch {
	case a.volume.name == "":
		return path
	case path == "":
		return a.volume.name
	}
	return a.volume.name + "/" + path
}

// find returns the place of a number that the kernel sent, if there is one.
func (s *fileSystem) find(number uint64) (at, bool) {
	v, id := s.volumes.numbered(number>>volumeShift), number&indexMask
	if v == nil || id == 0 {
		return at{}, false
	}
	a := at{v, v.tree.Load(), uint32(id - 1)}
	if a.tree == nil {
		return a, a.id == rootNode
	}
	return a, uint64(a.id) < uint64(len(a.tree.nodes))
}

// file returns the place of a number that must be a file's.
func (s *fileSystem) file(number uint64) (at, fuse.Status) {
	a, ok := s.find(number)
	switch {
	case !ok:
		return at{}, estale
	case a.isDir():
		return at{}, fuse.EISDIR
	}
	return a, fuse.OK
}

// enter returns the place of a number that must be a directory's, with its tree.
func (s *fileSystem) enter(cancel <-chan struct{}, number uint64) (at, fuse.Status) {
	a, ok := s.find(number)
	switch {
	case !ok:
		return at{}, estale
	case !a.isDir():
		return at{}, fuse.ENOTDIR
	case a.tree != nil:
		return a, fuse.OK
	}
	var st fuse.Status
	a.tree, st = s.load(cancel, a.volume)
	return a, st
}
