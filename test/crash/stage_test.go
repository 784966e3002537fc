package crash

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }

func needLong(t *testing.T) {
	t.Helper()
	if os.Getenv("SPECTRUM_LONG") == "" {
		t.Skip("long: make test-long")
	}
}

// A stage is a project, and a directory for the restore roots of its trials.
type stage struct {
	*harness.Project
	dir string
	tally
}

func newStage(t *testing.T, dir string, runs ...harness.Files) *stage {
	t.Helper()
	return &stage{Project: harness.NewIn(t, dir, runs...), dir: dir}
}

func (st *stage) site(t *testing.T, name ...any) *harness.Site {
	t.Helper()
	return st.Site(t, filepath.Join(st.dir, strings.ReplaceAll(fmt.Sprintln(name...), "\n", "")))
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

// sweep runs trials 1, 2, 3 and so on, until one says that it had nothing to
// do. Two run at a time. The first that fails ends its lane.
func sweep(t *testing.T, trial func(t *testing.T, n int) bool) {
	t.Helper()
	const lanes = 2
	t.Run("sweep", func(t *testing.T) {
		for lane := range lanes {
			t.Run(fmt.Sprint("lane ", lane), func(t *testing.T) {
				t.Parallel()
				for n := lane + 1; trial(t, n) && !t.Failed(); n += lanes {
				}
			})
		}
	})
}

// every is sweep over every stride-th call, and over all of them where
// SPECTRUM_LONG asks for it.
func every(t *testing.T, stride int, trial func(t *testing.T, n int) bool) {
	t.Helper()
	if os.Getenv("SPECTRUM_LONG") != "" {
		stride = 1
	}
	sweep(t, func(t *testing.T, n int) bool { return trial(t, n*stride) })
}

// beneath matches the calls of want that are about the root or the state.
func beneath(s *harness.Site, want func(sysfault.Call) bool) func(sysfault.Call) bool {
	return func(c sysfault.Call) bool {
		return want(c) && (inside(c.Path, s.Root) || inside(c.Path, s.Project.State))
	}
}

func inside(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// changing matches the calls that can change what is on the disk. The close of
// a file does not: to be killed before it is to be killed before the next call.
func changing(c sysfault.Call) bool { return c.Name != "close" && sysfault.Mutating(c) }

// anything matches all calls that sysfault knows.
func anything(sysfault.Call) bool { return true }

// last describes the last counted call, with short paths.
func last(s *harness.Site, r harness.Reply) string {
	if len(r.Fault.Trace) == 0 {
		return "nothing"
	}
	return describe(s, r.Fault.Trace[len(r.Fault.Trace)-1])
}

func describe(s *harness.Site, c sysfault.Call) string {
	text := fmt.Sprintf("call %d, %s %s", c.N, c.Name, c.Path)
	if c.To != "" {
		text += " to " + c.To
	}
	return strings.ReplaceAll(strings.ReplaceAll(text, s.Root, "R"), s.Project.State, "STATE")
}
