package store

import (
	"container/list"
	"iter"
	"sync"
)

// cellSize is what packs are requested in: a request is for some neighbouring cells.
const cellSize = 32 << 10

// cellKey is a cell of a pack of a plan.
type cellKey struct{ pack, n uint32 }

// cells yields the cells that a part is in.
func (p part) cells() iter.Seq[cellKey] {
	return func(yield func(cellKey) bool) {
		for n := p.off / cellSize; n*cellSize < p.off+p.n; n++ {
			if !yield(cellKey{p.pack, uint32(n)}) {
				return
			}
		}
	}
}

// A cell is a cell that was requested.
type cell struct {
	key    cellKey
	of     *flight
	ready  chan struct{} // closed when buf or err is there
	buf    []byte
	err    error
	isWide bool // the request of err was for more than its first reader needed

	place *list.Element // among those that are kept; under cells.mu
}

// cells are the cells that are on their way, and those that are kept, up to a number of bytes: the least
// recently used ones are dropped first.
type cells struct {
	mu      sync.Mutex
	all     map[cellKey]*cell
	order   list.List // of *cell that are here, least recently used first
	kept    int64     // their bytes
	coming  int       // cells on their way
	flying  map[*flight]struct{}
	closed  bool // no request succeeds any more
	streams streams
}

// use returns a cell that is here or on its way; nil for none. Under mu, as all methods but those for
// flights.
func (cs *cells) use(key cellKey) *cell {
	c := cs.all[key]
	if c != nil && c.place != nil {
		cs.order.MoveToBack(c.place)
	}
	return c
}

// begin makes a cell that is on its way. It takes the place of one that still is.
func (cs *cells) begin(key cellKey, of *flight) *cell {
	c := &cell{key: key, of: of, ready: make(chan struct{})}
	of.cells = append(of.cells, c)
	cs.all[key] = c
	cs.coming++
	return c
}

// drop forgets a cell that is here. One on its way is a newer one than that whose bytes were wrong.
func (cs *cells) drop(key cellKey) {
	c := cs.all[key]
	if c == nil || c.place == nil {
		return
	}
	cs.order.Remove(c.place)
	cs.kept -= int64(len(c.buf))
	c.place = nil
	delete(cs.all, key)
}

// arrived is called by a flight for a cell that is here now.
func (cs *cells) arrived(c *cell, buf []byte) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c.buf = buf
	cs.coming--
	close(c.ready)
	if cs.all[c.key] != c { // it was requested once more
		return
	}
	c.place = cs.order.PushBack(c)
	cs.kept += int64(len(buf))
	for cs.kept > keptBytes {
		cs.drop(cs.order.Front().Value.(*cell).key)
	}
}

// failed is called by a flight for a cell that did not come. The next reader requests it again.
func (cs *cells) failed(c *cell, err error, isWide bool) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c.err, c.isWide = err, isWide
	cs.coming--
	close(c.ready)
	if cs.all[c.key] == c {
		delete(cs.all, c.key)
	}
}

// How readers that go forward are recognised.
const (
	streamsAtOnce = 16
	streamSlack   = 1 << 20 // reads of one reader come in any order within so many bytes
)

// A stream is a reader that goes forward in the row of all extents, also from one output to the next.
type stream struct {
	begin, end int64 // what it has read
	ahead      int64 // until where it was requested
	used       uint64
}

// streams are the readers that were seen last.
type streams struct {
	all  [streamsAtOnce]stream
	used uint64
}

// next notes a read, and returns what is to be requested beside it.
func (ss *streams) next(at, n int64) (s *stream, from, to int64) {
	ss.used++
	oldest := &ss.all[0]
	for i := range ss.all {
		s := &ss.all[i]
		if s.used < oldest.used {
			oldest = s
		}
		if s.used == 0 || at < s.end-streamSlack || at > s.end+streamSlack {
			continue
		}
		s.used, s.begin, s.end = ss.used, min(s.begin, at), max(s.end, at+n)
		window := min(max(s.end-s.begin, smallestRange), largestRange)
		from = max(s.ahead, s.end)
		if from-s.end >= (window+1)/2 {
			return s, from, from // enough is on its way
		}
		return s, from, s.end + window
	}
	*oldest = stream{begin: at, end: at + n, ahead: at + n, used: ss.used}
	return oldest, at + n, at + max(n, smallestRange)
}
