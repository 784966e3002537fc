// Package inorder does work in parallel and returns the result of doing it in order.
//
// The laws require the first failure in their own order, regardless of which one finished first
// (SPECTRUM-06 8.4). Indexes are started in ascending order. When index i fails, all lower ones
// have been started already and are finished, higher ones are not started, and the failure of the
// lowest index is returned.
package inorder

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// A Closer is a worker of [Each] that must be closed.
type Closer interface{ Close() }

// Each calls do(w, i) once for each i from 0 to n-1, on up to workers goroutines (0: one for each
// processor). Each goroutine has its own w, made by newWorker and closed at the end if it is a
// [Closer]. Each returns the error of the lowest i that failed. When ctx is done no further index
// is started, and the error of ctx counts as that index's error.
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
	work() // this goroutine works too, alone if there is one index
	group.Wait()
	return r.err
}

// Do is [Each] for work that needs nothing of its own.
func Do(ctx context.Context, n int, do func(i int) error) error {
	return Each(ctx, 0, n, func() struct{} { return struct{}{} }, func(_ struct{}, i int) error { return do(i) })
}

// first calls a, then b unless a failed, and returns the error.
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

// take returns the next index, or false if a lower one has failed or all are taken.
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
