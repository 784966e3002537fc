package crash

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

func TestKillSingle(t *testing.T) {
	killEverywhere(t, restoring(harness.Single()), 31)
}
func TestKillChain(t *testing.T) {
	killEverywhere(t, restoring(harness.Chain(3, 10)...), 97)
}

func TestKillSmall(t *testing.T) { killEverywhere(t, restoring(harness.Small()), 23) }

func TestLongKill(t *testing.T) {
	sample.Need(t, sample.Long)
	for name, runs := range map[string][]harness.Files{"single": {harness.Single()}, "chain": harness.Chain(3, 10)} {
		t.Run(name, func(t *testing.T) { killEverywhere(t, restoring(runs...), 1) })
	}
}

// killEverywhere kills a commit before each of its calls, in a sample before one of
// each stride, and then recovers: by recover, or in every third trial by the next
// preview or commit.
func killEverywhere(t *testing.T, made maker, stride int) {
	t.Helper()
	killAt(t, made, sample.Thin(t, stride, 3))
}

func killAt(t *testing.T, made maker, calls sample.Stride) {
	t.Helper()
	sum := sweep(t, calls, made, func(t *testing.T, tr *trials, n int) bool {
		s := tr.site(t, n)
		waiting := s.Preview(t)
		r := tr.killed(t, s, n)
		if !r.Killed() {
			_, err := s.Recovered(t, harness.Allowed(r, s.ReportSeen())...)
			if err != nil || r.Status != 0 {
				t.Errorf("not killed: %v, %v", r, err)
			}
			return false
		}
		seen := s.ReportSeen()
		found, _ := s.State()
		tr.Add("found " + found.String())
		again := tr.next(t, s, n, waiting)
		allowed := harness.Allowed(r, seen)
		if again.Answer.OK && again.Answer.Phase != "" {
			allowed = []harness.State{harness.After} // the second commit, after recovery
			tr.Add("committed again")
		}
		state, err := s.Recovered(t, allowed...)
		if !fits(again, n, state) || err != nil {
			t.Errorf("killed before %s\n%v\n%v", s.Last(r), again, err)
			return true
		}
		tr.Add("recovered " + state.String())
		s.Remove(t)
		return true
	})
	sum.Demand(t, "found other", "recovered before", "recovered after")
}

// next is the first command after the kill: recover, preview, or the commit of a
// preview that was made before the kill.
func (tr *trials) next(t *testing.T, s *harness.Site, n int, waiting string) harness.Reply {
	t.Helper()
	switch n % 6 {
	case 0:
		return s.PreviewReply(t, nil)
	case 3:
		return tr.Run(t, nil, harness.CommitArgs(waiting)...)
	default:
		return s.Recover(t, nil)
	}
}

// fits reports whether a command could end so: a preview of what has been restored is rejected or
// shows conflicts, and a waiting preview has gone stale.
func fits(r harness.Reply, n int, state harness.State) bool {
	switch n % 6 {
	case 0:
		return r.Status == 0 || state == harness.After && r.Status == 1
	case 3:
		return r.Status == 0 || r.Status == 4 || state == harness.After && r.Status == 1
	default:
		return r.Status == 0
	}
}

// killed commits and is killed before call n.
func (tr *trials) killed(t *testing.T, s *harness.Site, n int) harness.Reply {
	t.Helper()
	return s.Commit(t, harness.Killing(n, s.Beneath(harness.Changing)))
}

// TestKillNewState kills the first commit of a state directory in the calls
// that are about the state: the key of the journal and the audit log are made
// there.
func TestKillNewState(t *testing.T) {
	sum := sweep(t, sample.Every(t, 19), restoring(harness.Small()), func(t *testing.T, tr *trials, n int) bool {
		p := *tr.Project
		p.State = filepath.Join(tr.dir, fmt.Sprint("state ", n))
		harness.Must(t, os.Mkdir(p.State, 0o700))
		s := p.Site(t, filepath.Join(tr.dir, fmt.Sprint("root ", n)))
		about := func(c sysfault.Call) bool { return harness.Changing(c) && harness.Inside(c.Path, p.State) }
		r := s.Commit(t, &sysfault.Plan{N: n, Kill: true, Record: true, Match: about})
		if !r.Killed() {
			return false
		}
		again := s.Recover(t, nil)
		state, err := s.Recovered(t, harness.Before, harness.After)
		if again.Status != 0 || err != nil {
			t.Errorf("killed before %s\n%v\n%v", s.Last(r), again, err)
		}
		if state == harness.Before {
			if next := s.Commit(t, nil); next.Status != 0 {
				t.Errorf("killed before %s, and no commit after that: %v", s.Last(r), next)
			}
		}
		tr.Add("recovered " + state.String())
		return true
	})
	sum.Demand(t, "recovered before", "recovered after")
}

// TestKillTwice kills a commit before some of its calls, and its recovery before some
// of its own.
func TestKillTwice(t *testing.T) {
	pairs(t, restoring(harness.Single()), sample.Of(211, 47, 17), 7, 3)
	pairs(t, restoring(harness.Chain(3, 3)...), sample.Of(311, 79, 29), 11, 3)
}

func TestLongKillTwice(t *testing.T) {
	sample.Need(t, sample.Long)
	pairs(t, restoring(harness.Single()), 1, 1, 1)
	pairs(t, restoring(harness.Chain(3, 10)...), 1, 1, 1)
}

// pairs kills commits before one call of each stride, from one that follows from the
// seed, and the recovery before each of its calls; in a sample and in a sweep before one of
// as many as given.
func pairs(t *testing.T, made maker, stride, inSample, inSweep int) {
	t.Helper()
	recoveries := sample.Thin(t, inSample, inSweep)
	sum := sweep(t, sample.Random(t, stride), made, func(t *testing.T, tr *trials, n int) bool {
		for m := recoveries.First; ; m += recoveries.Every {
			s := tr.aloneIn(t, n, m)
			r := tr.killed(t, s, n)
			if !r.Killed() {
				return false
			}
			tr.Add("kills")
			seen := s.ReportSeen()
			recovery := s.Recover(t, harness.Killing(m, s.Beneath(harness.Changing)))
			found, _ := s.State()
			seen = seen || s.ReportSeen()
			end := s.Recover(t, nil)
			state, err := s.Recovered(t, harness.Allowed(r, seen)...)
			if err != nil || end.Status != 0 {
				t.Errorf("commit killed before %s\nrecovery killed before %s\n%v\n%v", s.Last(r), s.Last(recovery), end, err)
				return true
			}
			tr.remove(t, s)
			if !recovery.Killed() && m == recoveries.First && m > 1 {
				m = 1 - recoveries.Every // a short one: its first call
				continue
			}
			if !recovery.Killed() {
				break
			}
			tr.Add("pairs")
			tr.Add("found " + found.String())
			tr.Add("recovered " + state.String())
		}
		return true
	})
	sum.Demand(t, "pairs", "found other", "recovered before")
}
