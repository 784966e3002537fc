package fusefs

import "sync"

// fresh makes a value for concurrent callers, one at a time: at any time at most one value is
// being made, and one more is awaited. No caller gets a value whose making began before the
// call.
type fresh[T any] struct {
	mu      sync.Mutex
	running *making[T]
	next    *making[T] // for callers that arrived while the current one was being made
}

// making is a value that is being made.
type making[T any] struct {
	ready chan struct{} // closed when value or err is set
	value T
	err   error
}

// ask returns a value that will be ready later. produce may run in another goroutine.
func (f *fresh[T]) ask(produce func() (T, error)) *making[T] {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.running == nil {
		f.running = &making[T]{ready: make(chan struct{})}
		go f.run(f.running, produce)
		return f.running
	}
	if f.next == nil {
		f.next = &making[T]{ready: make(chan struct{})}
	}
	return f.next
}

func (f *fresh[T]) run(m *making[T], produce func() (T, error)) {
	for m != nil {
		m.err = attempt(func() (err error) {
			m.value, err = produce()
			return err
		})
		f.mu.Lock()
		close(m.ready)
		m = f.next
		f.running, f.next = m, nil
		f.mu.Unlock()
	}
}
