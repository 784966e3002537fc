package power

import (
	"fmt"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
)

// A loss is what was found after a power cut, and after the recovery.
type loss struct {
	writes int  // how many were lost
	late   bool // the command had ended
	state  harness.State
	fault  error
}

// A tally counts losses.
type tally struct {
	cuts, lossy, late int
	states            [3]int
	faults            []error
}

func (s *tally) add(l loss) {
	s.cuts++
	if l.writes > 0 {
		s.lossy++
	}
	if l.late {
		s.late++
	}
	if l.fault != nil {
		s.faults = append(s.faults, l.fault)
	} else {
		s.states[l.state]++
	}
}

func (s *tally) String() string {
	return fmt.Sprintf("%d power cuts (%d lost writes, %d came late): %d before, %d after, %d bad",
		s.cuts, s.lossy, s.late, s.states[harness.Before], s.states[harness.After], len(s.faults))
}

// report prints the counts and the first faults. Cuts that never showed the given
// states are no test, nor are those that lost nothing or all came early; but a sample
// may have met none of them.
func (s *tally) report(t *testing.T, states ...harness.State) {
	t.Helper()
	t.Log(s)
	for _, fault := range s.faults[:min(len(s.faults), 3)] {
		t.Error(fault)
	}
	if s.cuts == 0 {
		t.Error("no power was cut")
	}
	if sample.Now() == sample.Sample {
		return
	}
	for _, e := range states {
		if s.states[e] == 0 {
			t.Errorf("no cut showed the root as %v", e)
		}
	}
	if s.lossy == 0 || s.late == 0 {
		t.Error("these cuts do not show a command")
	}
}

// recovered recovers a root and says how it is then. What is neither exactly as
// before nor exactly as after is an error, as is a recovery that fails, and a
// second one that changes anything.
func recovered(t testing.TB, s *harness.Site) (harness.State, error) {
	t.Helper()
	found, err := harness.Take(s.Root)
	if err != nil {
		return harness.Other, err
	}
	if r := s.Recover(t, nil); r.Status != 0 {
		return harness.Other, fmt.Errorf("%v\nafter the loss, and not as before:\n%s", r, harness.Diff(s.Before, found))
	}
	state, err := s.Recovered(t, harness.Before, harness.After)
	if err != nil {
		err = fmt.Errorf("%w\nafter the loss, and not as before:\n%s", err, harness.Diff(s.Before, found))
	}
	return state, err
}
