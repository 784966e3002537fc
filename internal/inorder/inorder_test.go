package inorder_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/spectrumfs/spectrum/internal/inorder"
)

func none() struct{} { return struct{}{} }

func TestEveryIndexOnce(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 1000} {
		calls := make([]atomic.Int32, n)
		err := inorder.Each(t.Context(), 0, n, none, func(_ struct{}, i int) error {
			calls[i].Add(1)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := range calls {
			if c := calls[i].Load(); c != 1 {
				t.Errorf("n=%d: index %d done %d times", n, i, c)
			}
		}
	}
}

// TestLowestFailureWins lets the lowest failing index wait until a higher one has failed: its error
// is returned nevertheless.
func TestLowestFailureWins(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	higher := make(chan struct{})
	err := inorder.Each(t.Context(), 0, 100, none, func(_ struct{}, i int) error {
		switch i {
		case 1:
			<-higher
			return errors.New("index 1")
		case 2:
			defer close(higher)
			return errors.New("index 2")
		}
		return nil
	})
	if err == nil || err.Error() != "index 1" {
		t.Errorf("got %v", err)
	}
}

// TestAlwaysTheSame repeats a run with many failures.
func TestAlwaysTheSame(t *testing.T) {
	for range 500 {
		err := inorder.Each(t.Context(), 0, 64, none, func(_ struct{}, i int) error {
			if i%7 == 5 {
				return fmt.Errorf("index %d", i)
			}
			return nil
		})
		if err == nil || err.Error() != "index 5" {
			t.Fatalf("got %v", err)
		}
	}
}

func TestStopsAfterFailure(t *testing.T) {
	var calls atomic.Int32
	_ = inorder.Each(t.Context(), 0, 1_000_000, none, func(struct{}, int) error {
		calls.Add(1)
		return errors.New("no")
	})
	if n := calls.Load(); n > 64 {
		t.Errorf("%d calls after the first failure", n)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := inorder.Each(ctx, 0, 10, none, func(struct{}, int) error {
		t.Error("work was begun")
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
