package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// slowest is the rate, in bytes a second, below which a transfer is given up.
const slowest = 256 << 10

// A pace is until when a request may take. Each byte that arrives moves the end by the time that it
// may take at the slowest rate, to no later than the patience from then. So no answer is slower than
// that rate for longer than the patience, however long the answer is.
type pace struct {
	patience time.Duration
	end      time.Time
}

// newPace begins a request that sends a number of bytes.
func newPace(now time.Time, patience time.Duration, size int64) pace {
	return pace{patience, now.Add(patience + timeOf(size))}
}

func timeOf(size int64) time.Duration { return time.Duration(size) * time.Second / slowest }

// arrived counts bytes of the answer.
func (p *pace) arrived(now time.Time, n int64) {
	end := p.end.Add(timeOf(n))
	if latest := now.Add(p.patience); end.After(latest) {
		end = latest
	}
	if end.After(p.end) {
		p.end = end
	}
}

type counterKey struct{}

// withPace calls tooSlow when a request takes longer than its pace allows, until stop is called.
func withPace(ctx context.Context, p pace, tooSlow func()) (_ context.Context, stop func()) {
	var mu sync.Mutex
	timer := time.AfterFunc(time.Until(p.end), tooSlow)
	ctx = context.WithValue(ctx, counterKey{}, func(n int64) {
		mu.Lock()
		defer mu.Unlock()
		p.arrived(time.Now(), n)
		timer.Reset(time.Until(p.end))
	})
	return ctx, func() { timer.Stop() }
}

// counter returns what counts the bytes of an answer to the request of ctx. Every driver counts all of
// them, also those of lists and of errors.
func counter(ctx context.Context) func(n int64) {
	if count, ok := ctx.Value(counterKey{}).(func(int64)); ok {
		return count
	}
	return func(int64) {}
}

// A counted body counts what arrives.
type counted struct {
	io.ReadCloser
	count func(n int64)
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	if n > 0 {
		c.count(int64(n))
	}
	return n, err
}

// counting is a transport whose answers are counted and bounded.
type counting struct{ *http.Transport }

// RoundTrip does a request.
func (c counting) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := c.Transport.RoundTrip(req)
	if err == nil {
		resp.Body = &bounded{counted{resp.Body, counter(req.Context())}, mostOf(req, resp.StatusCode)}
	}
	return resp, err
}

// maxAside is how many bytes of an answer are read that is not what was requested: an error, for example.
const maxAside = 1 << 20

// mostOf is how many bytes of an answer are read. A library may read an answer that it does not use to its
// end, and a server can send one without end.
func mostOf(req *http.Request, status int) int64 {
	value := req.Header.Get("Range")
	switch {
	case status != http.StatusOK && status != http.StatusPartialContent, value != "" && status == http.StatusOK:
		return maxAside
	case value == "":
		return maxRun + maxAside // no object and no page of a list has more
	}
	var first, last int64
	if n, _ := fmt.Sscanf(value, "bytes=%d-%d", &first, &last); n < 2 {
		return maxRun + maxAside
	}
	return last - first + 1 + maxAside
}

// A bounded body ends with an error after a number of bytes.
type bounded struct {
	io.ReadCloser
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errors.New("the answer is too long")
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
