package fusefs

import "sync/atomic"

// Stats counts what a view has sent to the kernel; reads from the kernel's cache are not counted.
// The zero Stats is ready.
type Stats struct {
	reads, bytes atomic.Int64
}

// Reads is the number of requests that were answered with content.
func (s *Stats) Reads() int64 { return s.reads.Load() }

// Bytes returns the number of bytes that were checked and sent.
func (s *Stats) Bytes() int64 { return s.bytes.Load() }

func (s *Stats) count(n int) {
	s.reads.Add(1)
	s.bytes.Add(int64(n))
}
