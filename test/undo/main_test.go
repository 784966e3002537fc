package undo

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spectrumfs/spectrum/test/blocklog"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// TestMain gives the tests mounts of their own.
func TestMain(m *testing.M) {
	os.Exit(blocklog.Main(func() int { return harness.Main(m) }))
}

func long() bool { return os.Getenv("SPECTRUM_LONG") != "" }

func needLong(t *testing.T) {
	t.Helper()
	if !long() {
		t.Skip("long: make test-long")
	}
}

// A tally counts what a sweep did.
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *tally) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[what]++
}

// count is how often something was counted.
func (c *tally) count(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[what]
}

// want prints the tally, and fails if one of these was never counted.
func (c *tally) want(t *testing.T, keys ...string) {
	t.Helper()
	var words []string
	for _, k := range slices.Sorted(maps.Keys(c.n)) {
		words = append(words, fmt.Sprintf("%s %d", k, c.n[k]))
	}
	t.Log(strings.Join(words, ", "))
	for _, k := range keys {
		if c.n[k] == 0 {
			t.Errorf("never counted: %s", k)
		}
	}
}

// A stride is which calls of a sweep are tried: the first, and every so many.
type stride struct{ first, every int }

// at is the call of a trial, counted from 0.
func (s stride) at(trial int) int { return s.first + trial*s.every }

// each is every call, in the long run; in the other this stride.
func each(s stride) stride {
	if long() {
		return stride{1, 1}
	}
	return s
}

// sweep runs trials in worlds of a kind, until one says that there is no such call.
// Two run at a time, each in a world of its own. The first that fails ends its lane.
func sweep(t *testing.T, p *harness.Project, a *act, s stride, trial func(t *testing.T, w *world, n int) bool) {
	t.Helper()
	const lanes = 2
	t.Run("sweep", func(t *testing.T) {
		for lane := range lanes {
			t.Run(fmt.Sprint("lane ", lane), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, p, in(harness.MemoryDir(t)), a)
				w.rehearse(t)
				for i := lane; !t.Failed(); i += lanes {
					w.reset(t)
					if !trial(t, w, s.at(i)) {
						break
					}
				}
			})
		}
	})
}

// changing matches the calls that can change what is on the disk of this world. The
// close of a file does not: to be killed before it is to be killed before the next.
func (w *world) changing(c sysfault.Call) bool {
	return c.Name != "close" && sysfault.Mutating(c) && w.about(c)
}

// failing matches the calls that can fail. A close that does closes all the same,
// which cannot be played.
func (w *world) failing(c sysfault.Call) bool { return c.Name != "close" && w.about(c) }

// about matches the calls that are about this world.
func (w *world) about(c sysfault.Call) bool { return inside(c.Path, w.dir) || inside(c.To, w.dir) }

func inside(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// last describes the last counted call, with short paths.
func (w *world) last(r harness.Reply) string {
	if len(r.Fault.Trace) == 0 {
		return "nothing"
	}
	return w.describe(r.Fault.Trace[len(r.Fault.Trace)-1])
}

func (w *world) describe(c sysfault.Call) string {
	text := fmt.Sprintf("call %d, %s %s", c.N, c.Name, c.Path)
	if c.To != "" {
		text += " to " + c.To
	}
	return strings.NewReplacer(w.site.Root, "R", filepath.Dir(w.site.Root), "ABOVE", w.site.Project.State, "STATE").Replace(text)
}
