package staging

import (
	"context"
	"errors"
	"sync"

	"github.com/spectrumfs/spectrum/internal/inorder"
)

// A worker does the work of one index after another, and is closed at the end.
type worker interface {
	do(ctx context.Context, i int) *Error
	close()
}

// parallel gives the indexes below n to workers made by start. When some fail,
// the error is that of the lowest index that does, whatever the timing. A
// worker asks ctx itself: a cancelled one has a step, and so an [Error].
func parallel(ctx context.Context, workers, n int, start func() worker) *Error {
	var mu sync.Mutex
	var started []worker
	begin := func() worker {
		mu.Lock()
		defer mu.Unlock()
		w := start()
		started = append(started, w)
		return w
	}
	err := inorder.Each(context.Background(), workers, n, begin, func(w worker, i int) error {
		if failure := w.do(ctx, i); failure != nil {
			return failure
		}
		return nil
	})
	for _, w := range started {
		w.close()
	}
	var failure *Error
	errors.As(err, &failure)
	return failure
}
