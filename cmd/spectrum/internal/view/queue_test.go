package view

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/test/harness"
)

// TestQueue: one has the place at a time, the smallest that waits gets it next, and one
// that no longer waits is passed over.
func TestQueue(t *testing.T) {
	var l queue
	if !l.enter(7, nil) {
		t.Fatal("a free place was not to be had")
	}
	var order []int64
	var all sync.WaitGroup
	waiting := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.waiting)
	}
	gone := make(chan struct{})
	for i, bytes := range []int64{5, 9, 1, 5, 3} {
		all.Go(func() {
			var done chan struct{}
			if bytes == 1 {
				done = gone
			}
			if l.enter(bytes, done) {
				order = append(order, bytes)
				l.leave()
			}
		})
		harness.Eventually(t, "it waits", func() bool { return waiting() == i+1 })
	}
	close(gone)
	harness.Eventually(t, "one has gone", func() bool { return waiting() == 4 })
	l.leave()
	all.Wait()
	if want := []int64{3, 5, 5, 9}; !slices.Equal(order, want) || l.taken {
		t.Errorf("%v, not %v; taken: %v", order, want, l.taken)
	}
}

// TestQueueGone: a place that comes to one who goes at that very moment is not lost.
func TestQueueGone(t *testing.T) {
	var l queue
	var inside atomic.Int32
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			for n := range 200 {
				done := make(chan struct{})
				if (n+i)%3 == 0 {
					time.AfterFunc(time.Duration(n%7)*time.Microsecond, func() { close(done) })
				}
				if l.enter(int64(n%5), done) {
					if inside.Add(1) != 1 {
						t.Error("two have the place")
					}
					inside.Add(-1)
					l.leave()
				}
			}
		})
	}
	all.Wait()
	if l.taken || len(l.waiting) > 0 {
		t.Errorf("taken: %v, waiting: %d", l.taken, len(l.waiting))
	}
}

// TestQueues: each size has its queue.
func TestQueues(t *testing.T) {
	var ls queues
	for bytes, want := range map[int64]int{0: 0, 16 << 20: 0, 16<<20 + 1: 1, longRun: 1, longRun + 1: 2, math.MaxInt64: 3} {
		if ls.of(bytes) != &ls[want] {
			t.Errorf("%d bytes are not in queue %d", bytes, want)
		}
	}
}
