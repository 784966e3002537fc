package fusefs

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// settlings are the unsized files that are being checked as a whole, each once for all its readers.
type settlings struct {
	// permits are not those of reads, because a large file takes minutes.
	permits chan struct{}

	mu       sync.Mutex
	underway map[at]*settling
}

// settling is one such file.
type settling struct {
	ended   chan struct{} // closed when err is set
	err     error
	stop    context.CancelFunc
	waiting int // under settlings.mu
}

func newSettlings(most int) *settlings {
	n := max(1, min(runtime.GOMAXPROCS(0), most))
	ss := &settlings{permits: make(chan struct{}, n), underway: make(map[at]*settling)}
	for range n {
		ss.permits <- struct{}{}
	}
	return ss
}

// settle checks an unsized file as a whole. That continues while a caller waits for it, and a moment
// longer: a reader that was interrupted by any signal tries again at once. It ends with the view.
func (s *fileSystem) settle(cancel <-chan struct{}, a at, source Unsized) error {
	ss := s.settlings
	ss.mu.Lock()
	w := ss.underway[a]
	if w == nil {
		ctx, stop := context.WithCancel(context.Background())
		w = &settling{ended: make(chan struct{}), stop: stop}
		ss.underway[a] = w
		go s.settleNow(ctx, a, w, source)
	}
	w.waiting++
	ss.mu.Unlock()
	defer ss.leave(a, w)
	if !await(cancel, w.ended) {
		return errInterrupted
	}
	return w.err
}

// leave ends the wait of a caller for w.
func (ss *settlings) leave(a at, w *settling) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if w.waiting--; w.waiting > 0 || ss.underway[a] != w {
		return
	}
	time.AfterFunc(patience, func() {
		ss.mu.Lock()
		defer ss.mu.Unlock()
		if w.waiting == 0 {
			ss.drop(a, w)
			w.stop()
		}
	})
}

// drop makes the next caller start again; under mu.
func (ss *settlings) drop(a at, w *settling) {
	if ss.underway[a] == w {
		delete(ss.underway, a)
	}
}

// settleNow checks the file. The attributes that the kernel has, or that are being sent to it, are
// then outdated.
func (s *fileSystem) settleNow(ctx context.Context, a at, w *settling, source Unsized) {
	defer w.stop()
	go func() {
		select {
		case <-s.done:
			w.stop()
		case <-ctx.Done():
		}
	}()
	w.err = attempt(func() error {
		select {
		case <-s.settlings.permits:
			defer func() { s.settlings.permits <- struct{}{} }()
		case <-ctx.Done():
			return ctx.Err()
		}
		return source.Settle(ctx)
	})
	if w.err == nil {
		s.notifyAttr(a.number())
	}
	s.settlings.mu.Lock()
	defer s.settlings.mu.Unlock()
	s.settlings.drop(a, w)
	close(w.ended)
}

// settled is settle unless the file is settled, and reports findings about it. waited is whether
// the caller had to wait.
func (s *fileSystem) settled(cancel <-chan struct{}, a at, source Unsized) (waited bool, st fuse.Status) {
	if s.checkSpoiled(a.volume) {
		s.findings.report(a.path(), errSpoiled)
		return false, fuse.EIO
	}
	if facts, err := source.Facts(); err == nil && facts.Settled {
		return false, fuse.OK
	}
	switch err := s.settle(cancel, a, source); {
	case err == nil:
		return true, fuse.OK
	case errors.Is(err, errInterrupted):
		return true, fuse.EINTR
	case errors.Is(err, context.Canceled): // the view ends
		return true, fuse.EIO
	default:
		s.findings.report(a.path(), err)
		return true, fuse.EIO
	}
}

// openUnsized opens an unsized file. The file is first checked as a whole, because the kernel never
// reads an empty file, or beyond the end that it knows. An open that had to wait for the check is
// answered with ESTALE. The kernel then looks the name up again, which returns the checked size,
// and opens the file once more.
func (s *fileSystem) openUnsized(cancel <-chan struct{}, a at, source Unsized, out *fuse.OpenOut) fuse.Status {
	waited, st := s.settled(cancel, a, source)
	switch {
	case st != fuse.OK:
		return st
	case waited:
		return estale
	}
	out.OpenFlags = fuse.FOPEN_KEEP_CACHE
	return fuse.OK
}
