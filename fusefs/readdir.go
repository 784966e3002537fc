package fusefs

import "github.com/hanwen/go-fuse/v2/fuse"

// A directory is listed as ".", "..", and its children by name. An entry's
// offset is its place in that order plus one, so that a listing can go on from
// any entry, in any process, without a handle.
const dots = 2

// OpenDir has nothing to open. See Init for ENOSYS.
func (s *fileSystem) OpenDir(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	if _, st := s.dir(in.NodeId); st != fuse.OK {
		return st
	}
	if s.skipOpenDir {
		return fuse.ENOSYS
	}
	// The listing never changes, so the kernel may keep it (CACHE_DIR), also
	// for the next one who opens the directory (KEEP_CACHE).
	out.OpenFlags = fuse.FOPEN_CACHE_DIR | fuse.FOPEN_KEEP_CACHE
	return fuse.OK
}

// ReleaseDir has nothing to release.
func (s *fileSystem) ReleaseDir(*fuse.ReleaseIn) {}

// ReadDir lists names only.
func (s *fileSystem) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	dir, st := s.dir(in.NodeId)
	if st != fuse.OK {
		return st
	}
	for pos := in.Offset; pos < s.listLen(dir); pos++ {
		e, _ := s.dirEntry(dir, pos)
		if !out.AddDirEntry(e) {
			break
		}
	}
	return fuse.OK
}

// ReadDirPlus lists names with what a lookup of each would give.
func (s *fileSystem) ReadDirPlus(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	dir, st := s.dir(in.NodeId)
	if st != fuse.OK {
		return st
	}
	for pos := in.Offset; pos < s.listLen(dir); pos++ {
		e, id := s.dirEntry(dir, pos)
		entry := out.AddDirLookupEntry(e)
		if entry == nil {
			break
		}
		if pos >= dots { // node 0 for the dots: the kernel knows them
			s.entry(id, entry)
		}
	}
	return fuse.OK
}

// listLen is the number of entries of a directory, with the dots.
func (s *fileSystem) listLen(dir uint32) uint64 {
	return dots + uint64(s.tree.nodes[dir].count)
}

// dirEntry gives the entry at a place, which must be below listLen, and its node.
func (s *fileSystem) dirEntry(dir uint32, pos uint64) (fuse.DirEntry, uint32) {
	d := &s.tree.nodes[dir]
	id, name := dir, "."
	switch {
	case pos == 1:
		id, name = d.parent, ".."
	case pos >= dots:
		id = d.first + uint32(pos-dots)
		name = s.tree.nodes[id].name
	}
	return fuse.DirEntry{
		Name: name,
		Mode: typeOf(&s.tree.nodes[id]),
		Ino:  nodeID(id),
		Off:  pos + 1,
	}, id
}
