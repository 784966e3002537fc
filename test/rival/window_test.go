package rival

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// TestWindows runs every attack in the windows of a commit: it acts before call
// n, and where it can be undone that is done some calls later or after the end.
// Each window has every fifth attack; the long test has all of them, undone at
// every distance.
func TestWindows(t *testing.T) {
	for i, attack := range attacks() {
		t.Run(attack.name, func(t *testing.T) {
			t.Parallel()
			later := []int{1, 2, 4, never}
			windows(t, attack, 1+i%5, 5, func(n int) int { return later[n/5%len(later)] })
		})
	}
}

func TestLongWindows(t *testing.T) {
	if os.Getenv("SPECTRUM_LONG") == "" {
		t.Skip("long: make test-long")
	}
	for _, attack := range attacks() {
		for _, later := range []int{1, 2, 3, 5, 8, 13, 21, never} {
			t.Run(fmt.Sprintf("%s/%d", attack.name, later), func(t *testing.T) {
				t.Parallel()
				windows(t, attack, 1, 1, func(int) int { return later })
			})
			if attack.undo == nil {
				break
			}
		}
	}
}

const never = 1 << 30

// windows commits once for every window from the first on. Where an attack finds
// nothing to do it waits for the first window in which it does.
func windows(t *testing.T, attack attack, first, step int, later func(n int) int) {
	t.Helper()
	p := harness.New(t, prey())
	var sum counts
	for n := first; ; n += step { // from the last act on
		a := newArena(t, p, fmt.Sprint(n))
		r, at := a.window(t, attack, n, later(n))
		sum.add(a, r)
		a.end(t, r, attack)
		if a.failed(t, fmt.Sprintf("%s before call %d", attack.name, at), r) {
			return
		}
		if at == 0 {
			break
		}
		n = at
	}
	t.Logf("%v", &sum)
	if sum.acts == 0 {
		t.Error("the attack never acted")
	}
}

// window commits with one attack before call n, or the first after it where it
// can act, undone so many calls later. It returns the call; 0 is none.
func (a *arena) window(t *testing.T, attack attack, n, later int) (r harness.Reply, at int) {
	t.Helper()
	return a.windowOf(t, attack, n, later, harness.CommitArgs(a.Preview(t))...)
}

// windowOf is window for any command.
func (a *arena) windowOf(t *testing.T, attack attack, n, later int, args ...string) (r harness.Reply, at int) {
	t.Helper()
	plan := sysfault.Plan{N: n, Onward: true, Match: a.names, Before: func(c sysfault.Call) {
		switch {
		case at == 0 && attack.act(a):
			at, a.acting = c.N, attack.undo != nil
		case at > 0 && a.acting && c.N >= at+later:
			attack.undo(a)
			a.acting = false
		}
	}}
	r = a.Project.Run(t, &plan, args...)
	return r, at
}

// names are the calls between which the windows lie: those beneath the root
// that look a name up or change one.
func (a *arena) names(c sysfault.Call) bool {
	switch c.Name {
	case "openat", "openat2", "mkdirat", "renameat", "renameat2", "linkat", "symlinkat", "unlinkat":
		return strings.HasPrefix(c.Path, a.Root)
	}
	return false
}
