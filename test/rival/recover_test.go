package rival

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// TestRecoverWindows kills a commit, with all targets moved or just before its
// report, and runs every attack in the windows of the recovery.
func TestRecoverWindows(t *testing.T) {
	killed := map[string]func(sysfault.Call) bool{
		"backward": func(c sysfault.Call) bool { return strings.HasSuffix(c.Path, "/.spectrum06_committed.new") },
		"forward": func(c sysfault.Call) bool {
			return c.Name == "renameat2" && strings.HasSuffix(c.Path, "/.spectrum06_artifacts/1")
		},
	}
	stride := 13
	if os.Getenv("SPECTRUM_LONG") != "" {
		stride = 1
	}
	for way, match := range killed {
		for i, attack := range attacks() {
			t.Run(way+"/"+attack.name, func(t *testing.T) {
				t.Parallel()
				p := harness.New(t, prey())
				var sum counts
				for n := 1 + i%stride; ; n += stride {
					a := newArena(t, p, fmt.Sprint(n))
					a.kill(t, match)
					at := a.attackRecover(t, attack, n, []int{1, 2, 4, never}[n/stride%4], &sum)
					if t.Failed() || at == 0 {
						break
					}
					n = at
				}
				t.Logf("%v", &sum)
			})
		}
	}
}

// kill commits until the first call that matches.
func (a *arena) kill(t *testing.T, match func(sysfault.Call) bool) {
	t.Helper()
	if r := a.Commit(t, &sysfault.Plan{N: 1, Kill: true, Match: match}); r.Fault.Fired != 1 || !r.Killed() {
		t.Fatalf("the commit was not killed: %v", r)
	}
}

// attackRecover recovers with an attack before call n of it, and judges.
func (a *arena) attackRecover(t *testing.T, attack attack, n, later int, sum *counts) (at int) {
	t.Helper()
	r, at := a.windowOf(t, attack, n, later, "recover", "--json", a.Root)
	sum.add(a, wantEnd(t, r))
	if attack.undo != nil && a.acting && !attack.ours {
		attack.undo(a)
	}
	if attack.root { // another one was looked at
		r = a.Recover(t, nil)
	}
	switch {
	case r.Status == 0 && (attack.takes || attack.ours):
		a.wantKnown(t)
	case r.Status == 0:
		a.wantEither(t, attack)
	case r.Status == 1 || r.Status == 3 || r.Status == 70:
		a.endAgain(t)
	default:
		t.Errorf("exit status %d", r.Status)
	}
	a.wantForeign(t, attack)
	a.failed(t, fmt.Sprintf("%s before call %d", attack.name, at), r)
	return at
}

// endAgain lets a second recover end what the first one could not.
func (a *arena) endAgain(t *testing.T) {
	t.Helper()
	r := a.Recover(t, nil)
	if r.Status == 3 {
		r = a.Acknowledge(t)
	}
	if r.Status != 0 {
		t.Errorf("a second recover: %v", r)
	}
	a.wantKnown(t)
}
