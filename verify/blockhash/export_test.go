package blockhash

// Marks are what the blocks of a table are checked against.
func (t *Table) Marks() []byte { return t.marks }

// Kept counts the blocks in a cache and the bytes that they occupy, each of
// which must be found and stand in the order of use once.
func (c *Cache) Kept() (blocks, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for e := c.order.Front(); e != nil; e = e.Next() {
		b := e.Value.(*cachedBlock)
		if c.all[b.key] != e {
			panic("a block that cannot be found takes room")
		}
		blocks, bytes = blocks+1, bytes+cap(b.data)
	}
	if blocks != len(c.all) {
		panic("a block that is found has no place in the order")
	}
	return blocks, bytes
}
