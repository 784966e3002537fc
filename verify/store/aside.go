package store

import (
	"context"
	"io"
	"iter"
)

// stuckAtOnce bounds the calls of a directory that wait for its file system.
const stuckAtOnce = 32

// An aside driver is that of a directory whose file system may not answer, and a system call cannot be
// interrupted. Reading is done in goroutines: a request ends with its context, and what it has called stays
// in the kernel, up to stuckAtOnce calls; a request that finds no place waits for one. Writing is done by
// the caller: nothing may be written after a request has failed.
type aside struct {
	*files
	places chan struct{}
}

func newAside(f *files) *aside { return &aside{f, make(chan struct{}, stuckAtOnce)} }

// hungError is a file system that does not answer. A call that is repeated would wait as well.
type hungError struct{}

func (hungError) Error() string        { return "the file system does not answer" }
func (hungError) Is(target error) bool { return target == errStalled }

// enter takes a place for a call, which gives it back.
func (a *aside) enter(ctx context.Context) error {
	select {
	case a.places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// call calls do in a goroutine, and returns its results. When ctx is done first, they are dropped.
func call[T any](ctx context.Context, a *aside, do func() (T, error), drop func(T)) (T, error) {
	type results struct {
		value T
		err   error
	}
	ended := make(chan results)
	go func() {
		defer func() { <-a.places }()
		value, err := do()
		select {
		case ended <- results{value, err}:
		case <-ctx.Done():
			drop(value)
		}
	}()
	select {
	case r := <-ended:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

func (a *aside) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	if err := a.enter(ctx); err != nil {
		return nil, err
	}
	body, err := call(ctx, a, func() (io.ReadCloser, error) { return a.files.Get(ctx, key, off, n) }, func(body io.ReadCloser) {
		if body != nil {
			_ = body.Close()
		}
	})
	if err != nil {
		return nil, err
	}
	size := int64(asideBuffer)
	if n >= 0 {
		size = min(size, n+1) // and the end
	}
	return &asideBody{ctx: ctx, of: a, body: body, buf: make([]byte, size)}, nil
}

func (a *aside) Stat(ctx context.Context, key string) (Object, error) {
	if err := a.enter(ctx); err != nil {
		return Object{}, err
	}
	return call(ctx, a, func() (Object, error) { return a.files.Stat(ctx, key) }, func(Object) {})
}

func (a *aside) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		if err := a.enter(ctx); err != nil {
			yield(Object{}, err)
			return
		}
		all, err := call(ctx, a, func() (all []Object, err error) {
			for o, err := range a.files.List(ctx, prefix) {
				if all = append(all, o); err != nil || len(all) > listed {
					return all, err
				}
			}
			return all, nil
		}, func([]Object) {})
		if err != nil {
			yield(Object{}, err)
			return
		}
		for _, o := range all {
			if !yield(o, nil) {
				return
			}
		}
	}
}

// asideBuffer is how much is read at a time, into memory that a call has until it ends.
const asideBuffer = 256 << 10

// An asideBody is an opened object. A call that was left has it, and closes it.
type asideBody struct {
	ctx  context.Context //nolint:containedctx // of the request that the body is a part of, as in net/http
	of   *aside
	body io.ReadCloser // nil when it was closed, or left to a call
	buf  []byte
	left []byte // of buf: what was read and not returned
	err  error  // after left
}

func (b *asideBody) Read(p []byte) (int, error) {
	if len(b.left) == 0 && b.err == nil {
		b.fill()
	}
	if len(b.left) == 0 {
		return 0, b.err
	}
	n := copy(p, b.left)
	b.left = b.left[n:]
	return n, nil
}

// fill reads on.
func (b *asideBody) fill() {
	if b.err = b.of.enter(b.ctx); b.err != nil {
		return
	}
	type filled struct {
		n   int
		err error
	}
	body, buf := b.body, b.buf
	b.body = nil
	now, err := call(b.ctx, b.of, func() (filled, error) {
		n, err := body.Read(buf)
		return filled{n, err}, nil
	}, func(filled) { _ = body.Close() })
	if err != nil {
		b.err = err
		return
	}
	b.body, b.left, b.err = body, buf[:now.n], now.err
}

// Close waits for the file system no longer than the request: the kernel can ask it to close a file.
func (b *asideBody) Close() error {
	body := b.body
	if body == nil {
		return nil
	}
	b.body = nil
	if b.of.enter(b.ctx) != nil {
		go func() {
			b.of.places <- struct{}{}
			defer func() { <-b.of.places }()
			_ = body.Close()
		}()
		return nil
	}
	_, err := call(b.ctx, b.of, func() (struct{}, error) { return struct{}{}, body.Close() }, func(struct{}) {})
	return err
}
