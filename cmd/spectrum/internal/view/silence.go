package view

import (
	"sync"
	"time"
)

// silence are the reads that a store did not answer in time. When a page cannot be read, the kernel
// requests it once more, at once, and the reader would wait twice: a request within askedAgain fails at
// once.
type silence struct {
	mu   sync.Mutex
	last [32]unanswered // used in turn
	next int
}

// unanswered is a part of an output, and until when it is not requested again.
type unanswered struct {
	output   int
	from, to int64
	until    time.Time
	err      error
}

const askedAgain = time.Second

// of returns the error of a part of an output that had no answer right before; nil for none.
func (s *silence) of(output int, from, to int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.last {
		if u := &s.last[i]; u.output == output && from < u.to && u.from < to && time.Now().Before(u.until) {
			return u.err
		}
	}
	return nil
}

// note keeps the error of a part of an output that had no answer.
func (s *silence) note(output int, from, to int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last[s.next] = unanswered{output, from, to, time.Now().Add(askedAgain), err}
	s.next = (s.next + 1) % len(s.last)
}
