package fusefs

import (
	"log/slog"
	"os"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// fileSystem answers the requests of the kernel. A request that it does not define is answered by
// the embedded default with ENOSYS, which the kernel remembers (FSYNC, LSEEK). The kernel never
// sends the following because the mount is read-only, and a test checks that they are not defined:
// SetAttr, Mknod, Mkdir, Unlink, Rmdir, Rename, Link, Symlink, SetXAttr, RemoveXAttr, Create,
// Tmpfile, Write, Fallocate, CopyFileRange. ACCESS is never sent with default_permissions.
type fileSystem struct {
	fuse.RawFileSystem

	volumes   *volumes
	volumeSet VolumeSet // nil: none
	snapshots *snapshots
	listings  listings
	latest    fresh[string] // see Readlink

	uid, gid  uint32
	settlings *settlings
	handles   *handleCache
	permits   chan struct{} // one per read that may be at work
	findings  *findings
	stats     *Stats
	log       *slog.Logger

	server  *fuse.Server  // from Init on
	done    chan struct{} // closed when the view ends
	endOnce sync.Once

	revoked    chan struct{} // closed when the view was revoked
	revokeOnce sync.Once

	// Whether to have the kernel do without OPEN and OPENDIR; see Init.
	answerOpen, skipOpen, skipOpenDir bool
	unsized                           bool // files may be checked when they are opened
}

var _ fuse.RawFileSystem = (*fileSystem)(nil)

// estale is the answer to an unknown node number.
const estale = fuse.Status(syscall.ESTALE)

func newFileSystem(tree *Tree, opts Options) *fileSystem {
	s := &fileSystem{
		RawFileSystem: fuse.NewDefaultRawFileSystem(),
		volumes:       newVolumes(tree),
		volumeSet:     opts.VolumeSet,
		snapshots:     newSnapshots(),
		uid:           uint32(os.Geteuid()),
		gid:           uint32(os.Getegid()),
		findings:      newFindings(opts.Log, opts.OnTamper),
		stats:         opts.Stats,
		log:           opts.Log,
		done:          make(chan struct{}),
		revoked:       make(chan struct{}),
		answerOpen:    opts.AnswerOpen,
		unsized:       tree.unsized || opts.Unsized,
	}
	s.handles = newHandleCache(handleLimit(), s.openContent)
	s.permits = newPermits(s.handles.max)
	s.settlings = newSettlings(s.handles.max)
	return s
}

// String names the file system in go-fuse's own messages.
func (s *fileSystem) String() string { return "spectrum" }

// capNoOpenDir is FUSE_NO_OPENDIR_SUPPORT, which go-fuse has no name for.
const capNoOpenDir = 1 << 24

// Init checks the kernel's capabilities. After ENOSYS to OPEN and OPENDIR the kernel never
// sends these again, and treats all files as Open and OpenDir would set them: it keeps the
// cache, of contents and of listings, since checked data may stay. Measured with tar over
// 20,000 files of 8 KiB: half the time for the first read, a quarter for the second; a
// directory that was listed before costs no request at all. Kernels before 4.9 (before 5.1 for
// directories) would pass the ENOSYS on to the user, so they get answers; and a listing that a
// volume set adds to must be made anew each time. An unsized file has to be opened.
func (s *fileSystem) Init(server *fuse.Server) {
	flags := server.KernelSettings().Flags64()
	s.skipOpen = s.maySkipOpen(flags)
	s.skipOpenDir = flags&capNoOpenDir != 0 && !s.answerOpen && s.volumeSet == nil
	s.server = server
}

func (s *fileSystem) maySkipOpen(flags uint64) bool {
	return flags&fuse.CAP_NO_OPEN_SUPPORT != 0 && !s.answerOpen && !s.unsized
}

// end makes waiting requests return.
func (s *fileSystem) end() { s.endOnce.Do(func() { close(s.done) }) }

// OnUnmount is called after the last request.
func (s *fileSystem) OnUnmount() {
	s.end()
	s.handles.close()
}

// notify makes the kernel drop its cache of a node's content. An unknown node is not an error.
func (s *fileSystem) notify(number uint64) { _ = s.server.InodeNotify(number, 0, 0) }

// notifyAttr makes the kernel drop the attributes of a node, and answers to earlier requests for
// them that it has not received yet.
func (s *fileSystem) notifyAttr(number uint64) {
	if s.server != nil {
		_ = s.server.InodeNotify(number, -1, 0)
	}
}

// Lookup finds a name in a directory. A missing name is answered with node 0 instead of ENOENT:
// only then may the kernel cache the absence.
func (s *fileSystem) Lookup(cancel <-chan struct{}, in *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	if s.isRevoked() {
		return fuse.EIO
	}
	dir, st := s.enter(cancel, in.NodeId)
	if st != fuse.OK {
		return st
	}
	id, ok := dir.tree.lookup(dir.id, name)
	switch {
	case ok:
		found := at{dir.volume, dir.tree, id}
		if live, is := found.live(); is {
			return s.liveEntry(cancel, found, live, out)
		}
		if source, is := found.unsized(); is {
			return s.unsizedEntry(found, source, out)
		}
		s.entry(found, out)
	case s.isVolumeRoot(dir):
		return s.lookupVolume(name, out)
	default:
		out.SetEntryTimeout(negativeTimeout)
	}
	return fuse.OK
}

// Forget is called when the kernel drops a node. Only snapshots are kept for the kernel.
func (s *fileSystem) Forget(number, lookups uint64) {
	if number&liveBit != 0 {
		s.snapshots.forget(number, lookups)
	}
}

// GetAttr returns the attributes of the plan.
func (s *fileSystem) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	if s.isRevoked() {
		return fuse.EIO
	}
	if n := s.snapshots.numbered(in.NodeId); n != nil {
		out.SetTimeout(attrTimeout)
		n.attr(s, &out.Attr)
		return fuse.OK
	}
	if in.NodeId == latestNumber && s.volumeSet != nil {
		s.latestAttr(&out.Attr)
		return fuse.OK
	}
	a, ok := s.find(in.NodeId)
	if !ok {
		return estale
	}
	if source, is := a.unsized(); is {
		timeout, st := s.unsizedAttr(a, source, &out.Attr)
		out.SetTimeout(timeout)
		return st
	}
	out.SetTimeout(s.attr(a, &out.Attr))
	return fuse.OK
}

// Open only handles unsized files: other contents are opened by the first read, and shared.
func (s *fileSystem) Open(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	if s.snapshots.numbered(in.NodeId) == nil {
		a, st := s.file(in.NodeId)
		if st != fuse.OK {
			return st
		}
		if source, is := a.unsized(); is {
			return s.openUnsized(cancel, a, source, out)
		}
	}
	if s.skipOpen {
		return fuse.ENOSYS
	}
	out.OpenFlags = fuse.FOPEN_KEEP_CACHE // checked data may stay cached
	return fuse.OK
}

// Release has nothing to release: see Open.
func (s *fileSystem) Release(<-chan struct{}, *fuse.ReleaseIn) {}

// Flush is not implemented, so that the kernel does not wait for an answer whenever a file is
// closed.
func (s *fileSystem) Flush(<-chan struct{}, *fuse.FlushIn) fuse.Status { return fuse.ENOSYS }

// StatFs returns the totals of the loaded trees, with no free space.
func (s *fileSystem) StatFs(_ <-chan struct{}, _ *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	*out = fuse.StatfsOut{Bsize: statBlock, Frsize: statBlock, NameLen: maxName}
	s.volumes.each(func(t *Tree) {
		out.Blocks += t.blocks
		out.Files += uint64(t.listed())
	})
	return fuse.OK
}
