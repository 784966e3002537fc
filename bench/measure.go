package main

import (
	"context"
	"slices"
	"time"
)

// pair holds the times of one measurement, a value per round.
type pair struct{ ours, theirs []time.Duration }

// A timing does what is measured once and returns the time of the part that counts.
type timing func(ctx context.Context, round int) (time.Duration, error)

// interleave runs ours and theirs in turn, so that a slow minute of the machine meets both;
// who goes first changes from round to round.
func interleave(ctx context.Context, rounds int, ours, theirs timing) (pair, error) {
	var p pair
	for round := range rounds {
		steps := []struct {
			f    timing
			into *[]time.Duration
		}{{ours, &p.ours}, {theirs, &p.theirs}}
		if round%2 == 1 {
			slices.Reverse(steps)
		}
		for _, s := range steps {
			took, err := s.f(ctx, round)
			if err != nil {
				return pair{}, err
			}
			*s.into = append(*s.into, took)
		}
	}
	return p, nil
}

// clock returns the time that f takes.
func clock(f func() error) (time.Duration, error) {
	start := time.Now()
	err := f()
	return time.Since(start), err
}

func best(times []time.Duration) time.Duration { return slices.Min(times) }

func median(times []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[len(sorted)/2]
}
