package harness

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spectrumfs/spectrum/test/sample"
)

// A Tally counts what a test did. Its methods may run at the same time.
type Tally struct {
	mu sync.Mutex
	n  map[string]int
}

// Add counts one more of this.
func (c *Tally) Add(what string) { c.AddN(what, 1) }

// AddN counts so many more of this.
func (c *Tally) AddN(what string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[what] += n
}

// Count returns how often this was counted.
func (c *Tally) Count(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[what]
}

// Kinds returns how many different things were counted.
func (c *Tally) Kinds() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.n)
}

// String returns the counts in one line.
func (c *Tally) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var words []string
	for _, k := range slices.Sorted(maps.Keys(c.n)) {
		words = append(words, fmt.Sprintf("%s %d", k, c.n[k]))
	}
	return strings.Join(words, ", ")
}

// Demand logs the counts and fails when nothing was counted, or one of these never
// was. Where cases were left out, only the first holds: which ends the others have depends on the seed.
func (c *Tally) Demand(t testing.TB, keys ...string) {
	t.Helper()
	t.Log(c)
	if c.Kinds() == 0 {
		t.Error("nothing was counted")
	}
	if !sample.IsThinned(t) && sample.Now() > sample.Sample {
		c.require(t, keys)
	}
}

// DemandAlways is Demand in every tier.
func (c *Tally) DemandAlways(t testing.TB, keys ...string) {
	t.Helper()
	t.Log(c)
	c.require(t, keys)
}

func (c *Tally) require(t testing.TB, keys []string) {
	t.Helper()
	for _, k := range keys {
		if c.Count(k) == 0 {
			t.Errorf("never counted: %s", k)
		}
	}
}

// DemandKinds is Demand, and there must be at least so many kinds of counts; one, where cases were left
// out.
func (c *Tally) DemandKinds(t testing.TB, least int, keys ...string) {
	t.Helper()
	c.Demand(t, keys...)
	if n := c.Kinds(); !sample.IsThinned(t) && sample.Now() > sample.Sample && n < least {
		t.Errorf("too little was seen: %d kinds, not %d", n, least)
	}
}
