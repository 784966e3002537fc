package sample

import (
	"fmt"
	"slices"
	"testing"
)

// Over the seeds of many commits every case is tried, and with one seed always the same.
func TestEveryCaseIsTriedOverManySeeds(t *testing.T) {
	const cases, stride = 100, 7
	t.Setenv("SPECTRUM_TESTS", "sample")
	tried := map[int]bool{}
	for seed := range 100 {
		t.Setenv("SEED", fmt.Sprint(seed))
		s := Every(t, stride)
		if again := Every(t, stride); again != s {
			t.Fatalf("seed %d: %v, then %v", seed, s, again)
		}
		if s.First < 1 || s.First > s.Every || s.Every != wider(stride) {
			t.Fatalf("seed %d: %v", seed, s)
		}
		for i := 0; s.At(i) <= cases; i++ {
			if !s.Has(s.At(i)) || s.Has(s.At(i)+1) {
				t.Fatalf("%v disagrees with itself at %d", s, i)
			}
			tried[s.At(i)] = true
		}
	}
	if len(tried) != cases {
		t.Errorf("%d of %d cases were tried", len(tried), cases)
	}
}

func TestPickIsReproducible(t *testing.T) {
	t.Setenv("SPECTRUM_TESTS", "sample")
	all := []int{1, 2, 3, 4, 5, 6, 7, 8, 9}
	picked := map[int]bool{}
	for seed := range 50 {
		t.Setenv("SEED", fmt.Sprint(seed))
		some := Pick(t, 3, all)
		if len(some) != 3 || !slices.IsSorted(some) || !slices.Equal(some, Pick(t, 3, all)) {
			t.Fatalf("seed %d: %v", seed, some)
		}
		for _, n := range some {
			picked[n] = true
		}
	}
	if len(picked) != len(all) {
		t.Errorf("picked over all seeds: %v", picked)
	}
	if got := Pick(t, 9, all); !slices.Equal(got, all) {
		t.Errorf("of 9, 9 are %v", got)
	}
}

func TestFromStartsBySeed(t *testing.T) {
	all := []int{0, 1, 2, 3, 4}
	first := map[int]bool{}
	for seed := range 50 {
		t.Setenv("SEED", fmt.Sprint(seed))
		some := From("name", all)
		if !slices.Equal(some, From("name", all)) || len(some) != len(all) {
			t.Fatalf("seed %d: %v", seed, some)
		}
		for i, n := range some {
			if n != (some[0]+i)%len(all) {
				t.Fatalf("seed %d: %v", seed, some)
			}
		}
		first[some[0]] = true
	}
	if len(first) != len(all) {
		t.Errorf("they begin with %v over all seeds", first)
	}
}

func TestSweepLeavesNothingOut(t *testing.T) {
	for _, tier := range []string{"sweep", "long"} {
		t.Setenv("SPECTRUM_TESTS", tier)
		if s := Every(t, 50); s != All {
			t.Errorf("%s: %v", tier, s)
		}
		if got := Pick(t, 1, []int{1, 2, 3}); len(got) != 3 {
			t.Errorf("%s: %v", tier, got)
		}
	}
}

func TestTiers(t *testing.T) {
	for name, want := range map[string]Tier{"": Sample, "sample": Sample, "sweep": Sweep, "long": Long} {
		t.Setenv("SPECTRUM_TESTS", name)
		if got := Now(); got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
		if got := Of(1, 2, 3); got != int(want)+1 {
			t.Errorf("%q: %d", name, got)
		}
		skipped := !t.Run("need", func(t *testing.T) { Need(t, want) })
		if skipped {
			t.Errorf("%q: needs more than itself", name)
		}
	}
	t.Setenv("SPECTRUM_TESTS", "all")
	defer func() {
		if recover() == nil {
			t.Error("an unknown tier is taken")
		}
	}()
	Now()
}

// TestIsThinned: a test knows that it, or a part of it, leaves out cases.
func TestIsThinned(t *testing.T) {
	t.Setenv("SPECTRUM_TESTS", "sweep")
	t.Run("all", func(t *testing.T) {
		if Thin(t, 9, 1); IsThinned(t) {
			t.Error("it tries all")
		}
	})
	t.Run("some", func(t *testing.T) {
		t.Run("part", func(t *testing.T) { Thin(t, 9, 3) })
		if !IsThinned(t) {
			t.Error("a part of it does not try all")
		}
		t.Run("another", func(t *testing.T) {
			if IsThinned(t) {
				t.Error("another part does not try all")
			}
		})
	})
	t.Run("some more", func(t *testing.T) {
		if IsThinned(t) {
			t.Error("a test whose name begins with that of another one is not a part of it")
		}
		if Random(t, 3); !IsThinned(t) {
			t.Error("it does not try all")
		}
	})
}
