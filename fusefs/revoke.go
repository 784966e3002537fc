package fusefs

import (
	"os"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// revokeRequest is the one ioctl that a view answers, _IO('S', 1) on any of its
// files: it has no argument, and ends the view. A signal would need the number of
// a process, which only the view itself could name, and which may be another
// process by then; this goes to exactly the view that was looked up, and the
// kernel says who asks.
const revokeRequest = 'S'<<8 | 1

// dropWithin is how long the kernel may take to forget what it keeps: it waits
// for reads at work, and one that hangs in its source never ends.
const dropWithin = 5 * time.Second

// Ioctl takes the view back, for root and for the user who serves it. The others
// may only read.
func (s *fileSystem) Ioctl(cancel <-chan struct{}, in *fuse.IoctlIn, inbuf []byte, out *fuse.IoctlOut, outbuf []byte) fuse.Status {
	if in.Cmd != revokeRequest {
		return s.RawFileSystem.Ioctl(cancel, in, inbuf, out, outbuf)
	}
	if in.Uid != 0 && in.Uid != uint32(os.Geteuid()) {
		return fuse.EPERM
	}
	s.revokeOnce.Do(func() { close(s.revoked) })
	return fuse.OK
}

// isRevoked: from then on whatever is asked of the view is an error.
func (s *fileSystem) isRevoked() bool {
	select {
	case <-s.revoked:
		return true
	default:
		return false
	}
}

// Revoked is closed when somebody else has taken the view back (see
// [Other.Revoke]). It ends then: whoever holds it open gets errors, also for what
// the kernel had kept.
func (v *View) Revoked() <-chan struct{} { return v.revoked }

// obey waits for a revocation and carries it out: no read gives anything any
// more, what the kernel keeps is dropped, and only then the view vanishes from
// its path, so that whoever sees it gone knows that nothing of it is read.
func (v *View) obey() {
	select {
	case <-v.fs.revoked:
	case <-v.done:
		return
	}
	v.fs.end()
	dropped := make(chan struct{})
	go func() {
		defer close(dropped)
		v.fs.dropAll()
	}()
	select {
	case <-dropped:
	case <-time.After(dropWithin):
		v.log.Warn("a read does not return: the kernel may still hold checked pages of the revoked view", "mount point", v.path)
	}
	close(v.revoked)
	if err := v.takeAway(true); err != nil {
		v.log.Error("the revoked view could not be taken away", "mount point", v.path, "error", err)
	}
	v.end()
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

// list gives all volumes.
func (vs *volumes) list() []*volume {
	vs.mu.RLock()
	defer vs.mu.RUnlock()
	return append([]*volume(nil), vs.all...)
}

// numbers gives the numbers of all snapshots.
func (ss *snapshots) numbers() []uint64 {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	numbers := make([]uint64, 0, len(ss.all))
	for number := range ss.all {
		numbers = append(numbers, number)
	}
	return numbers
}
