package store

import (
	"testing"
	"time"
)

// TestPace: an answer may be as long as it likes, and never slower than the slowest rate for longer than
// the patience.
func TestPace(t *testing.T) {
	const patience = 30 * time.Second
	begin := time.Unix(1000, 0)
	// lasts returns how long an answer of some bytes in each tenth of a second is waited for.
	lasts := func(p pace, each int64) time.Duration {
		now := begin
		for now.Before(p.end) && now.Before(begin.Add(time.Hour)) {
			now = now.Add(time.Second / 10)
			p.arrived(now, each)
		}
		return now.Sub(begin)
	}
	for each, most := range map[int64]time.Duration{0: patience, 1: patience + time.Second, slowest / 20: 2*patience + time.Second} {
		if got := lasts(newPace(begin, patience, 0), each); got < patience || got > most {
			t.Errorf("%d bytes at a time: %v", each, got)
		}
	}
	if got := lasts(newPace(begin, patience, 0), slowest/10+1); got < time.Hour {
		t.Errorf("at the slowest rate: %v", got)
	}
	p := newPace(begin, patience, 0)
	p.arrived(begin.Add(time.Second), 1<<30)
	if want := begin.Add(time.Second + patience); !p.end.Equal(want) {
		t.Errorf("after many bytes at once: %v, want %v", p.end, want)
	}
	p = newPace(begin, patience, 10*slowest)
	want := begin.Add(10*time.Second + patience)
	if p.arrived(begin, 1); !p.end.Equal(want) {
		t.Errorf("an upload: %v, want %v", p.end, want)
	}
}
