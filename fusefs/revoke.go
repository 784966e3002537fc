package fusefs

import (
	"os"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// RevokeRequest is the only ioctl that a view answers, _IO('S', 1) on any of its files: it has no
// argument, and revokes the view. A signal would require a process number, which only the view
// itself could supply and which may have been reused; the ioctl reaches exactly the view that was
// looked up, and the kernel supplies the caller's user.
const RevokeRequest = 'S'<<8 | 1

// Ioctl revokes the view, for root and for the user who serves it. Other users may only read.
func (s *fileSystem) Ioctl(cancel <-chan struct{}, in *fuse.IoctlIn, inbuf []byte, out *fuse.IoctlOut, outbuf []byte) fuse.Status {
	if in.Cmd != RevokeRequest {
		return s.RawFileSystem.Ioctl(cancel, in, inbuf, out, outbuf)
	}
	if in.Uid != 0 && in.Uid != uint32(os.Geteuid()) {
		return fuse.EPERM
	}
	s.revokeOnce.Do(func() { close(s.revoked) })
	return fuse.OK
}

// isRevoked reports whether the view is revoked: every request is then an error.
func (s *fileSystem) isRevoked() bool {
	select {
	case <-s.revoked:
		return true
	default:
		return false
	}
}

// dropAll has the kernel forget all that it keeps of the view: contents,
// listings, attributes.
func (s *fileSystem) dropAll() {
	for _, v := range s.volumes.list() {
		if t := v.tree.Load(); t != nil {
			for id := range t.nodes {
				s.notify(at{v, t, uint32(id)}.number())
			}
		}
	}
	for _, number := range s.snapshots.numbers() {
		s.notify(number)
	}
}

// list returns all volumes.
func (vs *volumes) list() []*volume {
	vs.mu.RLock()
	defer vs.mu.RUnlock()
	return append([]*volume(nil), vs.all...)
}

// numbers returns the numbers of all snapshots.
func (ss *snapshots) numbers() []uint64 {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	numbers := make([]uint64, 0, len(ss.all))
	for number := range ss.all {
		numbers = append(numbers, number)
	}
	return numbers
}
