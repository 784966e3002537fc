package fusefs

import (
	"log/slog"
	"os"
	"strings"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// fileSystem answers the kernel. What it does not define is answered by the
// embedded default: ENOSYS, which the kernel remembers and does not ask again
// (FSYNC, LSEEK, IOCTL), or which it never gets to ask because the
// mount is read-only: SetAttr, Mknod, Mkdir, Unlink, Rmdir, Rename, Link,
// Symlink, SetXAttr, RemoveXAttr, Create, Tmpfile, Write, Fallocate,
// CopyFileRange are not here, and a test holds that. ACCESS is never sent with
// default_permissions, and FORGET has nothing to forget.
type fileSystem struct {
	fuse.RawFileSystem

	tree     *Tree
	uid, gid uint32
	handles  *handleCache
	permits  chan struct{} // one per read that may be at work
	findings *findings

	// Whether to have the kernel do without OPEN and OPENDIR; see Init.
	answerOpen, skipOpen, skipOpenDir bool
}

var _ fuse.RawFileSystem = (*fileSystem)(nil)

// estale: the kernel asked for a number that was never given out.
const estale = fuse.Status(syscall.ESTALE)

func newFileSystem(tree *Tree, log *slog.Logger, onTamper func(string, error)) *fileSystem {
	s := &fileSystem{
		RawFileSystem: fuse.NewDefaultRawFileSystem(),
		tree:          tree,
		uid:           uint32(os.Geteuid()),
		gid:           uint32(os.Getegid()),
		findings:      newFindings(log, onTamper),
	}
	s.handles = newHandleCache(handleLimit(), s.openContent)
	s.permits = newPermits(s.handles.max)
	return s
}

// String names the file system in go-fuse's own messages.
func (s *fileSystem) String() string { return "spectrum" }

// capNoOpenDir is FUSE_NO_OPENDIR_SUPPORT, which go-fuse has no name for.
const capNoOpenDir = 1 << 24

// Init sees what the kernel is able to do. ENOSYS to OPEN and OPENDIR tells it
// never to ask again, and to treat all files as Open and OpenDir would have it:
// keep the cache, of contents and of listings, because what was checked once
// may stay. Measured with tar over 20,000 files of 8 KiB: half the time when
// read first, a quarter when read again; a directory that was listed before
// costs no request at all. Kernels before 4.9 (before 5.1 for directories) would
// pass the ENOSYS on to the user, so they get answers.
func (s *fileSystem) Init(server *fuse.Server) {
	flags := server.KernelSettings().Flags64()
	s.skipOpen = flags&fuse.CAP_NO_OPEN_SUPPORT != 0 && !s.answerOpen
	s.skipOpenDir = flags&capNoOpenDir != 0 && !s.answerOpen
}

// OnUnmount comes after the last request.
func (s *fileSystem) OnUnmount() { s.handles.close() }

// Lookup finds a name in a directory. A name that is not there is answered with
// node 0 instead of ENOENT: only so may the kernel remember the absence.
func (s *fileSystem) Lookup(_ <-chan struct{}, in *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	dir, st := s.dir(in.NodeId)
	if st != fuse.OK {
		return st
	}
	id, ok := s.tree.lookup(dir, name)
	if !ok {
		out.SetEntryTimeout(negativeTimeout)
		return fuse.OK
	}
	s.entry(id, out)
	return fuse.OK
}

// GetAttr gives the attributes of the plan.
func (s *fileSystem) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	id, ok := s.index(in.NodeId)
	if !ok {
		return estale
	}
	out.SetTimeout(attrTimeout)
	s.attr(id, &out.Attr)
	return fuse.OK
}

// Open has nothing to do: contents are opened by the first read, and shared.
func (s *fileSystem) Open(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	if _, st := s.file(in.NodeId); st != fuse.OK {
		return st
	}
	if s.skipOpen {
		return fuse.ENOSYS
	}
	out.OpenFlags = fuse.FOPEN_KEEP_CACHE // what was checked may stay cached
	return fuse.OK
}

// Release has nothing to release: see Open.
func (s *fileSystem) Release(<-chan struct{}, *fuse.ReleaseIn) {}

// Flush says that there is no such thing here, so that the kernel does not wait
// for an answer whenever somebody closes a file.
func (s *fileSystem) Flush(<-chan struct{}, *fuse.FlushIn) fuse.Status { return fuse.ENOSYS }

// StatFs gives the totals of the tree: full to the last block, as it is.
func (s *fileSystem) StatFs(_ <-chan struct{}, _ *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	*out = fuse.StatfsOut{
		Blocks:  s.tree.blocks,
		Files:   uint64(len(s.tree.nodes)),
		Bsize:   statBlock,
		Frsize:  statBlock,
		NameLen: maxName,
	}
	return fuse.OK
}

// GetXAttr has no attributes to give. Outside "user." there never will be any,
// and ENOTSUP says so: `ls -l` then asks once and not once per file.
func (s *fileSystem) GetXAttr(_ <-chan struct{}, in *fuse.InHeader, name string, _ []byte) (uint32, fuse.Status) {
	if _, ok := s.index(in.NodeId); !ok {
		return 0, estale
	}
	if strings.HasPrefix(name, "user.") {
		return 0, fuse.Status(syscall.ENODATA)
	}
	return 0, fuse.ENOTSUP
}

// ListXAttr lists no attributes.
func (s *fileSystem) ListXAttr(_ <-chan struct{}, in *fuse.InHeader, _ []byte) (uint32, fuse.Status) {
	if _, ok := s.index(in.NodeId); !ok {
		return 0, estale
	}
	return 0, fuse.OK
}

// file gives the index of a node that must be a file.
func (s *fileSystem) file(nodeID uint64) (uint32, fuse.Status) {
	id, ok := s.index(nodeID)
	if !ok {
		return 0, estale
	}
	if s.tree.nodes[id].isDir() {
		return 0, fuse.EISDIR
	}
	return id, fuse.OK
}

// dir gives the index of a node that must be a directory.
func (s *fileSystem) dir(nodeID uint64) (uint32, fuse.Status) {
	id, ok := s.index(nodeID)
	if !ok {
		return 0, estale
	}
	if !s.tree.nodes[id].isDir() {
		return 0, fuse.ENOTDIR
	}
	return id, fuse.OK
}
