package blocktable

import (
	"container/list"
	"context"
	"errors"
	"sync"
)

// Cache keeps checked blocks, up to a number of bytes, and drops the least recently used ones
// first. It is for reads of a part of a block, whose neighbour is read soon after. Concurrent
// readers of one block share one check. It is safe for concurrent use; a nil Cache keeps
// nothing.
type Cache struct {
	size int64 // bytes in all

	mu    sync.Mutex
	kept  int64
	all   map[blockKey]*cachedBlock
	order *list.List // of *cachedBlock that are ready, least recently used first
}

// blockKey identifies a block. The content of a table never changes.
type blockKey struct {
	table *Table
	block uint32 // in the table
}

type cachedBlock struct {
	key   blockKey
	ready chan struct{} // closed when n or err is set
	buf   []byte
	n     int
	err   error
	left  bool // its reader gave up: err is of no other one

	// Under Cache.mu.
	refs  int           // callers that wait for it or copy from it
	place *list.Element // nil until it is ready, and when it was dropped
}

// NewCache returns a Cache for so many bytes.
func NewCache(bytes int64) *Cache {
	return &Cache{size: bytes, all: make(map[blockKey]*cachedBlock), order: list.New()}
}

// errLoad is returned to callers that wait for a block whose check panicked.
var errLoad = errors.New("the check of this block has failed")

var buffers sync.Pool

// buffer returns memory for a block.
func buffer(block int64) []byte {
	if buf, _ := buffers.Get().(*[]byte); buf != nil && int64(cap(*buf)) >= block {
		return (*buf)[:block]
	}
	return make([]byte, block)
}

// recycle returns the memory of a block.
func recycle(buf []byte) { buffers.Put(&buf) }

// use calls do with a block, and loads the block if it is not cached. It returns the error of load,
// or the cause of ctx.
func (c *Cache) use(ctx context.Context, key blockKey, block int64, load func(buf []byte) (int, error), do func(data []byte)) error {
	if c == nil {
		buf := buffer(block)
		defer recycle(buf)
		n, err := load(buf)
		if err == nil {
			do(buf[:n])
		}
		return err
	}
	for {
		if err, isLeft := c.useOnce(ctx, key, block, load, do); !isLeft {
			return err
		}
	}
}

// useOnce is use, except that it fails if another reader was loading the block and gave up.
func (c *Cache) useOnce(ctx context.Context, key blockKey, block int64, load func(buf []byte) (int, error), do func(data []byte)) (err error, isLeft bool) {
	b, fresh := c.take(key)
	defer c.release(b)
	if fresh {
		b.err = errLoad // for waiting callers, if load panics
		func() {
			defer close(b.ready)
			b.buf = buffer(block)
			b.n, b.err = load(b.buf)
			b.left = b.err != nil && ctx.Err() != nil
		}()
		c.keep(b)
	} else {
		select {
		case <-b.ready:
		case <-ctx.Done():
			return context.Cause(ctx), false
		}
		if b.left && ctx.Err() == nil {
			return nil, true
		}
	}
	if b.err == nil {
		do(b.buf[:b.n])
	}
	return b.err, false
}

// take returns a reference to a block, and whether the caller must load it.
func (c *Cache) take(key blockKey) (b *cachedBlock, fresh bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b = c.all[key]; b != nil {
		if b.place != nil {
			c.order.MoveToBack(b.place)
		}
		b.refs++
		return b, false
	}
	b = &cachedBlock{key: key, ready: make(chan struct{}), refs: 1}
	c.all[key] = b
	return b, true
}

// keep caches a loaded block, and drops others. A block with an error is dropped, so that the next
// reader tries again.
func (c *Cache) keep(b *cachedBlock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b.err != nil {
		delete(c.all, b.key)
		return
	}
	b.place = c.order.PushBack(b)
	c.kept += int64(cap(b.buf))
	for c.kept > c.size {
		oldest := c.order.Front().Value.(*cachedBlock)
		c.order.Remove(oldest.place)
		delete(c.all, oldest.key)
		oldest.place = nil
		c.kept -= int64(cap(oldest.buf))
		if oldest.refs == 0 {
			recycle(oldest.buf)
		}
	}
}

// release drops a reference.
func (c *Cache) release(b *cachedBlock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b.refs--; b.refs == 0 && b.place == nil && b.buf != nil {
		if c.all[b.key] == b { // its load panicked
			delete(c.all, b.key)
		}
		recycle(b.buf)
	}
}
