// Package inorder does work in parallel and decides as if it had been done in
// order.
//
// The laws want the first failure in their own order, whatever finished first
// (SPECTRUM-06 8.4). Indexes are handed out in ascending order, so when index
// i fails, every lower one has been handed out already: those are finished,
// higher ones are no longer begun, and the lowest failure is the answer.
package inorder

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// A Closer is a worker of [Each] that holds something.
type Closer interface{ Close() }

// Each calls do(w, i) once for each i from 0 to n-1, on up to as many
// goroutines as workers says (0: as there are processors), each with a w of its
// own made by newWorker, which is closed at the end if it is a [Closer]. It returns the error of
// the lowest i that failed. When ctx is done no further index is begun, and its error counts as
// that index's.
func Each[W any](ctx context.Context, workers, n int, newWorker func() W, do func(w W, i int) error) error {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	var r run
	r.failed.Store(int64(n))
	work := func() {
		w := newWorker()
		if c, is := any(w).(Closer); is {
			defer c.Close()
		}
		for i, ok := r.take(); ok; i, ok = r.take() {
			if err := first(ctx.Err, func() error { return do(w, i) }); err != nil {
				r.fail(i, err)
			}
		}
	}
	var group sync.WaitGroup
	for range min(n, workers) - 1 {
		group.Go(work)
	}
	work() // this goroutine works too: alone, when there is one index
	group.Wait()
	return r.err
}

// Do is [Each] for work that needs nothing of its own.
func Do(ctx context.Context, n int, do func(i int) error) error {
	return Each(ctx, 0, n, func() struct{} { return struct{}{} }, func(_ struct{}, i int) error { return do(i) })
}

// first returns the first error of two steps; the second is not taken after a
// failed first.
func first(a, b func() error) error {
	if err := a(); err != nil {
		return err
	}
	return b()
}

// run is the state that the goroutines of one Each share.
type run struct {
	next   atomic.Int64
	failed atomic.Int64 // the lowest index that failed; n when none did

	mu  sync.Mutex
	err error
}

// take returns the next index, unless a lower one has failed or all are taken.
func (r *run) take() (int, bool) {
	i := r.next.Add(1) - 1
	return int(i), i < r.failed.Load()
}

func (r *run) fail(i int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if int64(i) < r.failed.Load() {
		r.failed.Store(int64(i))
		r.err = err
	}
}
