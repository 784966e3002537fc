package fusefs

import (
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// A directory is listed as ".", "..", its children by name and, in the root, the names of a volume
// set. The offset of an entry is its position plus one, so that a listing can continue at any
// entry, in any process, without a handle (except for a volume set).
const dots = 2

// OpenDir has nothing to open. See Init for ENOSYS.
func (s *fileSystem) OpenDir(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	a, st := s.enter(cancel, in.NodeId)
	if st != fuse.OK {
		return st
	}
	if s.isVolumeRoot(a) {
		return s.openVolumeRoot(out)
	}
	if s.skipOpenDir {
		return fuse.ENOSYS
	}
	// The listing never changes, so the kernel may cache it (CACHE_DIR), also for later opens
	// of the directory (KEEP_CACHE).
	out.OpenFlags = fuse.FOPEN_CACHE_DIR | fuse.FOPEN_KEEP_CACHE
	return fuse.OK
}

// ReleaseDir ends a listing.
func (s *fileSystem) ReleaseDir(in *fuse.ReleaseIn) { s.listings.end(in.Fh) }

// ReadDir lists names only.
func (s *fileSystem) ReadDir(cancel <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	l, st := s.listing(cancel, in)
	if st != fuse.OK {
		return st
	}
	for pos := in.Offset; pos < l.len(); pos++ {
		if !out.AddDirEntry(l.entry(pos)) {
			break
		}
	}
	return fuse.OK
}

// ReadDirPlus lists names with the result of a lookup of each. The dots, live files and volumes get
// node 0: the kernel looks them up when they are requested.
func (s *fileSystem) ReadDirPlus(cancel <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	l, st := s.listing(cancel, in)
	if st != fuse.OK {
		return st
	}
	for pos := in.Offset; pos < l.len(); pos++ {
		entry := out.AddDirLookupEntry(l.entry(pos))
		if entry == nil {
			break
		}
		child, ok := l.child(pos)
		if !ok {
			continue
		}
		_, live := child.live()
		if _, unsized := child.unsized(); !live && !unsized {
			s.entry(child, entry)
		}
	}
	return fuse.OK
}

// listing is the state of one reader of a directory.
type listing struct {
	dir     at
	volumes *volumes
	names   []string // the names that a volume set adds
}

func (s *fileSystem) listing(cancel <-chan struct{}, in *fuse.ReadIn) (listing, fuse.Status) {
	if s.isRevoked() {
		return listing{}, fuse.EIO
	}
	dir, st := s.enter(cancel, in.NodeId)
	l := listing{dir: dir, volumes: s.volumes}
	if st == fuse.OK && s.isVolumeRoot(dir) {
		l.names = s.listings.of(in.Fh)
	}
	return l, st
}

// len is the number of entries, with the dots.
func (l listing) len() uint64 { return l.children() + uint64(len(l.names)) }

// children is the number of entries up to and with those of the tree.
func (l listing) children() uint64 { return dots + uint64(l.dir.node().count) }

// child returns the place of the entry at a position, or false if it is not one of the tree's.
func (l listing) child(pos uint64) (at, bool) {
	if pos < dots || pos >= l.children() {
		return at{}, false
	}
	return at{l.dir.volume, l.dir.tree, l.dir.node().first + uint32(pos-dots)}, true
}

// entry returns the entry at a position, which must be below len.
func (l listing) entry(pos uint64) fuse.DirEntry {
	e := fuse.DirEntry{Name: ".", Mode: syscall.S_IFDIR, Ino: l.dir.number(), Off: pos + 1}
	switch child, ok := l.child(pos); {
	case ok:
		e.Name, e.Mode, e.Ino = child.node().name, typeOf(child), child.number()
	case pos == 1:
		e.Name, e.Ino = "..", l.parent()
	case pos >= dots:
		e.Name, e.Ino, e.Mode = l.added(pos)
	}
	return e
}

// added returns the name, number and type of the volume set's entry at a position.
func (l listing) added(pos uint64) (name string, number uint64, mode uint32) {
	name = l.names[pos-l.children()]
	if pos == l.children() {
		return name, latestNumber, syscall.S_IFLNK // see openVolumeRoot
	}
	v := l.volumes.named(name, nil)
	return name, at{v, nil, rootNode}.number(), syscall.S_IFDIR
}

// parent returns the number of the parent directory; for the root of the view, its own, which the
// kernel ignores.
func (l listing) parent() uint64 {
	if l.dir.id == rootNode {
		return uint64(rootNode) + 1
	}
	return at{l.dir.volume, l.dir.tree, l.dir.node().parent}.number()
}
