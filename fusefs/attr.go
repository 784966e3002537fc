package fusefs

import (
	"errors"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

const (
	// dirPerm is the maximum mode of a directory: it is never writable.
	dirPerm = 0o555

	// ownerPerm lets the user who serves the view read every directory of it.
	ownerPerm = 0o500

	// statBlock is the unit of statfs and the preferred size in stat. It is the page size, in which
	// the kernel's cache works in any case.
	statBlock = 4096

	// generation is constant: a node number identifies the same file as long as the mount exists
	// and is never reused.
	generation = 1
)

// A tree never changes while it is mounted, so the kernel may cache its answers without limit:
// the timeout is a year.
const (
	entryTimeout    = 365 * 24 * time.Hour // a name always leads to the same node
	attrTimeout     = 365 * 24 * time.Hour // size, mode and times are the plan's, not the source's
	negativeTimeout = 365 * 24 * time.Hour // a missing name will never exist

	// volumeTimeout is for names of a volume set: the volume may disappear or be spoiled, and the
	// kernel asks again after this time at the latest.
	volumeTimeout = time.Second

	// unsizedTimeout is for attributes of a source that are not signed: the kernel asks again at
	// each use.
	unsizedTimeout = 0
)

func blocks512(size uint64) uint64 { return (size + 511) / 512 }

// unsized returns the source of a place if its attributes are not known yet.
func (a at) unsized() (Unsized, bool) {
	if a.isDir() {
		return nil, false
	}
	source, is := a.node().source.(Unsized)
	return source, is
}

// unsizedAttr is attr for such a source.
func (s *fileSystem) unsizedAttr(a at, source Unsized, out *fuse.Attr) (time.Duration, fuse.Status) {
	facts, err := source.Facts()
	if err != nil {
		s.findings.report(a.path(), err)
		return 0, fuse.EIO
	}
	n := node{size: facts.Size, sec: facts.ModTime.Unix(), nsec: uint32(facts.ModTime.Nanosecond()), perm: uint32(facts.Mode.Perm() &^ 0o222)}
	s.fileAttr(a, &n, out)
	if facts.Settled {
		return attrTimeout, fuse.OK
	}
	return unsizedTimeout, fuse.OK
}

// attr sets the attributes of a place that is not unsized, and returns the time for which they are
// valid.
func (s *fileSystem) attr(a at, out *fuse.Attr) time.Duration {
	if a.tree == nil {
		v := a.volume.source
		s.dirAttr(a, dirPermOf(v.Perm()), v.ModTime(), out) // the number of its entries is not known
		out.Nlink = 1
		return 0
	}
	n := a.node()
	modTime := time.Unix(n.sec, int64(n.nsec))
	if s.isVolumeRoot(a) {
		names, _ := s.volumeSet.Names()
		s.dirAttr(a, dirPermOf(s.volumeSet.Perm())&n.perm, s.volumeSet.ModTime(), out)
		out.Nlink = 2 + n.subdirs + uint32(len(names))
		return 0
	}
	if n.isDir() {
		s.dirAttr(a, n.perm, modTime, out)
		out.Nlink = 2 + n.subdirs // its name, its ".", and the ".." of each subdirectory
		return attrTimeout
	}
	s.fileAttr(a, n, out)
	return attrTimeout
}

func (s *fileSystem) fileAttr(a at, n *node, out *fuse.Attr) {
	*out = fuse.Attr{
		Ino:     a.number(),
		Size:    uint64(n.size),
		Blocks:  blocks512(uint64(n.size)),
		Mode:    syscall.S_IFREG | n.perm,
		Nlink:   1,
		Owner:   fuse.Owner{Uid: s.uid, Gid: s.gid},
		Blksize: statBlock,
	}
	modTime := time.Unix(n.sec, int64(n.nsec))
	out.SetTimes(&modTime, &modTime, &modTime)
}

func (s *fileSystem) dirAttr(a at, perm uint32, modTime time.Time, out *fuse.Attr) {
	*out = fuse.Attr{
		Ino:     a.number(),
		Mode:    syscall.S_IFDIR | perm,
		Owner:   fuse.Owner{Uid: s.uid, Gid: s.gid},
		Blksize: statBlock,
	}
	out.SetTimes(&modTime, &modTime, &modTime)
}

// entry sets the answer to a lookup that found the place, unless it is a live file or an unsized
// one.
func (s *fileSystem) entry(a at, out *fuse.EntryOut) {
	out.NodeId, out.Generation = a.number(), generation
	out.SetEntryTimeout(entryTimeout)
	if a.volume.source != nil && a.id == rootNode {
		out.SetEntryTimeout(volumeTimeout)
	}
	out.SetAttrTimeout(s.attr(a, &out.Attr))
}

// unsizedEntry is entry for an unsized file.
func (s *fileSystem) unsizedEntry(a at, source Unsized, out *fuse.EntryOut) fuse.Status {
	timeout, st := s.unsizedAttr(a, source, &out.Attr)
	if st != fuse.OK {
		return st
	}
	out.NodeId, out.Generation = a.number(), generation
	out.SetEntryTimeout(entryTimeout)
	out.SetAttrTimeout(timeout)
	return fuse.OK
}

// live returns the function that makes the content of a live file, or false for any other place.
func (a at) live() (Made, bool) {
	if a.isDir() {
		return nil, false
	}
	var live Live
	switch source := a.node().source.(type) {
	case Made:
		return source, true
	case Live:
		live = source
	case GuardedLive:
		live = source.Live
	default:
		return nil, false
	}
	return func(<-chan struct{}) ([]byte, error) { return live(), nil }, true
}

// livePerm returns the permissions that a live file grants now.
func (a at) livePerm() uint32 {
	perm := a.node().perm
	if guarded, ok := a.node().source.(GuardedLive); ok {
		perm &= uint32(guarded.Perm().Perm()) | 0o400
	}
	return perm
}

// liveEntry answers with the present content of the file. The name is looked up again at each
// use.
func (s *fileSystem) liveEntry(cancel <-chan struct{}, a at, live Made, out *fuse.EntryOut) fuse.Status {
	data, err := s.snapshots.content(cancel, a.number(), func() ([]byte, error) { return live(s.done) })
	var found *SourceError
	switch {
	case errors.Is(err, errInterrupted):
		return fuse.EINTR
	case errors.As(err, &found):
		s.findings.report(found.Path, found.Err)
		return fuse.EIO
	case err != nil:
		s.log.Error("cannot create a file of the view: the reader gets an I/O error", "path", a.path(), "error", err)
		return fuse.EIO
	}
	n := s.snapshots.look(a.number(), data, a.livePerm)
	out.NodeId, out.Generation = n.number, generation
	out.SetAttrTimeout(attrTimeout)
	n.attr(s, &out.Attr)
	return fuse.OK
}

func typeOf(a at) uint32 {
	if a.isDir() {
		return syscall.S_IFDIR
	}
	return syscall.S_IFREG
}
