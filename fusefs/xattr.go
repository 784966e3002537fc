package fusefs

import (
	"strings"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// GetXAttr returns one extended attribute. Outside "user." it returns ENOTSUP, because there will
// never be any: `ls -l` then asks only once, not once per file.
func (s *fileSystem) GetXAttr(_ <-chan struct{}, in *fuse.InHeader, name string, dest []byte) (uint32, fuse.Status) {
	attrs, st := s.xattrs(in.NodeId)
	if st != fuse.OK {
		return 0, st
	}
	if !strings.HasPrefix(name, "user.") {
		return 0, fuse.ENOTSUP
	}
	for _, a := range attrs {
		if a.Name == name {
			return give(dest, a.Value)
		}
	}
	return 0, fuse.Status(syscall.ENODATA)
}

// ListXAttr lists their names, each with a NUL byte behind it.
func (s *fileSystem) ListXAttr(_ <-chan struct{}, in *fuse.InHeader, dest []byte) (uint32, fuse.Status) {
	attrs, st := s.xattrs(in.NodeId)
	if st != fuse.OK {
		return 0, st
	}
	var names strings.Builder
	for _, a := range attrs {
		names.WriteString(a.Name + "\x00")
	}
	return give(dest, names.String())
}

// give copies the value, or returns its length if dest is too small: an empty dest is a query for
// the length.
func give(dest []byte, text string) (uint32, fuse.Status) {
	if len(dest) < len(text) {
		return uint32(len(text)), fuse.ERANGE
	}
	return uint32(copy(dest, text)), fuse.OK
}

// xattrs returns the attributes of a number; only files of a tree have any.
func (s *fileSystem) xattrs(number uint64) ([]XAttr, fuse.Status) {
	if s.isRevoked() {
		return nil, fuse.EIO
	}
	a, ok := s.find(number)
	switch {
	case number == latestNumber && s.volumeSet != nil || s.snapshots.numbered(number) != nil:
		return nil, fuse.OK
	case !ok:
		return nil, estale
	case a.isDir():
		return nil, fuse.OK
	}
	return a.node().source.XAttrs(), fuse.OK
}
