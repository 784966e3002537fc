package blockhash

import (
	"container/list"
	"sync"
)

// Cache keeps checked blocks, up to a number of bytes, and drops the least recently used ones
// first. It is for random reads that are smaller than a block: a neighbour that is read soon
// after needs no second check. Whole-block reads bypass it. It is safe for concurrent use; a
// nil Cache keeps nothing.
type Cache struct {
	size int // bytes in all

	mu    sync.Mutex
	room  int // bytes that may still be added
	all   map[blockKey]*list.Element
	order *list.List // of *cachedBlock, least recently used first
}

// blockKey identifies a block. The content of a table never changes.
type blockKey struct {
	table *Table
	block int64
}

type cachedBlock struct {
	key  blockKey
	data []byte
}

// NewCache returns a Cache for so many bytes.
func NewCache(bytes int) *Cache {
	return &Cache{size: bytes, room: bytes, all: make(map[blockKey]*list.Element), order: list.New()}
}

// get copies a part of a block that is kept, from the byte from on.
func (c *Cache) get(t *Table, block int64, p []byte, from int64) bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.all[blockKey{t, block}]
	if e == nil {
		return false
	}
	c.order.MoveToBack(e)
	copy(p, e.Value.(*cachedBlock).data[from:])
	return true
}

// put stores a copy of a checked block, in the memory of a dropped one.
func (c *Cache) put(t *Table, block int64, data []byte) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key := blockKey{t, block}
	if c.all[key] != nil {
		return // another goroutine was faster
	}
	kept := c.makeRoom(len(data))
	if kept == nil {
		return
	}
	kept.key, kept.data = key, append(kept.data[:0], data...)
	c.room -= cap(kept.data)
	c.all[key] = c.order.PushBack(kept)
}

// makeRoom returns memory for n bytes, of a dropped block if there is one, or nil if the cache is
// smaller than that.
func (c *Cache) makeRoom(n int) *cachedBlock {
	if n > c.size {
		return nil
	}
	free := &cachedBlock{}
	for c.room < n {
		oldest := c.order.Front()
		c.order.Remove(oldest)
		gone := oldest.Value.(*cachedBlock)
		delete(c.all, gone.key)
		c.room += cap(gone.data)
		if cap(gone.data) >= n {
			free = gone
		}
	}
	if free.data == nil {
		free.data = make([]byte, 0, n) // append would allocate more
	}
	return free
}
