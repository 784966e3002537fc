package view

import (
	"math"
	"slices"
	"sync"
)

// queues decide which runs of a view are verified at a time: one of each size, and of
// those that wait for the same place the smallest first. So a run waits neither for one that
// takes much longer, nor for many of them, and what a few verifications hold of artifacts is
// all that is held.
type queues [len(queueSizes)]queue

// queueSizes are the most bytes of a run in each queue. Before its outputs are listed a run has
// none.
var queueSizes = [...]int64{16 << 20, longRun, 32 << 30, math.MaxInt64}

// longRun is how large a run is that "latest" does not wait for.
const longRun = 1 << 30

// of returns the queue of a run of so many bytes.
func (ls *queues) of(bytes int64) *queue {
	return &ls[slices.IndexFunc(queueSizes[:], func(most int64) bool { return bytes <= most })]
}

// queue is a place for one run at a time, and those that wait for it. The zero value is
// free.
type queue struct {
	mu      sync.Mutex
	taken   bool
	waiting []waiter // the smallest first, and of the same size the one that came first
}

type waiter struct {
	bytes int64
	free  chan struct{} // closed when the place is its own
}

// enter waits for the place, and reports whether it has got it before done.
func (l *queue) enter(bytes int64, done <-chan struct{}) bool {
	l.mu.Lock()
	if !l.taken {
		l.taken = true
		l.mu.Unlock()
		return true
	}
	w := waiter{bytes, make(chan struct{})}
	at := slices.IndexFunc(l.waiting, func(other waiter) bool { return other.bytes > bytes })
	if at < 0 {
		at = len(l.waiting)
	}
	l.waiting = slices.Insert(l.waiting, at, w)
	l.mu.Unlock()
	select {
	case <-w.free:
		return true
	case <-done:
	}
	l.mu.Lock()
	at = slices.IndexFunc(l.waiting, func(other waiter) bool { return other.free == w.free })
	if at >= 0 {
		l.waiting = slices.Delete(l.waiting, at, at+1)
	}
	l.mu.Unlock()
	if at < 0 { // it has got the place meanwhile
		l.leave()
	}
	return false
}

// leave passes the place to the next one.
func (l *queue) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		l.taken = false
		return
	}
	close(l.waiting[0].free)
	l.waiting = slices.Delete(l.waiting, 0, 1)
}
