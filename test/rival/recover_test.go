package rival

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
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
	for way, match := range killed {
		for _, attack := range sample.Pick(t, 2, attacks()) {
			t.Run(way+"/"+attack.name, func(t *testing.T) {
				t.Parallel()
				p := harness.New(t, outputs())
				var sum harness.Tally
				trials := 0
				inWindows(t, sample.Thin(t, 29, 7), func(n int) int {
					trials++
					a := newAttempt(t, p, fmt.Sprint(trials))
					a.kill(t, match)
					return a.attackRecover(t, attack, n, []int{1, 2, 4, never}[trials%4], &sum)
				})
				sum.Demand(t)
			})
		}
	}
}

// kill commits until the first call that matches.
func (a *attempt) kill(t *testing.T, match func(sysfault.Call) bool) {
	t.Helper()
	if r := a.Commit(t, &sysfault.Plan{N: 1, Kill: true, Match: match}); r.Fault.Fired != 1 || !r.Killed() {
		t.Fatalf("the commit was not killed: %v", r)
	}
}

// attackRecover recovers with an attack before call n of it, and judges.
func (a *attempt) attackRecover(t *testing.T, attack attack, n, later int, sum *harness.Tally) (at int) {
	t.Helper()
	r, at := a.windowOf(t, attack, n, later, "recover", "--json", a.Root)
	a.count(sum, wantEnd(t, r))
	if attack.undo != nil && a.acting && !attack.ours {
		attack.undo(a)
	}
	if attack.root { // another one was looked at
		r = a.Recover(t, nil)
	}
	switch {
	case r.Status == 0 && (attack.takes || attack.ours):
		a.wantKnown(t, attack)
	case r.Status == 0:
		a.wantEither(t, attack)
	case r.Status == 1 || r.Status == 3 || r.Status == 74:
		a.endAgain(t, attack)
	default:
		t.Errorf("exit status %d", r.Status)
	}
	a.wantForeign(t, attack)
	a.failed(t, fmt.Sprintf("%s before call %d", attack.name, at), r)
	return at
}

// endAgain lets a second recover end what the first one could not.
func (a *attempt) endAgain(t *testing.T, attack attack) {
	t.Helper()
	r := a.Recover(t, nil)
	if r.Status == 3 {
		r = a.Acknowledge(t)
	}
	if r.Status != 0 {
		t.Errorf("a second recover: %v", r)
	}
	a.wantKnown(t, attack)
}
