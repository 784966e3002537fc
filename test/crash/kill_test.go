package crash

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

func TestKillSingle(t *testing.T) {
	killEverywhere(t, newStage(t, harness.MemoryDir(t), harness.Single()), 5)
}
func TestKillChain(t *testing.T) {
	killEverywhere(t, newStage(t, harness.MemoryDir(t), harness.Chain(3, 10)...), 29)
}

// TestKillSmall is on the file system of the temporary files.
func TestKillSmall(t *testing.T) { killEverywhere(t, newStage(t, t.TempDir(), harness.Small()), 2) }

func TestLongKill(t *testing.T) {
	needLong(t)
	for name, runs := range map[string][]harness.Files{"single": {harness.Single()}, "chain": harness.Chain(3, 10)} {
		t.Run(name, func(t *testing.T) { killEverywhere(t, newStage(t, t.TempDir(), runs...), 1) })
	}
}

// killEverywhere kills a commit before every stride-th of its calls, and then
// recovers: by recover, or in every third trial by the next preview or commit.
func killEverywhere(t *testing.T, st *stage, stride int) {
	t.Helper()
	every(t, stride, func(t *testing.T, n int) bool {
		s := st.site(t, n)
		waiting := s.Preview(t)
		r := st.killed(t, s, n)
		if !r.Killed() {
			_, err := s.Recovered(t, harness.Allowed(r, s.ReportSeen())...)
			if err != nil || r.Status != 0 {
				t.Errorf("not killed: %v, %v", r, err)
			}
			return false
		}
		seen := s.ReportSeen()
		found, _ := s.State()
		st.add("found " + found.String())
		again := st.next(t, s, n, waiting)
		allowed := harness.Allowed(r, seen)
		if again.Answer.OK && again.Answer.Phase != "" {
			allowed = []harness.State{harness.After} // the second commit, after recovery
			st.add("committed again")
		}
		state, err := s.Recovered(t, allowed...)
		if !fits(again, n, state) || err != nil {
			t.Errorf("killed before %s\n%v\n%v", last(s, r), again, err)
			return true
		}
		st.add("recovered " + state.String())
		s.Remove(t)
		return true
	})
	st.want(t, "found other", "recovered before", "recovered after")
}

// next is the first command after the kill: recover, preview, or the commit of a
// preview that was made before the kill.
func (st *stage) next(t *testing.T, s *harness.Site, n int, waiting string) harness.Reply {
	t.Helper()
	switch n % 6 {
	case 0:
		return s.PreviewReply(t, nil)
	case 3:
		return st.Run(t, nil, harness.CommitArgs(waiting)...)
	default:
		return s.Recover(t, nil)
	}
}

// fits says whether a command could end so: a preview of what has been restored
// is refused or shows conflicts, and a waiting preview has gone stale.
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
func (st *stage) killed(t *testing.T, s *harness.Site, n int) harness.Reply {
	t.Helper()
	return s.Commit(t, &sysfault.Plan{N: n, Kill: true, Record: true, Match: beneath(s, changing)})
}

// TestKillNewState kills the first commit of a state directory in the calls
// that are about the state: the key of the journal and the audit log are made
// there.
func TestKillNewState(t *testing.T) {
	st := newStage(t, harness.MemoryDir(t), harness.Small())
	every(t, 7, func(t *testing.T, n int) bool {
		p := *st.Project
		p.State = filepath.Join(st.dir, fmt.Sprint("state ", n))
		harness.Must(t, os.Mkdir(p.State, 0o700))
		s := p.Site(t, filepath.Join(st.dir, fmt.Sprint("root ", n)))
		about := func(c sysfault.Call) bool { return changing(c) && inside(c.Path, p.State) }
		r := s.Commit(t, &sysfault.Plan{N: n, Kill: true, Record: true, Match: about})
		if !r.Killed() {
			return false
		}
		again := s.Recover(t, nil)
		state, err := s.Recovered(t, harness.Before, harness.After)
		if again.Status != 0 || err != nil {
			t.Errorf("killed before %s\n%v\n%v", last(s, r), again, err)
		}
		if state == harness.Before {
			if next := s.Commit(t, nil); next.Status != 0 {
				t.Errorf("killed before %s, and no commit after that: %v", last(s, r), next)
			}
		}
		st.add("recovered " + state.String())
		return true
	})
	st.want(t, "recovered before", "recovered after")
}

// TestKillTwice kills a commit before every 45th call, and its recovery before
// each.
func TestKillTwice(t *testing.T) {
	pairs(t, newStage(t, harness.MemoryDir(t), harness.Single()), 101, 4)
	pairs(t, newStage(t, harness.MemoryDir(t), harness.Chain(3, 3)...), 190, 0)
}

func TestLongKillTwice(t *testing.T) {
	needLong(t)
	pairs(t, newStage(t, harness.MemoryDir(t), harness.Single()), 1, 0)
	pairs(t, newStage(t, harness.MemoryDir(t), harness.Chain(3, 10)...), 1, 0)
}

// pairs kills commits before call offset + stride, offset + 2 stride and so on.
func pairs(t *testing.T, st *stage, stride, offset int) {
	t.Helper()
	sweep(t, func(t *testing.T, i int) bool {
		n := offset + i*stride
		for m := 1; ; m++ {
			s := st.site(t, n, m)
			r := st.killed(t, s, n)
			if !r.Killed() {
				return false
			}
			seen := s.ReportSeen()
			recovery := s.Recover(t, &sysfault.Plan{N: m, Kill: true, Record: true, Match: beneath(s, changing)})
			found, _ := s.State()
			seen = seen || s.ReportSeen()
			end := s.Recover(t, nil)
			state, err := s.Recovered(t, harness.Allowed(r, seen)...)
			if err != nil || end.Status != 0 {
				t.Errorf("commit killed before %s\nrecovery killed before %s\n%v\n%v", last(s, r), last(s, recovery), end, err)
				return true
			}
			s.Remove(t)
			if !recovery.Killed() {
				break
			}
			st.add("pairs")
			st.add("found " + found.String())
			st.add("recovered " + state.String())
		}
		return true
	})
	st.want(t, "pairs", "found other", "recovered before")
}
