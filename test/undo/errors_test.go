package undo

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// errnos are what a call can fail with. EINTR is for one call only: who asks again
// without end must be answered at last.
var errnos = []syscall.Errno{syscall.EIO, syscall.ENOSPC, syscall.EACCES, syscall.EROFS, syscall.EMFILE, syscall.ENOMEM, syscall.EDQUOT}

// A fault is an error, once or from a call on.
type fault struct {
	errno  syscall.Errno
	onward bool
}

func (f fault) String() string {
	if f.onward {
		return fmt.Sprintf("%q from there on", f.errno.Error())
	}
	return fmt.Sprintf("%q once", f.errno.Error())
}

// faults are those for call n, others for each n: one, and in the long run three.
func faults(n int) []fault {
	once, onward := fault{errnos[n/2%len(errnos)], false}, fault{errnos[(n/3+3)%len(errnos)], true}
	interrupted := fault{syscall.EINTR, false}
	switch {
	case long():
		return []fault{once, onward, interrupted}
	case n%9 == 0:
		return []fault{interrupted}
	case n%3 == 0:
		return []fault{onward}
	}
	return []fault{once}
}

// TestErrors fails the calls of each way back, more often those that change anything
// than those that only look.
func TestErrors(t *testing.T) {
	p := newProject(t)
	for i, way := range ways {
		t.Run(way.act().name, func(t *testing.T) { failEverywhere(t, p, way.act(), each(stride{3 + i, 97}), (*world).failing) })
		t.Run(way.act().name+", changing", func(t *testing.T) {
			if long() {
				t.Skip("they are among the others")
			}
			failEverywhere(t, p, way.act(), stride{2 + i, 29}, (*world).changing)
		})
	}
}

func TestLongErrors(t *testing.T) {
	needLong(t)
	TestErrors(t)
}

func failEverywhere(t *testing.T, p *harness.Project, a *act, s stride, match func(*world, sysfault.Call) bool) {
	t.Helper()
	var sum tally
	sweep(t, p, a, s, func(t *testing.T, w *world, n int) bool {
		for _, f := range faults(n) {
			w.reset(t)
			var hits []sysfault.Call
			plan := &sysfault.Plan{
				N: n, Onward: f.onward, Errno: f.errno, Before: func(c sysfault.Call) { hits = append(hits, c) },
				Match: func(c sysfault.Call) bool { return match(w, c) },
			}
			r := w.site.Project.Run(t, plan, w.args...)
			if r.Fault.Fired == 0 {
				return false
			}
			if err := errors.Join(wellSaid(r), w.afterError(t, &sum, r, f)); err != nil {
				t.Errorf("%v: %s\n%v\n%v", f, w.describe(hits[0]), r, err)
			}
		}
		return true
	})
	sum.want(t, "failed", "recovered before")
}

// wellSaid checks how a command ended: in time, without a panic, with a code and the
// status of it.
func wellSaid(r harness.Reply) error {
	switch {
	case r.Hung:
		return errors.New("it hangs")
	case strings.Contains(r.Stderr, "panic") || strings.Contains(r.Stderr, "goroutine "):
		return errors.New("it panics")
	case !slices.Contains([]int{0, 1, 3, 70}, r.Status):
		return fmt.Errorf("exit %d", r.Status)
	case r.Answer.Code == "" || r.Answer.OK != (r.Status == 0) || (r.Answer.Code == "INTERNAL_ERROR") != (r.Status == 70):
		return fmt.Errorf("exit %d with %q", r.Status, r.Answer.Code)
	case r.Status != 0 && r.Stderr == "":
		return errors.New("it says nothing")
	}
	return nil
}

// afterError checks the root after a command with a fault, and recovers.
func (w *world) afterError(t *testing.T, sum *tally, r harness.Reply, f fault) error {
	t.Helper()
	allowed := []harness.State{harness.Before}
	complete := strings.Contains(r.Stderr, "is complete")
	unrecorded := r.Status == 3 && strings.Contains(r.Stderr, "it is done, and its records could not be written")
	switch {
	case r.Status == 0 || complete || unrecorded:
		sum.add("succeeded")
		allowed = []harness.State{harness.After}
	case r.Status == 3 && !f.onward && w.began(t): // else something in the way could not be read
		return errors.New("it is halted, though nothing failed in taking it back")
	case r.Status == 3:
		sum.add("halted")
		allowed = append(allowed, harness.After)
		if w.site.Halted(t) != nil {
			sum.add("halt not written down")
		}
	default:
		sum.add("failed")
	}
	if again := w.site.Recover(t, nil); again.Status != 0 {
		return fmt.Errorf("recover: %v", again)
	}
	state, err := w.site.State()
	sum.add("recovered " + state.String())
	if err := errors.Join(err, w.ended(t, allowed...)); err != nil {
		return err
	}
	return w.back(t, state, 1)
}

// began says whether a way back has begun in this trial.
func (w *world) began(t testing.TB) bool {
	t.Helper()
	return slices.ContainsFunc(w.auditLog(t)[w.log:], func(e entry) bool { return e.Kind == "rollback_begin" })
}

// moves matches what moves or removes the things that a way back is about, but not
// its journal.
func (w *world) moves(c sysfault.Call) bool {
	if c.Name != "renameat2" && c.Name != "unlinkat" {
		return false
	}
	return inside(c.Path, w.above()) && !strings.HasPrefix(filepath.Base(c.Path), ".spectrum06_")
}

// TestHalt has the disk refuse every move from a point on, while journals and the
// state directory can still be written: a root that is not as before is halted then,
// and stays so until recover has done the work.
func TestHalt(t *testing.T) {
	p := newProject(t)
	for _, way := range ways {
		t.Run(way.act().name, func(t *testing.T) {
			var sum tally
			sweep(t, p, way.act(), each(stride{1, 3}), func(t *testing.T, w *world, n int) bool {
				r := w.site.Project.Run(t, &sysfault.Plan{N: n, Onward: true, Errno: syscall.EIO, Match: w.moves}, w.args...)
				if r.Fault.Fired == 0 {
					return false
				}
				if err := errors.Join(wellSaid(r), w.stays(t, &sum, r), w.afterError(t, &sum, r, fault{onward: true})); err != nil {
					t.Errorf("failed from move %d on: %v\n%v", n, r, err)
				}
				return true
			})
			sum.want(t, "recovered before")
			if way.act().name != "whole" { // which has one move
				sum.want(t, "halted for good")
			}
			if n := sum.count("halt not written down"); n > 0 {
				t.Errorf("%d halts were not written down", n)
			}
		})
	}
}

func TestLongHalt(t *testing.T) {
	needLong(t)
	TestHalt(t)
}

// stays checks that no command touches a halted root.
func (w *world) stays(t *testing.T, sum *tally, r harness.Reply) error {
	t.Helper()
	if r.Status != 3 {
		return nil
	}
	sum.add("halted for good")
	found := w.picture(t)
	for _, args := range [][]string{w.args, {"snapshot", "take", w.site.Root}} {
		if again := w.site.Project.Run(t, nil, args...); again.Status != 3 {
			return fmt.Errorf("in a halted root: %v", again)
		}
	}
	if diff := harness.Diff(found, w.picture(t)); diff != "" {
		return fmt.Errorf("a halted root was changed:\n%s", diff)
	}
	return nil
}
