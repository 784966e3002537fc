package view

import (
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// TestSilence: what had no answer is not requested again at once, and is a moment later; other parts and
// other outputs are.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s silence
		s.note(3, 100, 200, io.ErrNoProgress)
		for _, test := range []struct {
			output   int
			from, to int64
			want     error
		}{
			{3, 150, 160, io.ErrNoProgress}, {3, 0, 101, io.ErrNoProgress}, {3, 199, 300, io.ErrNoProgress},
			{3, 0, 100, nil}, {3, 200, 300, nil}, {2, 150, 160, nil}, {0, 0, 10, nil},
		} {
			if err := s.of(test.output, test.from, test.to); err != test.want {
				t.Errorf("%+v: %v", test, err)
			}
		}
		time.Sleep(askedAgain)
		if err := s.of(3, 150, 160); err != nil {
			t.Error(err)
		}
		for range 2 * len(s.last) {
			s.note(1, 0, 10, io.EOF)
		}
	})
}
