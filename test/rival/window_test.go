package rival

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// TestWindows runs every attack in the windows of a commit: it acts before call n, and
// where it can be undone that is done some calls later or after the end. The long test
// undoes each at every distance.
func TestWindows(t *testing.T) {
	for _, attack := range sample.Pick(t, 5, attacks()) {
		t.Run(attack.name, func(t *testing.T) {
			t.Parallel()
			later := []int{1, 2, 4, never}
			windows(t, attack, sample.Thin(t, 31, 7), func(n int) int { return later[n%len(later)] })
		})
	}
}

func TestLongWindows(t *testing.T) {
	sample.Need(t, sample.Long)
	for _, attack := range attacks() {
		for _, later := range []int{1, 2, 3, 5, 8, 13, 21, never} {
			t.Run(fmt.Sprintf("%s/%d", attack.name, later), func(t *testing.T) {
				t.Parallel()
				windows(t, attack, sample.All, func(int) int { return later })
			})
			if attack.undo == nil {
				break
			}
		}
	}
}

const never = 1 << 30

// inWindows runs trials from the first window of a stride on, each that many windows
// behind the one that the last trial has found; 0 is none. Where the stride begins
// behind the last window, an earlier one is tried. It returns how many were found.
func inWindows(t *testing.T, s sample.Stride, trial func(n int) (at int)) int {
	t.Helper()
	for {
		found := 0
		for n := s.First; ; n += s.Every {
			at := trial(n)
			if at == 0 {
				break
			}
			n = at
			found++
		}
		if found > 0 || s.First == 1 || t.Failed() {
			return found
		}
		s.First /= 2
	}
}

// windows commits once for every window of a stride. Where an attack finds nothing to
// do it waits for the first window in which it does.
func windows(t *testing.T, attack attack, s sample.Stride, later func(trial int) int) {
	t.Helper()
	p := harness.New(t, outputs())
	var sum harness.Tally
	trials := 0
	inWindows(t, s, func(n int) int {
		trials++
		a := newAttempt(t, p, fmt.Sprint(trials))
		r, at := a.window(t, attack, n, later(trials))
		a.count(&sum, r)
		a.end(t, r, attack)
		if a.failed(t, fmt.Sprintf("%s before call %d", attack.name, at), r) {
			return 0
		}
		return at
	})
	sum.DemandAlways(t, "acts")
}

// window commits with one attack before call n, or the first after it where it
// can act, undone so many calls later. It returns the call; 0 is none.
func (a *attempt) window(t *testing.T, attack attack, n, later int) (r harness.Reply, at int) {
	t.Helper()
	return a.windowOf(t, attack, n, later, harness.CommitArgs(a.Preview(t))...)
}

// windowOf is window for any command.
func (a *attempt) windowOf(t *testing.T, attack attack, n, later int, args ...string) (r harness.Reply, at int) {
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
func (a *attempt) names(c sysfault.Call) bool {
	switch c.Name {
	case "openat", "openat2", "mkdirat", "renameat", "renameat2", "linkat", "symlinkat", "unlinkat":
		return strings.HasPrefix(c.Path, a.Root)
	}
	return false
}
