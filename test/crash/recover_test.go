package crash

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// A moment is a call of a commit before which it is killed.
type moment struct {
	name    string
	at      func(sysfault.Call) bool
	forward bool // COMMITTED is durable: only what others do to the root takes it back
}

// moments are those at which what is left differs most.
var moments = []moment{
	{"nothing staged", func(c sysfault.Call) bool {
		return c.Name == "mkdirat" && !strings.HasPrefix(filepath.Base(c.Path), ".spectrum06_")
	}, false},
	{"staged", func(c sysfault.Call) bool { return record(c, ".spectrum06_prepared") }, false},
	{"prepared", func(c sysfault.Call) bool { return c.To != "" && filepath.Base(c.To) == "top.txt" }, false},
	{"all in place", func(c sysfault.Call) bool { return record(c, ".spectrum06_committed") }, false},
	{"committed", func(c sysfault.Call) bool { return filepath.Base(c.To) == "RESTORE_MANIFEST.json" }, true},
	{"half reported", func(c sysfault.Call) bool { return filepath.Base(c.To) == "RESTORE_REPORT.json" }, true},
	{"cleaning", func(c sysfault.Call) bool { return c.Name == "unlinkat" }, false},
}

// record matches the move that makes a record of the journal valid.
func record(c sysfault.Call, name string) bool {
	return c.Name == "renameat2" && filepath.Base(c.To) == name
}

// killedAt commits and is killed at a moment.
func killedAt(t *testing.T, s *harness.Site, m moment) harness.Reply {
	t.Helper()
	r := s.Commit(t, &sysfault.Plan{N: 1, Kill: true, Record: true, Match: s.Beneath(m.at)})
	if !r.Killed() {
		t.Fatalf("%s: not killed: %v", m.name, r)
	}
	return r
}

// TestErrorsInRecover fails the calls of a recovery. It may fail, but then the
// next one must do all that is left; and the root is called halted only if the next command
// does not end it by itself.
func TestErrorsInRecover(t *testing.T) { failRecoveries(t, 127, 23, rotating(1)) }

// TestErrorsGoForward fails the calls of a recovery from COMMITTED with errors of the
// machine. None of them takes back what may have been announced, and the next recovery
// completes it.
func TestErrorsGoForward(t *testing.T) {
	sum := onGrounds(t, sample.Thin(t, 173, 31), restoring(harness.Small()), func(t *testing.T, tr *trials, own sample.Stride) {
		for _, m := range moments {
			if !m.forward {
				continue
			}
			harness.Sweep(t, own, func(t *testing.T, n int) bool {
				for _, errno := range []syscall.Errno{syscall.EIO, syscall.EMFILE} {
					f := harness.Fault{Errno: errno, Onward: n%2 == 0}
					s := tr.aloneIn(t, m.name, n, int(errno))
					killedAt(t, s, m)
					if !tr.failRecover(t, s, m, n, f) {
						return false
					}
				}
				return true
			})
		}
	})
	sum.Demand(t, "runs", "failed", "recovered after")
}

func TestLongErrorsInRecover(t *testing.T) {
	sample.Need(t, sample.Long)
	failRecoveries(t, 1, 1, func(int) []harness.Fault { return harness.AllFaults() })
}

func failRecoveries(t *testing.T, stride, inSweep int, choose func(int) []harness.Fault) {
	t.Helper()
	sum := onGrounds(t, sample.Thin(t, stride, inSweep), restoring(harness.Small()), func(t *testing.T, tr *trials, s sample.Stride) {
		for i, m := range moments {
			harness.Sweep(t, sample.Stride{First: 1 + (s.First+i*s.Every/len(moments))%s.Every, Every: s.Every}, func(t *testing.T, n int) bool {
				for _, f := range choose(n) {
					s := tr.aloneIn(t, m.name, n, int(f.Errno), f.Onward)
					killedAt(t, s, m)
					if !tr.failRecover(t, s, m, n, f) {
						return false
					}
				}
				return true
			})
		}
	})
	sum.Demand(t, "runs", "failed", "succeeded", "recovered before", "recovered after")
}

// failRecover fails call n of a recovery. It is false if there is none.
func (tr *trials) failRecover(t *testing.T, s *harness.Site, m moment, n int, f harness.Fault) bool {
	t.Helper()
	seen := s.ReportSeen()
	var hits []sysfault.Call
	r := s.Recover(t, &sysfault.Plan{N: n, Onward: f.Onward, Errno: f.Errno, Match: s.Beneath(harness.Anything), Before: func(c sysfault.Call) {
		hits = append(hits, c)
	}})
	if r.Fault.Fired == 0 {
		return false
	}
	allowed := []harness.State{harness.Before, harness.After}
	if seen || m.forward && f.Errno != syscall.ELOOP { // which says that there are links in the root
		allowed = allowed[1:]
	}
	errs := []error{wellSaid(r, hits)}
	word := "failed"
	if r.Status == 0 {
		word = "succeeded"
		_, err := s.Check(allowed...)
		errs = append(errs, err)
	}
	switch {
	case r.Status == 3:
		tr.Add("halted")
		if f.Errno != syscall.ELOOP { // which says of a record that it is not what was put there
			errs = append(errs, s.Halted(t))
		}
	case strings.Contains(r.Stderr, "could not be ended") && (r.Status != 74 || !strings.Contains(r.Stderr, "continues from here")):
		errs = append(errs, errors.New("it does not say to run it again"))
	}
	again := s.Recover(t, nil)
	if again.Status != 0 {
		errs = append(errs, fmt.Errorf("the next one: %v", again))
	}
	state, err := s.Recovered(t, allowed...)
	if err := errors.Join(append(errs, err)...); err != nil {
		t.Errorf("killed when %s, recovery with %v: %s\n%v\n%v", m.name, f, s.Describe(hits[0]), r, err)
		return true
	}
	tr.Add("runs")
	tr.Add(word)
	tr.Add("recovered " + state.String())
	tr.remove(t, s)
	return true
}
