package fusefs

import (
	"slices"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// LatestName is the link in the root of a view with a [VolumeSet]. No volume has
// that name.
const LatestName = "latest"

// lookupVolume finds a name of the volume set. The kernel must not cache its existence for long,
// and not cache its absence at all.
func (s *fileSystem) lookupVolume(name string, out *fuse.EntryOut) fuse.Status {
	if source := s.volumeSet.Find(name); source != nil {
		v := s.volumes.named(name, source)
		s.checkSpoiled(v)
		s.entry(at{v, v.tree.Load(), rootNode}, out)
		return fuse.OK
	}
	if name != LatestName {
		return fuse.ENOENT
	}
	out.NodeId, out.Generation = latestNumber, generation
	s.latestAttr(&out.Attr)
	return fuse.OK
}

// latestAttr returns the attributes of a link. Its size is unknown until it is followed, so it
// is 0, as for the links in /proc.
func (s *fileSystem) latestAttr(out *fuse.Attr) {
	*out = fuse.Attr{
		Ino:     latestNumber,
		Mode:    syscall.S_IFLNK | 0o777,
		Nlink:   1,
		Owner:   fuse.Owner{Uid: s.uid, Gid: s.gid},
		Blksize: statBlock,
	}
	modTime := s.volumeSet.ModTime()
	out.SetTimes(&modTime, &modTime, &modTime)
}

// Readlink returns the target of the only link.
func (s *fileSystem) Readlink(cancel <-chan struct{}, in *fuse.InHeader) ([]byte, fuse.Status) {
	if s.volumeSet == nil || in.NodeId != latestNumber {
		return nil, fuse.EINVAL
	}
	found := s.latest.ask(func() (string, error) { return s.volumeSet.Latest(s.done), nil })
	if !await(cancel, found.ready) {
		return nil, fuse.EINTR
	}
	if found.err != nil {
		s.log.Error("the latest directory of the view cannot be found", "error", found.err)
		return nil, fuse.EIO
	}
	if found.value == "" {
		return nil, fuse.ENOENT
	}
	return []byte(found.value), fuse.OK
}

// listings are the entries of the root at the time of each open: later changes must not move
// the entries of a reader. Equal listings share the names, so that an open directory costs
// almost nothing.
type listings struct {
	mu     sync.Mutex
	last   uint64
	open   map[uint64][]string
	newest []string
}

// begin stores a listing of the volume set, and returns its handle.
func (l *listings) begin(names []string) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		l.open = make(map[uint64][]string)
	}
	if !slices.Equal(l.newest, names) {
		l.newest = names
	}
	l.last++
	l.open[l.last] = l.newest
	return l.last
}

func (l *listings) of(handle uint64) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open[handle]
}

func (l *listings) end(handle uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, handle)
}

// openVolumeRoot starts a listing of the root, which must not be cached.
func (s *fileSystem) openVolumeRoot(out *fuse.OpenOut) fuse.Status {
	names, err := s.volumeSet.Names()
	if err != nil {
		s.log.Error("the directory of the view cannot be listed", "error", err)
		return fuse.EIO
	}
	if len(names) > 0 {
		names = append([]string{LatestName}, names...)
	}
	out.Fh = s.listings.begin(names)
	return fuse.OK
}
