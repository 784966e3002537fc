package fusefs

import (
	"container/list"
	"errors"
	"sync"

	"github.com/spectrumfs/spectrum/internal/scarce"
	"golang.org/x/sys/unix"
)

// maxHandles is the number of contents that may be open at once if descriptors are not scarce. A
// sequential reader needs one, a compiler a few; an additional open costs little compared with a
// check.
const maxHandles = 64

// handleLimit keeps to a quarter of the descriptors that the process may have.
func handleLimit() int {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
		return maxHandles
	}
	return int(max(1, min(maxHandles, r.Cur/4)))
}

// handle is one open content, shared by all readers of that node.
type handle struct {
	place   at
	ready   chan struct{} // closed when content or err is set
	content Content
	err     error

	// Under handleCache.mu.
	refs int
	idle *list.Element // its element in the list of idle ones, nil while in use
}

// handleCache keeps contents open between reads: at most max of them, provided that the caller
// uses no more than max at once. An unused content is closed when its slot is needed, the
// least recently used first.
type handleCache struct {
	max  int
	open func(place at) (Content, error)

	mu     sync.Mutex
	all    map[at]*handle
	idle   *list.List // of *handle, least recently used first
	closed bool
}

func newHandleCache(most int, open func(at) (Content, error)) *handleCache {
	return &handleCache{max: most, open: open, all: make(map[at]*handle), idle: list.New()}
}

// acquire returns the open content of a node, and opens it if necessary; concurrent callers
// wait for the same open. The caller must release the handle.
func (c *handleCache) acquire(cancel <-chan struct{}, place at) (*handle, error) {
	h, fresh, surplus := c.take(place)
	closeHandles(surplus)
	kept := false
	defer func() {
		if !kept { // also when open panics
			c.release(h)
		}
	}()
	if fresh {
		c.fill(h)
	} else if !await(cancel, h.ready) {
		return nil, errInterrupted
	}
	if h.err != nil {
		return nil, h.err
	}
	kept = true
	return h, nil
}

// take returns a reference to the handle of a node, whether the caller must fill it, and the
// handles that were displaced.
func (c *handleCache) take(place at) (h *handle, fresh bool, surplus []*handle) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h = c.all[place]; h != nil {
		if h.idle != nil {
			c.idle.Remove(h.idle)
			h.idle = nil
		}
		h.refs++
		return h, false, nil
	}
	surplus = c.shrink(c.max - 1)
	h = &handle{place: place, refs: 1, ready: make(chan struct{})}
	c.all[place] = h
	return h, true, surplus
}

// fill opens the content. If descriptors have run out it closes the idle ones and tries once more.
func (c *handleCache) fill(h *handle) {
	h.err = errors.New("open: panic") // for waiting callers, if open panics
	defer close(h.ready)
	content, err := c.open(h.place)
	if scarce.Descriptors(err) {
		c.mu.Lock()
		surplus := c.shrink(0)
		c.mu.Unlock()
		closeHandles(surplus)
		content, err = c.open(h.place)
	}
	h.content, h.err = content, err
}

// release drops a reference. A handle that could not be opened is
// forgotten with its last reference, so that the next reader tries again.
func (c *handleCache) release(h *handle) {
	c.mu.Lock()
	h.refs--
	var surplus []*handle
	if h.refs == 0 {
		h.idle = c.idle.PushBack(h)
		keep := c.max
		if c.closed {
			keep = 0
		}
		if h.content == nil {
			surplus = append(surplus, c.drop(h))
		}
		surplus = append(surplus, c.shrink(keep)...)
	}
	c.mu.Unlock()
	closeHandles(surplus)
}

// close closes the idle contents now, and all others when they are released.
func (c *handleCache) close() {
	c.mu.Lock()
	c.closed = true
	surplus := c.shrink(0)
	c.mu.Unlock()
	closeHandles(surplus)
}

// shrink removes idle handles until at most keep are left; under mu. The caller closes them after
// it has released mu, because closing may block.
func (c *handleCache) shrink(keep int) (surplus []*handle) {
	for len(c.all) > keep && c.idle.Len() > 0 {
		surplus = append(surplus, c.drop(c.idle.Front().Value.(*handle)))
	}
	return surplus
}

// drop removes one idle handle; under mu.
func (c *handleCache) drop(h *handle) *handle {
	c.idle.Remove(h.idle)
	h.idle = nil
	delete(c.all, h.place)
	return h
}

// closeHandles closes contents that are no longer reachable. They were only read, so an error of
// Close does not affect what was served.
func closeHandles(hs []*handle) {
	for _, h := range hs {
		if h.content != nil {
			_ = h.content.Close()
		}
	}
}
