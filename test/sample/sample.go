package sample

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
)

// A Tier is how much a run tries.
type Tier int

// The tiers, from the smallest.
const (
	Sample Tier = iota
	Sweep
	Long
)

// Now returns the tier of this run. An unknown SPECTRUM_TESTS is a panic: a run that
// tries less than was meant must not pass.
func Now() Tier {
	switch name := os.Getenv("SPECTRUM_TESTS"); name {
	case "", "sample":
		return Sample
	case "sweep":
		return Sweep
	case "long":
		return Long
	default:
		panic(fmt.Sprintf("SPECTRUM_TESTS is %q, not sample, sweep or long", name))
	}
}

// Need skips the test in a smaller tier than this one.
func Need(t testing.TB, tier Tier) {
	t.Helper()
	if Now() < tier {
		t.Skipf("not in the sample: make %s", [...]string{"test", "sweep", "test-long"}[tier])
	}
}

// Of returns how many times something is to be tried: the number of this run's tier.
func Of(sample, sweep, long int) int {
	return [...]int{sample, sweep, long}[Now()]
}

// Seed returns the seed of this run.
func Seed() string {
	if seed := os.Getenv("SEED"); seed != "" {
		return seed
	}
	return "0"
}

// Rand returns random numbers that follow from the seed and the name of the test, and
// logs the seed.
func Rand(t testing.TB) *rand.Rand {
	t.Helper()
	t.Logf("SEED=%s", Seed())
	return rand.New(rand.NewPCG(hash(t.Name()), 0))
}

// hash returns a number whose every bit depends on the seed and on the whole name.
func hash(name string) uint64 {
	sum := sha256.Sum256([]byte(Seed() + "\x00" + name))
	return binary.LittleEndian.Uint64(sum[:])
}

// A Stride is which of a numbered list of cases are tried: First, First+Every, and so
// on. The cases are numbered from 1.
type Stride struct{ First, Every int }

// All is the stride that leaves nothing out.
var All = Stride{1, 1}

// Every returns a stride that tries about one case of every n, from an offset that follows
// from the seed, and logs it. In a sweep it is All.
func Every(t testing.TB, n int) Stride {
	t.Helper()
	return Thin(t, n, 1)
}

// Thin is Every for cases of which there are too many for a sweep, pairs of faults for
// instance: a sweep tries one of every inSweep, and only the long tier tries all.
func Thin(t testing.TB, inSample, inSweep int) Stride {
	t.Helper()
	n := Of(wider(inSample), inSweep, 1)
	if n <= 1 {
		return All
	}
	s := Stride{1 + int(hash(t.Name())%uint64(n)), n}
	t.Logf("every %d cases from %d (SEED=%s)", s.Every, s.First, Seed())
	thinned.Store(t.Name(), true)
	return s
}

// wider returns the stride of the sample for this stride of a test: half as large again, which
// keeps make test within ten minutes. Small strides stay.
func wider(n int) int {
	if n < 5 {
		return n
	}
	return n + n/2
}

// thinned has the names of the tests that [Thin] leaves cases out of.
var thinned sync.Map

// IsThinned reports whether this test, one that it is a part of, or a part of it leaves out cases, so
// that which ends it sees depends on the seed.
func IsThinned(t testing.TB) bool {
	found := false
	thinned.Range(func(name, _ any) bool {
		found = isPart(t.Name(), name.(string)) || isPart(name.(string), t.Name())
		return !found
	})
	return found
}

// isPart reports whether a test is another one, or a part of it.
func isPart(name, of string) bool { return strings.HasPrefix(name+"/", of+"/") }

// Random tries one case of every n, from an offset that follows from the seed, in every tier.
func Random(t testing.TB, n int) Stride {
	t.Helper()
	if n > 1 {
		thinned.Store(t.Name(), true)
	}
	return Stride{1 + Rand(t).IntN(n), n}
}

// At returns the number of the i-th case that is tried, with i from 0.
func (s Stride) At(i int) int { return s.First + i*s.Every }

// Has reports whether case n is tried.
func (s Stride) Has(n int) bool { return n >= s.First && (n-s.First)%s.Every == 0 }

// Pick returns at most n of these, in their order, by the seed; in a sweep all.
func Pick[T any](t testing.TB, n int, all []T) []T {
	t.Helper()
	if len(all) <= n || Now() > Sample {
		return all
	}
	chosen := make([]T, 0, n)
	random := Rand(t)
	for i, one := range all {
		if random.IntN(len(all)-i) < n-len(chosen) {
			chosen = append(chosen, one)
		}
	}
	return chosen
}

// From returns all of these in their order, from another one on, which follows from the seed
// and a name: by a name that several tests share they begin with the same one.
func From[T any](name string, all []T) []T {
	first := int(hash(name) % uint64(len(all)))
	return append(append(make([]T, 0, len(all)), all[first:]...), all[:first]...)
}
