package fusefs

import (
	"errors"
	"fmt"
	"math/rand"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// counted is a Content that counts its uses.
type counted struct {
	node   uint32
	s      *contents
	closed atomic.Bool
}

func (c *counted) ReadAt(p []byte, _ int64) (int, error) {
	if c.closed.Load() {
		c.s.t.Errorf("node %d is read after it was closed", c.node)
	}
	return len(p), nil
}

func (c *counted) Close() error {
	if c.closed.Swap(true) {
		c.s.t.Errorf("node %d is closed twice", c.node)
	}
	c.s.open.Add(-1)
	return errors.New("no reader")
}

// contents opens Contents and counts them.
type contents struct {
	t            *testing.T
	open, opened atomic.Int64
	most         atomic.Int64
}

func (s *contents) openNode(place at) (Content, error) {
	node := place.id
	if node%17 == 13 {
		return nil, fmt.Errorf("node %d does not open", node)
	}
	n := s.open.Add(1)
	for old := s.most.Load(); n > old && !s.most.CompareAndSwap(old, n); old = s.most.Load() {
	}
	s.opened.Add(1)
	return &counted{node: node, s: s}, nil
}

func useContent(t *testing.T, h *handle) {
	if _, err := h.content.ReadAt(nil, 0); err != nil {
		t.Error(err)
	}
}

func TestHandlesUnderLoad(t *testing.T) {
	const most, users = 16, 16
	s := &contents{t: t}
	c := newHandleCache(most, s.openNode)
	var wg sync.WaitGroup
	for u := range users {
		wg.Go(func() {
			random := rand.New(rand.NewSource(int64(u)))
			for range 2000 {
				node := uint32(random.Intn(50))
				h, err := c.acquire(nil, at{id: node})
				if (err != nil) != (node%17 == 13) {
					t.Errorf("node %d: %v", node, err)
				}
				if err != nil {
					continue
				}
				if h.content.(*counted).node != node {
					t.Errorf("node %d is another one", node)
				}
				useContent(t, h)
				c.release(h)
			}
		})
	}
	wg.Wait()
	// A content is closed after it is taken out, outside the lock: each user may
	// be about to close one.
	if s.most.Load() > most+users {
		t.Errorf("%d were open at once", s.most.Load())
	}
	if n := s.open.Load(); n > most || n != int64(len(c.all)) || n == 0 {
		t.Errorf("%d are open, %d known", n, len(c.all))
	}
	c.close()
	if n := s.open.Load(); n != 0 || len(c.all) != 0 || c.idle.Len() != 0 {
		t.Errorf("after close %d are open, %d known, %d idle", n, len(c.all), c.idle.Len())
	}
}

func TestHandlesShareAndEvictLeastRecent(t *testing.T) {
	s := &contents{t: t}
	c := newHandleCache(3, s.openNode)
	touch := func(node uint32) *handle {
		h, err := c.acquire(nil, at{id: node})
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	for _, node := range []uint32{1, 2, 3, 1} { // 2 is now the least recent
		c.release(touch(node))
	}
	if s.opened.Load() != 3 {
		t.Fatalf("opened %d", s.opened.Load())
	}
	a, b := touch(3), touch(3)
	if a != b || s.opened.Load() != 3 {
		t.Fatal("not shared")
	}
	d := touch(4) // its place is made before it is opened, not when it is released
	if s.open.Load() != 3 {
		t.Errorf("%d are open", s.open.Load())
	}
	c.release(d)
	if c.all[at{id: 2}] != nil || c.all[at{id: 1}] == nil || c.all[at{id: 3}] == nil || s.open.Load() != 3 {
		t.Fatalf("known %v", c.all)
	}
	c.release(a)
	c.release(touch(5))
	c.release(touch(6))
	if c.all[at{id: 3}] == nil {
		t.Fatal("evicted while in use")
	}
	c.release(b)
}

// TestHandlesOverTheLimit: more contents in use than the limit are served too, and closed when they
// are no longer used.
func TestHandlesOverTheLimit(t *testing.T) {
	s := &contents{t: t}
	c := newHandleCache(2, s.openNode)
	var hs []*handle
	for node := range uint32(5) {
		h, err := c.acquire(nil, at{id: node})
		if err != nil {
			t.Fatal(err)
		}
		hs = append(hs, h)
	}
	c.close() // while in use: they live until they are released
	for i, h := range hs {
		if n := s.open.Load(); n != int64(5-i) {
			t.Errorf("%d open, want %d", n, 5-i)
		}
		useContent(t, h)
		c.release(h)
	}
	if s.open.Load() != 0 {
		t.Errorf("%d are left open", s.open.Load())
	}
}

// TestHandlesOutOfDescriptors: idle contents are given back, then it is tried
// again; once.
func TestHandlesOutOfDescriptors(t *testing.T) {
	s := &contents{t: t}
	limit, tries := int64(4), 0
	c := newHandleCache(8, func(node at) (Content, error) {
		tries++
		if s.open.Load() >= limit {
			return nil, fmt.Errorf("open: %w", unix.EMFILE)
		}
		return s.openNode(node)
	})
	for node := range uint32(6) {
		h, err := c.acquire(nil, at{id: node})
		if err != nil {
			t.Fatalf("node %d: %v", node, err)
		}
		c.release(h)
	}
	limit, tries = 0, 0
	if _, err := c.acquire(nil, at{id: 9}); !errors.Is(err, unix.EMFILE) || tries != 2 {
		t.Errorf("%v after %d tries", err, tries)
	}
	limit = 4
	h, err := c.acquire(nil, at{id: 9}) // a failure is not remembered
	if err != nil {
		t.Fatal(err)
	}
	c.release(h)
}

// TestHandlesWaitForOpen: readers that arrive while a content is being opened get the same one, or
// the same error; waiting can be interrupted.
func TestHandlesWaitForOpen(t *testing.T) {
	for _, fail := range []error{nil, errors.New("no")} {
		s := &contents{t: t}
		gate := make(chan struct{})
		var opens atomic.Int64
		c := newHandleCache(4, func(node at) (Content, error) {
			opens.Add(1)
			<-gate
			if fail != nil {
				return nil, fail
			}
			return s.openNode(node)
		})
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				h, err := c.acquire(nil, at{id: 1})
				if !errors.Is(err, fail) {
					t.Errorf("%v, want %v", err, fail)
				}
				if err == nil {
					c.release(h)
				}
			})
		}
		eventually(t, "all waiting", func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.all[at{id: 1}] != nil && c.all[at{id: 1}].refs == 20
		})
		cancelled := make(chan struct{})
		close(cancelled)
		if _, err := c.acquire(cancelled, at{id: 1}); !errors.Is(err, errInterrupted) {
			t.Errorf("interrupted: %v", err)
		}
		close(gate)
		wg.Wait()
		if opens.Load() != 1 {
			t.Errorf("opened %d times", opens.Load())
		}
		if n := len(c.all); (fail == nil) != (n == 1) {
			t.Errorf("%d known after %v", n, fail)
		}
	}
}
