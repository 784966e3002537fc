package fusefs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// errInterrupted: the reader was interrupted while it waited. This is not a finding about the
// content.
var errInterrupted = errors.New("interrupted")

// errEnded: the view ended while the reader waited.
var errEnded = errors.New("the view has ended")

// patience is how long an interrupted read waits for its turn before it returns EINTR. An
// immediate EINTR would be wrong: any signal interrupts (a Go program sends them to itself all
// the time), and EINTR for a page of a mapped file is SIGBUS for its reader. Waiting forever
// would be wrong too: a reader behind a source that hangs could never be interrupted.
const patience = time.Second

// newPermits returns the permits for concurrent reads. More than one per processor helps if sources
// are slow; the limit bounds threads and memory for thousands of readers. There are never more
// permits than contents that may be open, so that a read never waits for a descriptor.
func newPermits(most int) chan struct{} {
	n := min(max(8, 4*runtime.GOMAXPROCS(0)), 32, most)
	permits := make(chan struct{}, n)
	for range n {
		permits <- struct{}{}
	}
	return permits
}

// Read returns checked bytes, all of the requested range up to the planned size, or EIO. The
// content of one range of one file does not affect any other.
func (s *fileSystem) Read(cancel <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	if s.isRevoked() {
		return nil, fuse.EIO
	}
	if n := s.snapshots.numbered(in.NodeId); n != nil {
		buf = clip(buf, in, int64(len(n.data)))
		return fuse.ReadResultData(buf[:copy(buf, n.data[min(in.Offset, uint64(len(n.data))):])]), fuse.OK
	}
	a, st := s.file(in.NodeId)
	if st != fuse.OK {
		return nil, st
	}
	source, unsized := a.unsized()
	if unsized {
		if _, st := s.settled(cancel, a, source); st != fuse.OK {
			return nil, st
		}
	} else {
		if buf = clip(buf, in, a.node().size); len(buf) == 0 {
			return fuse.ReadResultData(nil), fuse.OK
		}
	}
	if !await(cancel, s.permits) {
		return nil, fuse.EINTR
	}
	defer func() { s.permits <- struct{}{} }()
	buf, err := s.readChecked(cancel, a, buf, in, unsized)
	if errors.Is(err, errInterrupted) {
		return nil, fuse.EINTR
	}
	if errors.Is(err, errEnded) {
		return nil, fuse.EIO
	}
	if err != nil {
		s.findings.report(a.path(), err)
		return nil, fuse.EIO
	}
	s.stats.count(len(buf))
	return fuse.ReadResultData(buf), fuse.OK
}

// clip shortens the buffer to the readable bytes: none at or after the end, whatever the offset.
func clip(buf []byte, in *fuse.ReadIn, size int64) []byte {
	if in.Offset >= uint64(size) {
		return nil
	}
	return buf[:min(uint64(len(buf)), uint64(in.Size), uint64(size)-in.Offset)]
}

// errSpoiled reports a volume that has changed since its tree was made.
var errSpoiled = errors.New("its directory changed after it was verified and is no longer read")

// readChecked fills the buffer from the file's content, and returns the filled part: shorter only
// at the end of an unsized file.
func (s *fileSystem) readChecked(cancel <-chan struct{}, a at, buf []byte, in *fuse.ReadIn, unsized bool) ([]byte, error) {
	if s.checkSpoiled(a.volume) {
		return nil, errSpoiled
	}
	h, err := s.handles.acquire(cancel, a)
	if err != nil {
		return nil, err
	}
	defer s.handles.release(h)
	if unsized {
		sized, ok := h.content.(interface{ Size() int64 })
		if !ok {
			return nil, errors.New("open: the content has no size")
		}
		if buf = clip(buf, in, sized.Size()); len(buf) == 0 {
			return nil, nil
		}
	}
	n, err := s.readContent(cancel, h.content, buf, int64(in.Offset))
	atEnd := err == nil || errors.Is(err, io.EOF)
	if n == len(buf) && atEnd {
		return buf, nil
	}
	if atEnd {
		err = fmt.Errorf("short read at offset %d: %d of %d bytes", in.Offset, n, len(buf))
	}
	return nil, err
}

// readContent reads from a content. A read that can be ended is, a while after its reader was
// interrupted or the view ended.
func (s *fileSystem) readContent(cancel <-chan struct{}, c Content, buf []byte, off int64) (int, error) {
	slow, is := c.(Interruptible)
	if !is {
		return c.ReadAt(buf, off)
	}
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	go s.interrupt(ctx, cancel, stop)
	n, err := slow.ReadContext(ctx, buf, off)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return 0, cause
	}
	return n, err
}

// interrupt ends the read of ctx a while after a reason to do so (see patience), unless it has ended.
func (s *fileSystem) interrupt(ctx context.Context, cancel <-chan struct{}, stop context.CancelCauseFunc) {
	var reason error
	select {
	case <-cancel:
		reason = errInterrupted
	case <-s.done:
		reason = errEnded
	case <-ctx.Done():
		return
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-timer.C:
		stop(reason)
	case <-ctx.Done():
	}
}

// openContent opens the content of a file.
func (s *fileSystem) openContent(a at) (Content, error) {
	c, err := a.node().source.Open()
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	if c == nil {
		return nil, errors.New("open: no content")
	}
	return c, nil
}

// await receives from ch. When cancel is closed it waits a little longer (see patience), then
// returns false.
func await(cancel, ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
	}
	select {
	case <-ch:
		return true
	case <-cancel:
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-ch:
		return true
	case <-timer.C:
		return false
	}
}
