package staging

import (
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// A worker does the work of one index after another, and is closed when there
// is no more.
type worker interface {
	do(i int) *Error
	close()
}

// parallel gives the indexes below n, in ascending order, to workers made by
// start. When some fail, the error is that of the lowest index that does,
// whatever the timing: every lower index was handed out before and is finished,
// higher ones are given up.
func parallel(workers, n int, start func() worker) *Error {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	low := lowest{index: n}
	var next atomic.Int64
	var g errgroup.Group
	for range min(workers, n) {
		g.Go(func() error {
			w := start()
			defer w.close()
			for i := int(next.Add(1)) - 1; low.wants(i); i = int(next.Add(1)) - 1 {
				low.add(i, w.do(i))
			}
			return nil
		})
	}
	_ = g.Wait() // errors are in low, by index
	return low.err
}

// lowest holds the error of the lowest index that failed so far.
type lowest struct {
	mu    sync.Mutex
	index int
	err   *Error
}

func (l *lowest) wants(i int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return i < l.index
}

func (l *lowest) add(i int, err *Error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil && i < l.index {
		l.index, l.err = i, err
	}
}
